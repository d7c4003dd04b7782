package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"playbook-bot/bot/command"
	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// Prober tries the harmless rungs on a server of the operator's
// configuration, calling no tool.
type Prober interface {
	// Servers are the names that may be probed.
	Servers() []string
	// Probe returns within its own deadline. What of it came from the server
	// is bounded and inert, but foreign.
	Probe(ctx context.Context, server string) (ProbeReport, error)
}

// ProbeReport is what a probe found.
type ProbeReport struct {
	// Answering: the server answers now. RecoveredBy is the rung that brought
	// it back, empty where none did or had to.
	Answering   bool
	RecoveredBy string
	// SessionEnded: the server came back with another session than the bot held.
	SessionEnded bool
	// Verdict is one sentence in our own words.
	Verdict string
	// Attempts are the records, verified.
	Attempts []playbook.Attempt
}

// sourceProbe marks records that no text of a person holds.
const sourceProbe = "probe"

// Limits of probing: a server is not to be hammered because a thread is busy.
const (
	probesPerAccount = 5 // an hour
	probeServerEvery = 30 * time.Second
)

// probeLimits counts probes, in memory: after a restart of the bot the worst
// is a few probes more.
type probeLimits struct {
	mu      sync.Mutex
	server  map[string]time.Time
	account map[int64][]time.Time
}

// take reports whether a probe may start now, and for how long not.
func (l *probeLimits) take(server string, account int64, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil {
		l.server, l.account = map[string]time.Time{}, map[int64][]time.Time{}
	}
	if next := l.server[server].Add(probeServerEvery); now.Before(next) {
		return next.Sub(now)
	}
	recent := slices.DeleteFunc(l.account[account], func(t time.Time) bool { return now.Sub(t) >= time.Hour })
	if len(recent) >= probesPerAccount {
		l.account[account] = recent
		return recent[0].Add(time.Hour).Sub(now)
	}
	if len(l.account) > 10_000 {
		clear(l.account)
	}
	l.server[server], l.account[account] = now, append(recent, now)
	return 0
}

// Probe tries rungs 0 to 2 on a configured server and logs each as a verified
// attempt. One that clears the fault ends the requester's own request, if an
// earlier rung failed in this incident; otherwise it advises.
func (tr *turn) Probe(inv command.Invocation) {
	server, ok := tr.probeTarget(inv.Server)
	if !ok || tr.err != nil {
		return
	}
	if wait := tr.b.probes.take(server, tr.text.author.ID, tr.now); wait > 0 {
		tr.notice("⏳ Not probed again yet", fmt.Sprintf("A server is probed every %s at most, and by one account %d times an hour. Try again in %s.",
			probeServerEvery, probesPerAccount, wait.Round(time.Second)), "")
		return
	}
	before, _ := tr.attempts()
	report, err := tr.b.Prober.Probe(tr.ctx, server)
	if err != nil {
		tr.b.Log.WarnContext(tr.ctx, "probe not done", "server", server, "error", err)
		tr.notice("❔ The probe could not be done", "The bot's log says why. Nothing was recorded.", "")
		return
	}
	tr.logProbe(server, report)
	failed := slices.ContainsFunc(before, tr.b.Playbook.Counts) || slices.ContainsFunc(report.Attempts, tr.b.Playbook.Counts)
	r := tr.st.Request
	if report.RecoveredBy != "" && failed && r != nil && r.Requester.ID == tr.text.author.ID && tr.vouched {
		tr.recovered(command.Invocation{Action: report.RecoveredBy}, r)
		if n := len(tr.sections); n > 0 {
			tr.sections[n-1].SessionEnded = report.SessionEnded
		}
		return
	}
	sec := templates.Section{Kind: templates.KindNotice, Title: "🔎 Probed " + server, Text: report.Verdict, Taken: report.Attempts}
	for _, a := range report.Attempts {
		sec.Notes = append(sec.Notes, fmt.Sprintf("`%s`: %s. %s", a.Action, a.Outcome, a.Reason))
	}
	tr.logSaid, tr.reaction = true, forge.ReactionApproved
	if !report.Answering {
		tr.reaction = forge.ReactionConfused
	}
	tr.publishLog(sec, r)
}

