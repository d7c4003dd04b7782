//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"playbook-bot/deploy/sandbox/internal/tracker"
	"playbook-bot/playbook"
)

// TestIncident plays what the command plays.
func TestIncident(t *testing.T) {
	repo, b, err := newIncident(t.Context(), box)
	ok(t, err)
	// The conversations have one of the same name.
	t.Cleanup(func() { ok(t, repo.Delete(context.WithoutCancel(t.Context()))) })
	ok(t, b.Start(t.Context()))
	defer func() { ok(t, b.Stop()) }()
	var shown bytes.Buffer
	thread, err := play(t.Context(), repo, func(e tracker.Entry) { showEntry(&shown, e) })
	if err != nil {
		t.Fatalf("%v\nthe conversation:\n%s\nthe end of the bot's log:\n%s", err, shown.String(), b.Tail(40))
	}
	if want := 8; len(thread.seen) != want {
		t.Errorf("%d texts, want %d: four by people and an answer to each:\n%s", len(thread.seen), want, shown.String())
	}
}

func answerWith(t *testing.T, text string, d playbook.Decision) tracker.Entry {
	t.Helper()
	data := must(json.MarshalIndent(d, "", " "))(t)
	return tracker.Entry{ID: 7, Author: botLogin, Created: time.Now(),
		Body: text + "\n\n<details><summary>Decision as JSON</summary>\n\n```json\n" + string(data) + "\n```\n\n</details>\n"}
}

// TestChecksCanFail shows that the incident notices each answer that is not as
// it should be.
func TestChecksCanFail(t *testing.T) {
	refusal := func(change func(*playbook.Decision)) playbook.Decision {
		d := playbook.Decision{Request: "1/1", Verdict: "refused"}
		d.Next = "capability_refresh"
		change(&d)
		return d
	}
	const text = "try `capability_refresh`, then\n```\n/endorse 1/1\n```"
	later, name := time.Now().Add(time.Hour), admin
	approval := func(change func(*playbook.Decision)) playbook.Decision {
		d := playbook.Decision{Verdict: "approved", Endorser: &name, ApprovedUntil: &later}
		d.Allowed, d.Counted = true, make([]playbook.Attempt, 1)
		change(&d)
		return d
	}
	isRefused := func(e tracker.Entry) error { _, err := refused(e); return err }
	for _, c := range []struct {
		name  string
		check func(tracker.Entry) error
		entry tracker.Entry
		want  string // in the error; empty for none
	}{
		{"refused", isRefused, answerWith(t, text, refusal(func(*playbook.Decision) {})), ""},
		{"refused, allowed", isRefused, answerWith(t, text, refusal(func(d *playbook.Decision) { d.Allowed = true })), "refused"},
		{"refused, no request", isRefused, answerWith(t, text, refusal(func(d *playbook.Decision) { d.Request = "" })), "request"},
		{"refused, no rung", isRefused, answerWith(t, text, refusal(func(d *playbook.Decision) { d.Next = "" })), "rung"},
		{"refused, rung only in the JSON", isRefused, answerWith(t, "no", refusal(func(*playbook.Decision) {})), "rung"},
		{"refused, no endorsement", isRefused, answerWith(t, "`capability_refresh`", refusal(func(*playbook.Decision) {})), "endorse"},
		{"refused, no decision", isRefused, tracker.Entry{Body: text}, "no decision"},
		{"refused, broken decision", isRefused, tracker.Entry{Body: text + "\n```json\n{]}\n```"}, "invalid character"},

		{"recorded", recorded, tracker.Entry{Body: "📝 Recorded. Still missing: an endorsement."}, ""},
		{"recorded, not said", recorded, tracker.Entry{Body: "Still missing: an endorsement."}, "recorded"},
		{"recorded, nothing missing", recorded, tracker.Entry{Body: "📝 Recorded."}, "endorsement"},

		{"approved", approved, answerWith(t, "", approval(func(*playbook.Decision) {})), ""},
		{"approved, refused", approved, answerWith(t, "", approval(func(d *playbook.Decision) { d.Allowed = false })), "approved"},
		{"approved, by nobody", approved, answerWith(t, "", approval(func(d *playbook.Decision) { d.Endorser = nil })), "endorsed"},
		{"approved, without an attempt", approved, answerWith(t, "", approval(func(d *playbook.Decision) { d.Counted = nil })), "attempt"},
		{"approved, for ever", approved, answerWith(t, "", approval(func(d *playbook.Decision) { d.ApprovedUntil = nil })), "until when"},

		{"recovered", recovered, tracker.Entry{Body: "✅ Recovered by `full_mcp_restart`."}, ""},
		{"recovered, only in the JSON", recovered, tracker.Entry{Body: "no<details>Recovered"}, "recovered"},
	} {
		err := c.check(c.entry)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestShowEntry(t *testing.T) {
	var out bytes.Buffer
	showEntry(&out, tracker.Entry{
		ID: 7, Author: "rhea", Created: time.Date(2026, 12, 1, 3, 4, 11, 0, time.UTC),
		Body: "one\r\n\x1b[2Jtwo\n\n",
	})
	want := "\n── rhea · 2026-12-01 03:04:11 UTC · comment 7\n   │ one\n   │ \ufffd[2Jtwo\n"
	if out.String() != want {
		t.Errorf("shown:\n%q\nwant:\n%q", out.String(), want)
	}
}
