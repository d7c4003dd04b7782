package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asEncodingJSON fails where a delivery is read otherwise than encoding/json
// reads it, which is what the rest of the program does: a body that is not the
// same in both would look edited.
func asEncodingJSON(t *testing.T, body []byte) {
	t.Helper()
	var want payload
	wanted := strings.HasPrefix(strings.TrimSpace(string(body)), "{") && json.Unmarshal(body, &want) == nil
	got, ok := readPayload(body)
	if ok != wanted {
		t.Fatalf("taken %v, want %v: %.200q", ok, wanted, body)
	}
	if diff := cmp.Diff(want, got); ok && diff != "" {
		t.Fatalf("not as encoding/json reads it (-want +got):\n%s", diff)
	}
}

// oddities are where JSON libraries differ.
var oddities = []string{
	``, `{`, `[]`, ` {} `, `{} {}`, "\ufeff{}", `{"action":"opened",}`, `{'action':'opened'}`, `{"action":"a"/**/}`,
	`{"action":"a","Action":"b","ACTION":"c"}`, `{"issue":{"number":1},"issue":{"body":"x"}}`, `{"sender":{"id":1},"sender":null}`,
	"{\"action\":\"\xff\xfe\"}", `{"action":"\ud800x"}`, `{"action":"\ud83d\ude00 \u0000\/"}`, "{\"action\":\"a\nb\"}", `{"action":"\x41"}`,
	`{"comment":{"id":1e3}}`, `{"comment":{"id":1.0}}`, `{"comment":{"id":01}}`, `{"comment":{"id":"1"}}`, `{"comment":{"id":-0}}`,
	`{"comment":{"id":9223372036854775808}}`, `{"comment":{"id":9223372036854775807}}`, `{"comment":[]}`, `{"comment":null}`,
	`{"is_pull":"true"}`, `{"is_pull":null}`, `{"changes": [1, 2] }`, `{"changes":nul}`, `{"issue":{"pull_request":null}}`,
	"{\"K\":1,\"\u212aey\":2}", `{"i\u0073sue":{"number":4}}`, `{"action":5}`, `{"action":{}}`,
}

func TestReadPayloadOddities(t *testing.T) {
	for _, s := range oddities {
		asEncodingJSON(t, []byte(s))
	}
}

// TestReadPayloadDepth: brackets without end are an error, not the process's.
func TestReadPayloadDepth(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		body := `{"action":"opened","x":` + strings.Repeat(open, 1<<20)
		if _, ok := readPayload([]byte(body)); ok {
			t.Errorf("took %.30q", body)
		}
	}
	body := `{"action":"opened","x":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}"
	if _, ok := readPayload([]byte(body)); ok {
		t.Error("took a megabyte of brackets")
	}
}

// recordedBodies are real deliveries of Gitea and of GitHub's shape.
func recordedBodies(t testing.TB) (bodies [][]byte) {
	t.Helper()
	for _, forge := range []string{"gitea", "github"} {
		names, err := filepath.Glob(filepath.Join("..", "..", forge, "testdata", "*.json"))
		if err != nil || len(names) == 0 {
			t.Fatalf("no recorded deliveries of %s: %v", forge, err)
		}
		for _, name := range names {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, body)
		}
	}
	return bodies
}

func TestReadPayloadRecorded(t *testing.T) {
	for _, body := range recordedBodies(t) {
		asEncodingJSON(t, body)
	}
}

func FuzzReadPayload(f *testing.F) {
	for _, s := range oddities {
		f.Add([]byte(s))
	}
	f.Add(recordedBodies(f)[0])
	f.Fuzz(asEncodingJSON)
}

func BenchmarkDecode(b *testing.B) {
	body := recordedBodies(b)[1]
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode("issue_comment", body); err != nil {
			b.Fatal(err)
		}
	}
}
