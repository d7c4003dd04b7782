package bot_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/golden"
)

var (
	modelSeeds = flag.Int("model.seeds", 12, "how many random histories to play against the model")
	modelFirst = flag.Uint64("model.first", 1, "the seed of the first")
)

// player plays one random history on the bot and on the model.
type player struct {
	w      *world
	m      *model
	r      *rand.Rand
	n      int64
	people []string
	log    []string
}

func historyPeople() (people []golden.Person, logins []string) {
	for i, permission := range []string{"owner", "admin", "admin", "write", "write", "read", "read", "read"} {
		p := golden.Person{Login: fmt.Sprintf("%s%d", permission, i), Permission: permission}
		people, logins = append(people, p), append(logins, p.Login)
	}
	return people, logins
}

// TestModel plays random histories of people, restarts, crashes, redelivered
// and doubled deliveries, and a forge that fails now and then, and compares the
// state with the model's after every act.
func TestModel(t *testing.T) {
	for i := range uint64(*modelSeeds) {
		seed := *modelFirst + i
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			people, logins := historyPeople()
			inBubbleWith(t, worldOptions{people: people}, func(w *world) {
				p := &player{w: w, r: rand.New(rand.NewPCG(seed, 7)), people: logins}
				p.m = &model{standing: map[string]string{}, lines: map[int64]*line{}}
				for _, one := range people {
					p.m.standing[one.Login] = one.Permission
				}
				p.n = w.opens(logins[0], "search is down")
				p.m.number = p.n
				for range 40 {
					p.act()
					if got, want := p.botState(), p.m.String(); got != want {
						t.Fatalf("after\n\t%s\nthe bot has   %s\nthe model has %s\nsaid: %s", strings.Join(p.log, "\n\t"), got, want, strings.Join(w.heads(p.n), "\n\t"))
					}
				}
				w.quiet()
				if dead := append(w.dead(), w.ledger.notes...); len(dead) > 0 {
					t.Errorf("dead: %v", dead)
				}
			})
		})
	}
}

func (p *player) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *player) someone() string { return p.people[p.r.IntN(len(p.people))] }

func pick[T any](p *player, of ...T) T { return of[p.r.IntN(len(of))] }

// act does one thing.
func (p *player) act() {
	k := p.r.IntN(20)
	if k < 16 {
		p.disturb()
	}
	switch {
	case k < 11:
		p.comment()
	case k < 14:
		p.edit()
	case k < 15:
		p.delete()
	case k < 16:
		closed := !p.m.closed
		if closed && p.r.IntN(3) > 0 {
			break // most incidents stay open
		}
		p.note("closed=%v", closed)
		if closed {
			p.w.must(p.w.forge.CloseIssue(p.people[0], repoName, p.n))
		} else {
			p.w.must(p.w.forge.Reopen(p.people[0], repoName, p.n))
		}
		p.m.setClosed(closed, time.Now())
	case k < 17:
		login, right := pick(p, p.people[1:]...), pick(p, "read", "write", "admin")
		p.note("%s becomes %s", login, right)
		p.w.forge.AddCollaborator(repoName, login, right)
		p.m.standing[login] = right
		p.advance(61 * time.Second) // beyond what is kept
	case k < 18:
		p.note("the bot restarts")
		p.w.restart()
	case k < 19:
		p.redeliver()
	default:
		p.advance(time.Duration(1+p.r.IntN(90)) * time.Minute)
	}
	p.work()
	p.advance(time.Duration(60+p.r.IntN(300)) * time.Second)
}

// work lets the bot finish, a crash on the way included.
func (p *player) work() {
	if p.w.crash != "" {
		p.w.forge.Settle()
		if p.w.dies() {
			p.note("it died at %q", p.w.crash)
		}
		p.w.crash = ""
		p.w.restart()
	}
	p.w.settleFor(4 * time.Minute)
	for _, f := range p.w.faults {
		f.Cancel()
	}
	p.w.faults = nil
}

func (p *player) advance(d time.Duration) {
	p.note("%v pass", d)
	p.w.advance(d)
	p.m.tick(time.Now())
}

// disturb makes something fail in what follows, now and then. Nothing of it
// may show.
func (p *player) disturb() {
	if p.r.IntN(4) == 0 {
		p.w.crash = pick(p, "reading", "read", "listed", "deciding", "decided", "claiming", "claimed", "posted", "recorded", "labelling",
			"labelled", "reacting", "reacted", "releasing", "released")
	}
	if p.r.IntN(4) == 0 {
		kind := pick(p, "comment.create", "comment.read", "comment.list", "label.add", "reaction.add", "repo.by_id", "issue.read")
		fault := pick(p, forgetest.AnswerDone(500), forgetest.Answer(500), forgetest.DroppedDone(), forgetest.Dropped(), forgetest.Answer(401),
			forgetest.Answer(404), forgetest.RateLimited(429, 20*time.Second), forgetest.Late(30*time.Second), forgetest.GatewayPage(502),
			forgetest.Fault{Truncate: true})
		p.note("%s will fail: %+v", kind, fault.Status)
		p.w.faults = append(p.w.faults, p.w.forge.OrderKind(kind, fault))
	}
}

