package playbook

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func build(t *testing.T, raw RawAttempt) (Attempt, []string, []Problem) {
	t.Helper()
	return Default().BuildAttemptRecord(raw, Context{Author: "ada", At: noon})
}

func TestSpellingIsNormalisedMeaningIsNot(t *testing.T) {
	for _, spelling := range []string{"client_reconnect", " Client Reconnect ", "CLIENT-RECONNECT", "client\u00a0reconnect", "client - reconnect", "`client_reconnect`", "client__reconnect"} {
		if got, ok := Default().NormalizeAction(spelling); !ok || got != "client_reconnect" {
			t.Errorf("NormalizeAction(%q) = %q, %v", spelling, got, ok)
		}
	}
	for _, spelling := range []string{"", "client", "clientreconnect", "client_reconnect.", "сlient_reconnect", "wor\u212aer_restart", "reconnect", "_client_reconnect"} {
		if got, ok := Default().NormalizeAction(spelling); ok {
			t.Errorf("NormalizeAction(%q) = %q, true", spelling, got)
		}
	}
	outcomes := map[string]string{"Failed": "failed", "In Progress": "in_progress", "in-progress": "in_progress", "success": "succeeded",
		"RECOVERED": "succeeded", "resolved": "succeeded", "succeeded": "succeeded", "denied": "denied"}
	for spelling, want := range outcomes {
		if got, ok := Default().NormalizeOutcome(spelling); !ok || got != want {
			t.Errorf("NormalizeOutcome(%q) = %q, %v", spelling, got, ok)
		}
	}
	for _, spelling := range []string{"", "didnt_work", "planned", "ok", "fail", "no"} {
		if got, ok := Default().NormalizeOutcome(spelling); ok {
			t.Errorf("NormalizeOutcome(%q) = %q, true", spelling, got)
		}
	}
}

func TestRejectionsSayWhyAndCure(t *testing.T) {
	tests := []struct {
		name string
		raw  RawAttempt
		why  []string
		cure string
	}{
		{"outcome by phrase", RawAttempt{Action: "client_reconnect", Outcome: "didnt_work"},
			[]string{"`didnt_work` is no outcome; did you mean `failed`?"}, "/attempt client_reconnect failed"},
		{"story in the outcome", RawAttempt{Action: "session reconnect", Outcome: "worked 5 min then same", RecordedAt: "14:05 CEST"},
			[]string{"`worked 5 min then same` is no outcome; did you mean `insufficient`", "`14:05 CEST` is no time with date and offset"},
			"/attempt session_reconnect insufficient worked 5 min then same"},
		{"planned", RawAttempt{Action: "worker_restart", Outcome: "planned", RecordedAt: "-"},
			[]string{"`planned` is no outcome"}, "/attempt worker_restart skipped"},
		{"typing error", RawAttempt{Action: "sesion_reconect", Outcome: "fialed", Target: "mcp search", Reason: "still\n404"},
			[]string{"did you mean `session_reconnect`", "did you mean `failed`"}, `/attempt session_reconnect failed target="mcp search" still 404`},
		{"look-alike", RawAttempt{Action: "сlient_reconnect", Outcome: "failed"},
			[]string{"U+0441", "only looks like c"}, "/attempt client_reconnect failed"},
		{"look-alike outcome", RawAttempt{Action: "client_reconnect", Outcome: "fаiled"},
			[]string{"U+0430"}, "/attempt client_reconnect failed"},
		{"words in another order", RawAttempt{Action: "restart worker", Outcome: "failed"},
			[]string{"`worker_restart`"}, "/attempt worker_restart failed"},
		{"nothing near", RawAttempt{Action: "xyzzy", Outcome: "failed"}, []string{"`xyzzy` is no action"}, "/playbook ladder"},
		{"no outcome near", RawAttempt{Action: "client_reconnect", Outcome: "xyzzy"}, []string{"one of failed, insufficient"}, "/playbook help"},
		{"no action", RawAttempt{Outcome: "failed"}, []string{"no action is named"}, "/playbook ladder"},
		{"no offset", RawAttempt{Action: "session_reconnect", Outcome: "insufficient", Reason: "same", RecordedAt: "2026-06-11T14:05"},
			[]string{"`2026-06-11T14:05` names no offset"}, "/attempt session_reconnect insufficient same"},
		{"future", RawAttempt{Action: "session_reconnect", Outcome: "failed", RecordedAt: "2026-12-01T12:05:01Z"},
			[]string{"more than 5 minutes after"}, "/attempt session_reconnect failed"},
		{"no time at all", RawAttempt{Action: "session_reconnect", Outcome: "failed", RecordedAt: "yesterday"},
			[]string{"is no time with date and offset"}, "/attempt session_reconnect failed"},
		{"backquotes cannot break out", RawAttempt{Action: "a`b\u202ec", Outcome: "failed"}, []string{"`abc` is no action"}, "/playbook ladder"},
		{"a reason that looks like an option", RawAttempt{Action: "client_reconnect", Outcome: "didn't help", Reason: "target=all"},
			[]string{"`didn't help` is no outcome"}, "/attempt client_reconnect insufficient (target=all)"},
		{"target too long", RawAttempt{Action: "client_reconnect", Outcome: "failed", Target: strings.Repeat("x", 201)},
			[]string{"longer than 200 characters"}, "/attempt client_reconnect failed target=" + strings.Repeat("x", 200) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _, problems := build(t, tt.raw)
			if len(problems) != len(tt.why) && tt.name != "look-alike" {
				t.Fatalf("problems = %+v, record %+v", problems, a)
			}
			all := ""
			for _, p := range problems {
				all += p.Why + "\n"
				if p.Suggestion != tt.cure {
					t.Errorf("suggestion = %q, want %q", p.Suggestion, tt.cure)
				}
			}
			for _, why := range tt.why {
				if !strings.Contains(all, why) {
					t.Errorf("why = %q, want %q in it", all, why)
				}
			}
			if (a != Attempt{}) {
				t.Errorf("a rejected text gave %+v", a)
			}
		})
	}
}

