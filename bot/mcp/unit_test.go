package mcp

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestSafeName(t *testing.T) {
	for in, want := range map[string]string{
		"echo":                          "echo",
		"zeichnen_ü_漢字":                 "zeichnen_ü_漢字",
		"a\x1b[31mb\r\nc\x00":           "a\ufffd[31mb\ufffd\ufffdc\ufffd",
		"a\u202eb\u200bc\u2066":         "a\ufffdb\ufffdc\ufffd",
		"\xff":                          "\ufffd",
		strings.Repeat("x", 65):         strings.Repeat("x", 64) + "…",
		strings.Repeat("漢", 64):         strings.Repeat("漢", 64),
		"tag\U000E0041\uFE0Fnbsp\u00a0": "tag\ufffd\ufffdnbsp\ufffd",
	} {
		if got := SafeName(in); got != want {
			t.Errorf("SafeName(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzSafeName(f *testing.F) {
	f.Add("echo\x1b[0m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := SafeName(s)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > maxName+1 {
			t.Fatalf("%q", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if SafeName(got) != got && utf8.RuneCountInString(got) <= maxName {
			t.Fatalf("not stable: %q", got)
		}
	})
}

func TestCompare(t *testing.T) {
	old := Capabilities{kindTools: {"a": "1", "b": "1", "c": "1"}, kindPrompts: {"p": "1"}}
	now := Capabilities{kindTools: {"a": "1", "b": "2", "d": "1"}, kindResources: {"r": "1"}}
	c := Compare(old, now)
	if strings.Join(c.Added, " ") != "d" || strings.Join(c.Removed, " ") != "c" || strings.Join(c.Altered, " ") != "b" {
		t.Errorf("got %+v", c)
	}
	if c.String() != "1 added, 1 removed, 1 altered" || Compare(old, old).Any() || Compare(nil, now).Any() {
		t.Errorf("got %s", c)
	}
	if got := now.String(); got != "3 tools, 1 resources" || (Capabilities{}).String() != "nothing offered" {
		t.Errorf("got %q", got)
	}
}

func TestBreakerBacksOff(t *testing.T) {
	var b breaker
	now := newClock().Now()
	var waits []time.Duration
	for range 9 {
		b.strike(now, ErrSessionExpired)
		waits = append(waits, b.wait(now))
		now = b.until
		if b.wait(now) > 0 {
			t.Fatal("still open at its end")
		}
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if waits[i] != want*time.Second {
			t.Errorf("strike %d: %v, want %ds", i+1, waits[i], want)
		}
	}
	b.ok(now)
	if b.wait(now) > 0 || b.strikes != 0 {
		t.Error("an answer must close it")
	}
}

// The text of an error is a whole clause that says what is known.
func TestCallErrorText(t *testing.T) {
	for want, e := range map[string]*CallError{
		"ping: connection refused; nothing was written":         {Method: "ping", Fate: NotSent, Why: "connection refused"},
		"tools/call: the connection was lost; outcome unknown":  {Method: "tools/call", Fate: Unknown, Why: "the connection was lost"},
		"tools/list: the server refused the request (HTTP 400)": {Method: "tools/list", Fate: Refused, Status: 400, Why: "the server refused the request"},
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e, want)
		}
	}
	cause := errors.New("cause")
	e := &CallError{kinds: []error{ErrNotResent}, cause: cause}
	if !errors.Is(e, ErrNotResent) || !errors.Is(e, cause) || errors.Is(e, ErrClosed) {
		t.Error("Unwrap")
	}
}
