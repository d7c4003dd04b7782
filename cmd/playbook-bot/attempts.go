package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/playbook"
)

const attemptsHelp = `The attempts FILE is JSON (comments and trailing commas are fine) or YAML, and
holds one attempt, a list of them, or an object with prior_recovery_attempts:

  {"action": "client_reconnect", "outcome": "insufficient",
   "reason": "still closed", "actor": "ada",
   "recorded_at": "2026-12-01T03:00:00Z"}

A record without recorded_at counts as made now. "-" is standard input.`

// attempts reads an attempts FILE; none where file is empty. at stands in for
// the time the text reached a forge.
func (a *app) attempts(p *playbook.Playbook, file string, at time.Time) (playbook.ParsedAttempts, error) {
	if file == "" {
		return playbook.ParsedAttempts{About: true}, nil
	}
	text, err := a.read("--attempts", file)
	if err != nil {
		return playbook.ParsedAttempts{}, fmt.Errorf("read the attempts: %w", err)
	}
	parsed := p.ReadAttempts(text, playbook.Context{At: at})
	for i := range parsed.Attempts {
		// A file has reached no forge; at was only the default of times.
		parsed.Attempts[i].PostedAt = time.Time{}
	}
	return parsed, nil
}

// readable turns a file of which nothing could be read into an error, for
// answers that without it would be about something else than was asked.
func readable(file string, parsed playbook.ParsedAttempts) error {
	if len(parsed.Attempts) == 0 && len(parsed.Rejections) > 0 {
		return fmt.Errorf("nothing in %s could be read as an attempt", file)
	}
	return nil
}

// values are the attempts without the lines they stood on.
func values(parsed playbook.ParsedAttempts) []playbook.Attempt {
	list := make([]playbook.Attempt, 0, len(parsed.Attempts))
	for _, l := range parsed.Attempts {
		list = append(list, l.Attempt)
	}
	return list
}

// gateFlags are the flags of assess and impact alike.
type gateFlags struct {
	standing   string
	roles      []string
	authorized bool
	now        time.Time
}

func (g *gateFlags) add(cmd *cobra.Command) {
	g.standing = playbook.PermissionUnknown.String()
	var words []string
	for perm := playbook.PermissionUnknown; perm <= playbook.PermissionOwner; perm++ {
		words = append(words, perm.String())
	}
	fl := cmd.Flags()
	fl.Var(enumFlag{&g.standing, words}, "standing", "what the one who asks may do in the repository; unknown is denied")
	fl.StringArrayVar(&g.roles, "role", nil, "a role from the playbook's roles section, such as controller; repeatable")
	fl.BoolVar(&g.authorized, "break-glass-authorized", false, "an operator has authorised break-glass for this request")
	fl.Var(timeFlag{&g.now}, "now", "decide as of this `TIME`, RFC 3339; default: now")
}

func (g *gateFlags) who() playbook.Standing {
	perm, _ := playbook.ParsePermission(g.standing) // the flag took only known words
	return playbook.Standing{Permission: perm, Roles: append([]string{}, g.roles...)}
}

// at is --now, or the clock.
func (g *gateFlags) at(a *app) time.Time {
	if g.now.IsZero() {
		return a.now().UTC()
	}
	return g.now.UTC()
}