func TestRecordDefaultsAndClaims(t *testing.T) {
	a, notes, problems := build(t, RawAttempt{Action: "Client Reconnect", Outcome: "Insufficient", Reason: " kept  as\nwritten "})
	if problems != nil || notes != nil {
		t.Fatalf("problems %v, notes %v", problems, notes)
	}
	want := Attempt{Action: "client_reconnect", Outcome: "insufficient", Reason: " kept  as\nwritten ", Actor: "ada", RecordedBy: "ada", RecordedAt: noon, PostedAt: noon}
	if a != want {
		t.Errorf("record = %+v, want %+v", a, want)
	}
	a, _, _ = build(t, RawAttempt{Action: "client_reconnect", Outcome: "failed", Actor: "@bob", RecordedAt: "2026-12-01T13:04:00+01:00", Target: " Search "})
	if a.Actor != "bob" || a.RecordedBy != "ada" || !a.RecordedAt.Equal(noon.Add(4*time.Minute)) || a.Target != "Search" {
		t.Errorf("record = %+v", a)
	}
	a, notes, _ = build(t, RawAttempt{Action: "client_reconnect", Outcome: "failed", Verified: true, Reason: strings.Repeat("é", MaxReason+1)})
	if a.Verified || !a.Cut || len([]rune(a.Reason)) != MaxReason || len(notes) != 2 {
		t.Errorf("verified %v, cut %v, %d characters, notes %v", a.Verified, a.Cut, len([]rune(a.Reason)), notes)
	}
	a, _, problems = Default().BuildAttemptRecord(RawAttempt{Action: "client_reconnect", Outcome: "failed", RecordedAt: "2126-01-01T00:00:00Z"}, Context{})
	if len(problems) != 0 || a.RecordedAt.Year() != 2126 {
		t.Errorf("without a posting time nothing is in the future: %v", problems)
	}
}

