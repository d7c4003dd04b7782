//go:build unix

package main

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// report is what a run found. Parts that were not measured are nil.
type report struct {
	*bench
	intake  *intakeTable
	calls   []callsOf
	answers *answerTimes
	growth  *growthTable
}

// aim is one thing the bot is to reach.
type aim struct {
	what string
	met  bool
	// got says what was measured, or why nothing was.
	got      string
	measured bool
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "playbook-bot on loopback: %s %s/%s, %d processors, %.0f s", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), time.Since(r.begun).Seconds())
	if load := loadAverage(); load != "" {
		fmt.Fprintf(out, ", load %s at the end", load)
	}
	fmt.Fprintln(out)
	if r.intake != nil {
		r.printIntake(out)
	}
	if r.answers != nil {
		r.printAnswers(out)
	}
	if len(r.calls) > 0 || r.answers != nil {
		r.printCalls(out)
	}
	if r.growth != nil {
		r.growth.print(out)
	}
	fmt.Fprintln(out, "\nAims")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, a := range r.aims() {
		mark := "missed"
		switch {
		case !a.measured:
			mark = "not measured"
		case a.met:
			mark = "met"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", mark, a.what, a.got)
	}
	_ = w.Flush()
}

func (r *report) printIntake(out io.Writer) {
	fmt.Fprintf(out, "\nIntake: distinct signed deliveries of %d bytes, %d rounds of %s in turns\n", len(r.template.body), r.rounds, r.round)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "receiver\tconnections\tper second\tp50\tp99\tCPU each\tmemory\t")
	for _, name := range r.intake.names {
		for _, conns := range connections {
			m := r.intake.at[name][conns]
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%s\t%s\t%s\t%s\t\n", name, conns, m.rate, ms(m.quantile(.5)), ms(m.quantile(.99)),
				us(m.cpu), mb(m.memory))
		}
		half := r.intake.halfTop[name]
		fmt.Fprintf(w, "%s\t%d, half rate\t%.0f\t%s\t%s\t\t\t\n", name, atConns, half.rate(), ms(half.quantile(.5)), ms(half.quantile(.99)))
	}
	_ = w.Flush()
	fmt.Fprintln(out, "CPU is the receiver's with its database's; memory is the receiver's alone.")
}

func (r *report) printAnswers(out io.Writer) {
	a := r.answers
	fmt.Fprintf(out, "\nAnswers on the real Gitea, from the comment's 201 to the answer's, %d each, in turns\n", len(a.ours.latencies))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "bot\tmedian\tp99\t")
	fmt.Fprintf(w, "echo\t%s\t%s\t\n", ms(a.echo.quantile(.5)), ms(a.echo.quantile(.99)))
	fmt.Fprintf(w, "ours\t%s\t%s\t\n", ms(a.ours.quantile(.5)), ms(a.ours.quantile(.99)))
	_ = w.Flush()
}

func (r *report) printCalls(out io.Writer) {
	fmt.Fprintln(out, "\nAPI calls of an answer, + the look for the repository's own playbook + reactions and labels; the answer's time")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "thread\tcold\t\twarm\t\tapproval\t\t")
	row := func(what string, c callsOf) {
		fmt.Fprintf(w, "%s\t", what)
		for i, k := range []counted{c.cold, c.warm, c.approval} {
			fmt.Fprintf(w, "%d + %d + %d\t%s\t", k.own(), k[kindPlaybook], k.beside(), ms(c.took[i]))
		}
		fmt.Fprintln(w)
	}
	for _, c := range r.calls {
		row(fmt.Sprintf("%d comments, fake", c.length), c)
	}
	if r.answers != nil {
		row(fmt.Sprintf("%d comments, Gitea", r.answers.long.length), r.answers.long)
	}
	_ = w.Flush()
	if len(r.calls) > 0 {
		last := r.calls[len(r.calls)-1]
		last.cold.print(out, "cold")
		last.approval.print(out, "approval")
	}
}

// print lists the calls by kind.
func (c counted) print(out io.Writer, name string) {
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(out, "  %s: %d × %s\n", name, c[kind], kind)
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }

func us(d time.Duration) string {
	if d == 0 {
		return "?"
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

func mb(n int64) string {
	if n == 0 {
		return "?"
	}
	return fmt.Sprintf("%d MB", n>>20)
}