// probeTarget is the configured server that a /probe names: a URL, or a
// server that the open request is not about, is refused.
func (tr *turn) probeTarget(name string) (string, bool) {
	if tr.b.Prober == nil {
		tr.notice("🤷 No server is configured for probes here", "The bot's operator names them in `MCP_SERVERS`.", "")
		return "", false
	}
	names := tr.b.Prober.Servers()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		text := "Only servers of the bot's configuration are probed, by name; a URL never is."
		post := ""
		if len(names) > 0 {
			post = "/probe " + names[0]
		}
		tr.notice("🤷 No such server is configured", text, post)
		return "", false
	}
	if r := tr.st.Request; r != nil && r.Target != "" && !strings.EqualFold(r.Target, names[i]) {
		tr.notice("✋ Not probed: request "+r.ID+" is about another server", "Here only its target is probed. Use another issue for another server.", "")
		return "", false
	}
	return names[i], true
}

// logProbe puts a probe's records into the log, beside those of the text that
// asked for it.
func (tr *turn) logProbe(server string, report ProbeReport) {
	for _, a := range report.Attempts {
		a.Target, a.Verified, a.Actor, a.RecordedBy = server, true, tr.self.Login, tr.self.Login
		a.PostedAt, a.Ref = tr.text.created, ref(tr.text.Object)
		if a.RecordedAt.IsZero() {
			a.RecordedAt = tr.now
		}
		tr.object.data.Records = append(tr.object.data.Records, record{Record: comment.Record{Attempt: a, Source: sourceProbe}})
	}
	tr.object.dirty = true
}

// publishLog adds a section with a decision that holds the whole log: what
// the bot verified itself stands in no person's text, and a lost database is
// rebuilt from the bot's signed answers.
func (tr *turn) publishLog(sec templates.Section, r *request) {
	if r != nil {
		a, lk := tr.weigh(r)
		if tr.err != nil {
			return
		}
		if tr.broken != "" {
			tr.endBroken()
			return
		}
		if a.Allowed && r.Verdict != verdictApproved && !r.MustAsk {
			// Verified evidence flips by itself, whoever asked for the probe.
			tr.add(sec)
			tr.rule(r, a, lk, "")
			return
		}
		tr.publish(r, a, lk.Standing, sec, "")
		return
	}
	book := tr.policy(false)
	weigh, excluded := tr.attempts()
	a := book.AssessEscalation(playbook.Escalation{Action: broadest(book), Attempts: weigh, Excluded: excluded,
		Since: tr.st.Since, Standing: playbook.Standing{Permission: playbook.PermissionRead, Roles: []string{}}, Now: tr.now})
	d, err := tr.decide(nil, a, playbook.Standing{Permission: playbook.PermissionRead, Roles: []string{}}, "")
	if err != nil {
		tr.err = err
		return
	}
	d.Verdict = verdictNone
	tr.decision = d
	tr.add(sec)
}

// verifiedIn are the records of a signed answer that the bot itself attests.
func verifiedIn(d playbook.Decision, number int64) map[forge.Object][]record {
	out := map[forge.Object][]record{}
	add := func(a playbook.Attempt) {
		if !a.Verified {
			return
		}
		for _, o := range []forge.Object{answers(d, number), {Kind: forge.ObjectIssue, ID: number}} {
			if a.Ref == ref(o) {
				out[o] = append(out[o], record{Record: comment.Record{Attempt: a, Source: sourceProbe}})
				return
			}
		}
	}
	for _, a := range d.Counted {
		add(a)
	}
	for _, a := range d.Ignored {
		add(a.Attempt)
	}
	return out
}
