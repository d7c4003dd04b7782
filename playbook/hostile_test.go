package playbook

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostileSize is the largest body of a comment, in bytes.
const hostileSize = 256 << 10

// hostile are texts made to be slow.
func hostile() map[string]string {
	fill := func(head, piece string) string {
		return head + strings.Repeat(piece, (hostileSize-len(head))/len(piece))
	}
	texts := map[string]string{
		"dashes":         fill("attempts:\n", "- "),
		"dash lines":     fill("attempts:\n", "-\n"),
		"brackets":       fill("attempts: ", "["),
		"braces":         fill("attempts: ", "{a: "),
		"action braces":  fill("attempts: ", "{action: "),
		"JSON brackets":  fill(`{"attempts":`, "["),
		"JSON numbers":   fill(`{"attempts":[`, "1,"),
		"JSON keys":      fill(`{"action":"x",`, `"a":1,`),
		"anchors":        fill("attempts: ", "&a "),
		"anchor list":    fill("attempts:\n", "- &a b\n"),
		"questions":      fill("attempts:\n", "? "),
		"colons":         fill("attempts", ": "),
		"keys":           fill("", "action: x\n"),
		"one long key":   fill("attempts: {", "x"),
		"quotes":         fill("attempts: ", "\""),
		"single quotes":  fill("attempts: '", "''"),
		"tags":           fill("attempts: ", "!a "),
		"documents":      fill("", "attempts:\n---\n"),
		"commas":         fill("attempts: [", ","),
		"records":        fill("", "- action: client_reconnect\n  outcome: failed\n"),
		"bad records":    fill("", "- action: clientreconnect\n  outcome: didnt work\n"),
		"kills":          fill("action: client_reconnect\noutcome: failed\nreason: ", "nobody pkill, "),
		"comments":       fill(`{"attempts": `, "/**/"),
		"escapes":        fill(`{"attempts": "`, `\ud83d`),
		"spaces":         fill("attempts:\n", " "),
		"block scalar":   fill("attempts: |\n", "  x\n"),
		"key per line":   fill("attempts:\n", " a:\n"),
		"staircase":      "attempts:\n" + staircase(),
		"late syntax":    fill("", "- action: client_reconnect\n  outcome: failed\n")[:8000] + "}\n",
		"nested strings": `{"attempts":` + strings.Repeat(`"[`, 100),
	}
	for name, text := range texts {
		if len(text) > maxYAML {
			texts[name+", short"] = strings.ToValidUTF8(text[:maxYAML], "")
		}
	}
	return texts
}

func staircase() string {
	var b strings.Builder
	for i := 1; b.Len() < hostileSize-2000; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// TestHostileBlocksAreCheap is a bound with much room, not a timing: what goes
// quadratic takes minutes and gigabytes here.
func TestHostileBlocksAreCheap(t *testing.T) {
	p := Default()
	for name, text := range hostile() {
		for _, lang := range []string{"attempts", "json", "yaml"} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			p.ParseAttempts(text, lang, Context{At: noon})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 5*time.Second || mb > 200 {
				t.Errorf("%s as %s: %s, %d MB", name, lang, took, mb)
			} else {
				t.Logf("%s as %s: %s, %d MB", name, lang, took, mb)
			}
		}
	}
}
