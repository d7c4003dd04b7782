package playbook

import (
	"fmt"
	"testing"
	"time"
)

// thousand is a log as a long thread has it: several people, actions, outcomes
// and targets, some repeats, one attempt a minute.
func thousand() []Attempt {
	p := Default()
	outcomes := p.Outcomes()
	attempts := make([]Attempt, 1000)
	for i := range attempts {
		attempts[i] = Attempt{
			Action: p.rungs[i%len(p.rungs)].Action, Outcome: outcomes[i%len(outcomes)], Reason: "the transport is still closed after the reconnect",
			Actor: fmt.Sprintf("agent-%d", i%17), RecordedBy: fmt.Sprintf("agent-%d", i%17), Target: []string{"", "mcp-search", "mcp-mail"}[i%3],
			RecordedAt: noon.Add(-time.Duration(i) * time.Minute), PostedAt: noon.Add(-time.Duration(i) * time.Minute),
		}
		if i%10 == 9 {
			attempts[i] = attempts[i-1]
		}
	}
	return attempts
}

// The budget is 50 µs an assessment.
func BenchmarkAssess1000Attempts(b *testing.B) {
	e := Escalation{Action: "full_mcp_restart", Target: "mcp-search", Attempts: thousand(), Standing: admin, Actor: "ada", Now: noon}
	p := Default()
	b.ReportAllocs()
	for b.Loop() {
		if a := p.AssessEscalation(e); !a.Allowed || len(a.Counted) == 0 {
			b.Fatal("refused")
		}
	}
}

func BenchmarkDedupe1000(b *testing.B) {
	attempts := thousand()
	b.ReportAllocs()
	for b.Loop() {
		if len(Dedupe(attempts)) != 900 {
			b.Fatal("wrong count")
		}
	}
}

func BenchmarkParseAttempts(b *testing.B) {
	text := "prior_recovery_attempts:\n"
	for range 200 {
		text += "  - action: client_reconnect\n    outcome: insufficient\n    reason: still closed\n    recorded_at: 2026-05-02T07:10:00+05:30\n"
	}
	p := Default()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if len(p.ParseAttempts(text, "yaml", Context{At: noon}).Attempts) != 200 {
			b.Fatal("wrong count")
		}
	}
}

func BenchmarkLoadDefault(b *testing.B) {
	for b.Loop() {
		load(b)
	}
}
