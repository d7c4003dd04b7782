package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot/comment"
	"playbook-bot/playbook"
)

type explainFlags struct {
	author, bot string
	at          time.Time
	json        bool
}

func (a *app) explain() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:     "explain FILE",
		GroupID: groupOffline,
		Short:   "What would the bot read in this comment?",
		Long: `explain reads the Markdown of a comment or issue, and prints what in it is
meant for the bot: commands, attempt records, the restart-request form, and
what it could not take, each with its line and a line that works as pasted. It
runs nothing. FILE "-" is standard input. A form counts only in an issue's own
text, and is shown here wherever it stands.

Where a record names no actor or time, the author's and the text's are taken:
say them with --author and --at. Without, such a record has none.

Ends with 0 where the text could be read, whatever was rejected in it; with 3
where the bot would take nothing of it at all (too long, too many commands).`,
		Example: `  playbook-bot explain comment.md
  playbook-bot explain - --author ada --at 2026-12-01T03:04:05Z --json < comment.md`,
		Args: oneArg("FILE", "a Markdown text, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error { return a.runExplain(args[0], f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.author, "author", "", "`LOGIN` of the one who wrote it")
	fl.Var(timeFlag{&f.at}, "at", "`TIME` at which the text reached the forge, RFC 3339")
	fl.StringVar(&f.bot, "bot", "playbook-bot", "the bot's own `LOGIN`: \"@LOGIN restart …\" is a command")
	fl.BoolVar(&f.json, "json", false, `print {"commands", "records", "rejections", "form"}`)
	return cmd
}

func (a *app) runExplain(file string, f explainFlags) error {
	p, err := a.book()
	if err != nil {
		return err
	}
	text, err := a.read("FILE", file)
	if err != nil {
		return err
	}
	r := comment.Parse(text, comment.Options{
		Playbook: p, Bot: f.bot, Issue: true,
		Context: playbook.Context{Author: f.author, At: f.at},
	})
	if f.json {
		err = a.printJSON(comment.Explain(r))
	} else {
		a.printRead(r)
	}
	if err == nil && r.Refused {
		err = errRefused
	}
	return err
}

func (a *app) printRead(r comment.Read) {
	pg := &page{w: a.stdout}
	if r.Form != nil {
		form := r.Form
		pg.head("A restart request by the form: %s%s", form.Action, onTarget(form.Target))
		pg.details(form.Symptoms, form.Reason)
		if form.BreakGlass {
			pg.item("with break-glass")
		}
		if form.Problem != nil {
			pg.item("not a request, because %s", form.Problem.Why)
			pg.paste(form.Problem.Suggestion)
		}
	}
	if len(r.Commands) > 0 {
		pg.head("Commands:")
		for _, c := range r.Commands {
			words := []string{"/" + c.Name}
			for _, w := range []string{c.Action, c.Outcome, c.Request, c.Topic} {
				if w != "" {
					words = append(words, w)
				}
			}
			pg.item("line %d: %s%s", c.Line, strings.Join(words, " "), onTarget(c.Target))
			pg.details(c.Symptoms, c.Reason)
			if c.Problem != nil {
				pg.item("  does not run: %s", c.Problem.Why)
				pg.paste(c.Problem.Suggestion)
			}
		}
	}
	if len(r.Records) > 0 {
		pg.head("Attempts:")
		for _, rec := range r.Records {
			pg.item("line %d (%s): %s", rec.Line, rec.Source, attemptText(rec.Attempt))
		}
	}
	pg.rejections(r.Rejections)
	pg.notes(r.Notes)
	if !pg.started {
		fmt.Fprintln(a.stdout, "Nothing in it is for the bot: it would stay silent.")
	}
}

// details are a request's symptoms and reason.
func (p *page) details(symptoms []string, reason string) {
	if len(symptoms) > 0 {
		p.item("  symptoms: %s", strings.Join(symptoms, ", "))
	}
	if reason != "" {
		p.item("  reason: %q", reason)
	}
}