func TestTimesThatAreTaken(t *testing.T) {
	for _, s := range []string{"2026-05-02T07:10:00+05:30", "2026-05-02t01:40:00z", "2026-05-02 07:10:00+05:30", "2026-05-02T07:10+05:30",
		"2026-05-02 01:40 UTC", "2026-05-02T01:40:00.000Z", "2026-05-02 01:40:00 +00:00", "2026-05-02T07:10:00+0530"} {
		got, why := readTime(s)
		if want := time.Date(2026, 5, 2, 1, 40, 0, 0, time.UTC); why != "" || !got.Equal(want) {
			t.Errorf("readTime(%q) = %v, %q", s, got, why)
		}
	}
	for _, s := range []string{"2026-05-02T07:10:00", "2026-05-02", "14:05", "14:05 CEST", "now", "2026-13-02T07:10:00Z", "1780000000", strings.Repeat("9", 1000)} {
		if got, why := readTime(s); why == "" {
			t.Errorf("readTime(%q) = %v", s, got)
		}
	}
}

func TestKillRecord(t *testing.T) {
	tests := []struct {
		raw    RawAttempt
		action string
		kill   bool
	}{
		{RawAttempt{Action: "pkill -f mcp", Outcome: "whatever"}, "pkill -f mcp", true},
		{RawAttempt{Action: "worker_restart", Outcome: "failed", Reason: "ran pkill -9 first"}, "worker_restart", true},
		{RawAttempt{Action: "worker_restart", Outcome: "failed", Reason: "nobody ran pkill"}, "worker_restart", false},
		{RawAttempt{Action: "kill -9", RecordedAt: "some day"}, "kill -9", true},
	}
	for _, tt := range tests {
		a, _, problems := build(t, tt.raw)
		if len(problems) > 0 || a.Kill != tt.kill || a.Action != tt.action || a.RecordedAt.IsZero() {
			t.Errorf("%+v gave %+v, %v", tt.raw, a, problems)
		}
		if a.Kill && Default().Counts(a) {
			t.Errorf("a kill counts: %+v", a)
		}
	}
}

func TestSameAttempt(t *testing.T) {
	a := Attempt{Action: "client_reconnect", Outcome: "failed", Actor: "Ada", Target: "Search", RecordedAt: noon, Reason: "x"}
	same := a
	same.Actor, same.Target, same.Reason, same.Ref = "aDA", "search", "y", "comment 7"
	same.RecordedAt = noon.Add(59 * time.Second).In(time.FixedZone("", 3600))
	if !SameAttempt(a, same) {
		t.Error("spelling, reason, place and second make no other attempt")
	}
	for name, change := range map[string]func(*Attempt){
		"minute":  func(b *Attempt) { b.RecordedAt = noon.Add(time.Minute) },
		"actor":   func(b *Attempt) { b.Actor = "bob" },
		"action":  func(b *Attempt) { b.Action = "session_reconnect" },
		"outcome": func(b *Attempt) { b.Outcome = "error" },
		"target":  func(b *Attempt) { b.Target = "" },
	} {
		b := a
		change(&b)
		if SameAttempt(a, b) {
			t.Errorf("another %s is another attempt", name)
		}
		if got := Dedupe([]Attempt{a, b, same, b, a}); len(got) != 2 || got[0] != a || got[1] != b {
			t.Errorf("Dedupe = %+v", got)
		}
	}
	if Dedupe(nil) == nil {
		t.Error("Dedupe(nil) is nil")
	}
}

func TestFieldName(t *testing.T) {
	for _, s := range []string{"action=action", "What=action", "rung=action", "Result=outcome", "STATUS=outcome", "when=recorded_at", "time=recorded_at",
		"at=recorded_at", "Recorded At=recorded_at", "who=actor", "by=actor", "note=reason", "notes=reason", "why=reason", "target=target"} {
		heading, want, _ := strings.Cut(s, "=")
		if got, ok := FieldName(heading); !ok || got != want {
			t.Errorf("FieldName(%q) = %q, %v", heading, got, ok)
		}
	}
	if _, ok := FieldName("severity"); ok {
		t.Error("severity is no field")
	}
}
