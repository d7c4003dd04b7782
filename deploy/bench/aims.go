//go:build unix

package main

import (
	"fmt"
	"time"
)

// The aims of issue 6.
const (
	shareOfBare   = 0.5
	halfRateP99   = 50 * time.Millisecond
	medianToEcho  = 1.3
	p99ToEcho     = 2.0
	warmCalls     = 2
	approvalCalls = 3
	growthMost    = 0.10
)

const noGitea = "no built Gitea: run deploy/sandbox once"

// aims judges what was measured.
func (r *report) aims() (all []aim) {
	for _, name := range []string{"ours, SQLite", "ours, PostgreSQL"} {
		all = append(all, r.intakeAims(name)...)
	}
	all = append(all, r.answerAims()...)
	all = append(all, r.callAims()...)
	return append(all, r.growth.aims()...)
}

func (r *report) intakeAims(name string) []aim {
	all := []aim{
		{what: fmt.Sprintf("%s: at %d connections at least Debian's webhook", name, atConns)},
		{what: fmt.Sprintf("%s: at %d connections at least half of the bare handler", name, atConns)},
		{what: fmt.Sprintf("%s: p99 under %s at half of its top rate", name, halfRateP99)},
		{what: name + ": every 202 in the database after SIGKILL"},
	}
	if r.intake == nil || r.intake.at[name] == nil {
		return all
	}
	rate := func(name string) float64 { return r.intake.at[name][atConns].rate }
	against := func(a *aim, other string, share float64) {
		if rate(other) > 0 {
			*a = aim{what: a.what, measured: true, met: rate(name) >= share*rate(other),
				got: fmt.Sprintf("%.0f/s to %.0f/s: %.2f", rate(name), rate(other), rate(name)/rate(other))}
		}
	}
	all[0].got = "no webhook in PATH"
	against(&all[0], "Debian's webhook", 1)
	against(&all[1], "bare handler", shareOfBare)
	half := r.intake.halfTop[name]
	p99 := half.quantile(.99)
	all[2] = aim{what: all[2].what, measured: true, met: half.failed == 0 && p99 < halfRateP99,
		got: fmt.Sprintf("%s at %.0f/s", ms(p99), half.rate())}
	lost := r.intake.lost[name]
	all[3] = aim{what: all[3].what, measured: true, met: lost == 0, got: fmt.Sprintf("%d lost", lost)}
	return all
}

func (r *report) answerAims() []aim {
	all := []aim{
		{what: fmt.Sprintf("answer on Gitea: median within %.1f times the echo bot's", medianToEcho), got: noGitea},
		{what: fmt.Sprintf("answer on Gitea: p99 within %.1f times the echo bot's", p99ToEcho), got: noGitea},
	}
	if r.answers == nil {
		return all
	}
	for i, want := range []struct{ q, most float64 }{{.5, medianToEcho}, {.99, p99ToEcho}} {
		ours, echo := r.answers.ours.quantile(want.q), r.answers.echo.quantile(want.q)
		if echo > 0 {
			times := float64(ours) / float64(echo)
			all[i] = aim{what: all[i].what, measured: true, met: times <= want.most,
				got: fmt.Sprintf("%s to %s: %.2f", ms(ours), ms(echo), times)}
		}
	}
	return all
}

func (r *report) callAims() []aim {
	all := []aim{
		{what: fmt.Sprintf("a warm answer takes %d calls beside reactions and labels, at every length", warmCalls)},
		{what: fmt.Sprintf("an approval takes %d calls beside those and the look for the repository's playbook", approvalCalls)},
		{what: "a cold answer takes at most one listing"},
	}
	counts := r.calls
	if r.answers != nil {
		counts = append(counts[:len(counts):len(counts)], r.answers.long)
	}
	if len(counts) == 0 {
		return all
	}
	for i := range all {
		all[i].measured, all[i].met = true, true
	}
	for _, c := range counts {
		all[0].note(c.warm.own() <= warmCalls, c.warm.own())
		all[1].note(c.approval.own() <= approvalCalls, c.approval.own())
		all[2].note(c.cold[kindListing] <= 1, c.cold[kindListing])
	}
	return all
}

// note adds one figure to an aim that all of several must meet.
func (a *aim) note(met bool, n int) {
	a.met = a.met && met
	if a.got != "" {
		a.got += ", "
	}
	a.got += fmt.Sprint(n)
}