func (p *player) randomLine(author string) line {
	l := line{author: author, verb: pick(p, "restart", "restart", "attempt", "attempt", "attempt", "endorse", "endorse", "resolved", "withdraw", "remark")}
	switch l.verb {
	case "restart":
		l.action, l.what = pick(p, "full_mcp_restart", "full_mcp_restart", "host_restart", "rolling_mcp_restart", "worker_restart", "client_reconnect"), pick(p, "", "", "search")
		if r := p.m.request; r != nil && p.r.IntN(3) == 0 {
			l.action, l.what = r.action, r.target
		}
	case "attempt":
		l.action, l.what = pick(p, "client_reconnect", "capability_refresh", "worker_restart", "full_mcp_restart"), pick(p, "failed", "failed", "partial")
	case "resolved":
		l.action = pick(p, "client_reconnect", "full_mcp_restart")
	case "endorse":
		l.what = fmt.Sprintf("%d/%d", p.n, max(1, p.m.last-p.r.IntN(2)))
	}
	return l
}

func (p *player) comment() {
	l := p.randomLine(p.someone())
	if r := p.m.request; r != nil && l.verb != "endorse" && p.r.IntN(3) == 0 {
		l.author = r.by
	}
	l.id = p.w.posts(l.author, p.n, l.body())
	p.note("%d: %s says %q", l.id, l.author, l.body())
	p.m.said(l, time.Now())
	p.w.forge.Settle()
}

// standingLine is a text that still stands, preferably one that matters.
func (p *player) standingLine() *line {
	var all []*line
	for _, c := range p.w.forge.Comments(repoName, p.n) {
		if l := p.m.lines[c.ID]; l != nil && !l.deleted {
			all = append(all, l)
			if r := p.m.request; r != nil && (r.trigger == l.id || r.endorsement == l.id) || l.verb == "attempt" && l.what == "failed" && l.id > p.m.since {
				all = append(all, l, l)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[p.r.IntN(len(all))]
}

func (p *player) edit() {
	l := p.standingLine()
	if l == nil {
		return
	}
	to := *l
	if p.r.IntN(2) == 0 {
		to.note = fmt.Sprintf("a word more, %d", p.r.IntN(1000))
	} else {
		to = p.randomLine(l.author)
		if p.r.IntN(2) == 0 {
			to = line{author: l.author, verb: "attempt", action: "client_reconnect", what: pick(p, "failed", "partial")}
		}
		to.id = l.id
	}
	by := l.author
	if p.r.IntN(2) == 0 {
		by = p.people[0]
	}
	p.note("%d: %s edits it to %q", l.id, by, to.body())
	same := to.body() == l.body()
	p.w.must(p.w.forge.EditComment(by, l.id, to.body()))
	if !same {
		p.m.edited(l.id, to, by, time.Now())
	}
}

func (p *player) delete() {
	l := p.standingLine()
	if l == nil {
		return
	}
	p.note("%d: deleted", l.id)
	p.w.must(p.w.forge.DeleteComment(p.people[0], l.id))
	p.m.deleted(l.id, time.Now())
}

// redeliver sends again what was sent before.
func (p *player) redeliver() {
	all := p.w.forge.Deliveries()
	for range 3 {
		d := all[p.r.IntN(len(all))]
		p.note("again: %s", d.Event)
		p.w.forge.Send(p.w.forge.Redelivered(d))
	}
}

// botState is the bot's state in the model's words.
func (p *player) botState() string {
	st := p.w.state(p.n)
	var b strings.Builder
	fmt.Fprintf(&b, "closed=%v", st.Closed)
	if r := st.Request; r != nil {
		endorser := ""
		if r.Endorsement != nil {
			endorser = r.Endorsement.By.Login
		}
		fmt.Fprintf(&b, " request=%s %s %q by %s endorser=%q verdict=%s approved=%v", r.ID, r.Action, r.Target, r.Requester.Login, endorser, r.Verdict,
			st.Approval != nil)
		fmt.Fprintf(&b, " counted=%d", p.m.counting(p.m.orEmpty()))
	}
	return b.String()
}

func (m *model) orEmpty() *modelRequest {
	if m.request == nil {
		return &modelRequest{}
	}
	return m.request
}
