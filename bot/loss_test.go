package bot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
)

// TestHistoriesUnderLoss plays random histories in which deliveries are lost,
// doubled and out of order, and the database is lost. What the bot then knows
// depends on what it heard when; what must hold is less, and must hold always.
func TestHistoriesUnderLoss(t *testing.T) {
	for i := range uint64(*modelSeeds) {
		seed := *modelFirst + i
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			people, logins := historyPeople()
			inBubbleWith(t, worldOptions{people: people}, func(w *world) {
				p := &player{w: w, r: rand.New(rand.NewPCG(seed, 11)), people: logins}
				p.m = &model{standing: map[string]string{}, lines: map[int64]*line{}}
				for _, one := range people {
					p.m.standing[one.Login] = one.Permission
				}
				p.n = w.opens(logins[0], "search is down")
				p.m.number = p.n
				for range 15 {
					p.chaos()
					p.quiesce()
					if why := p.unsafe(); why != "" {
						w.t.Fatalf("after\n\t%s\n%s\nsaid: %s", strings.Join(p.log, "\n\t"), why, strings.Join(w.heads(p.n), "\n\t"))
					}
				}
				w.quiet()
			})
		})
	}
}

// chaos is a few acts of which the bot hears what it hears.
func (p *player) chaos() {
	p.w.forge.Hold(true)
	for range 1 + p.r.IntN(4) {
		switch k := p.r.IntN(10); {
		case k < 6:
			p.comment()
		case k < 8:
			p.edit()
		case k < 9:
			p.delete()
		default:
			p.toggle()
		}
		pass(time.Duration(2+p.r.IntN(20)) * time.Second)
	}
	held := p.w.forge.Take()
	p.w.forge.Hold(false)
	var sent []forgetest.Delivery
	for _, d := range held {
		switch p.r.IntN(4) {
		case 0:
			p.note("lost: %s", d.Event)
		case 1:
			sent = append(sent, d, p.w.forge.Redelivered(d))
		default:
			sent = append(sent, d)
		}
	}
	if p.r.IntN(2) == 0 {
		p.note("out of order")
		p.r.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	}
	for _, d := range sent {
		p.w.forge.Send(d)
		if p.r.IntN(3) == 0 {
			p.w.must(p.w.bot.Drain(context.Background()))
		}
	}
	switch p.r.IntN(6) {
	case 0:
		p.note("the bot restarts")
		p.w.restart()
	case 1:
		p.note("the database is lost")
		p.w.loseDatabase()
	}
}

func (p *player) toggle() {
	closed := !p.w.forge.Issue(repoName, p.n).Closed
	p.note("closed=%v", closed)
	if closed {
		p.w.must(p.w.forge.CloseIssue(p.people[0], repoName, p.n))
	} else {
		p.w.must(p.w.forge.Reopen(p.people[0], repoName, p.n))
	}
}

// quiesce lets the bot find out all that it can.
func (p *player) quiesce() {
	p.w.advance(time.Minute)
	for range 3 {
		p.w.must(p.w.bot.Sweep(context.Background(), "gitea"))
		p.w.advance(5 * time.Minute)
	}
}

// unsafe says what does not hold that must.
func (p *player) unsafe() string {
	st, is := p.w.state(p.n), p.w.forge.Issue(repoName, p.n)
	if st.Closed != is.Closed {
		return fmt.Sprintf("closed: the forge says %v", is.Closed)
	}
	if why := p.lostRecord(st.Request != nil); why != "" {
		return why
	}
	if st.Request == nil {
		return ""
	}
	trigger := st.Request.Trigger
	if l := p.stands(trigger.ID); l == nil || l.verb != "restart" || l.action != st.Request.Action {
		return fmt.Sprintf("request %s rests on comment %d, which does not ask for it", st.Request.ID, trigger.ID)
	}
	if st.Approval == nil {
		return ""
	}
	actor := st.Request.Requester.Login
	if e := st.Request.Endorsement; e != nil {
		if l := p.stands(e.Comment.ID); l == nil || l.verb != "endorse" || l.author == actor {
			return fmt.Sprintf("the endorsement by %s rests on comment %d", e.By.Login, e.Comment.ID)
		}
		actor = e.By.Login
	}
	if is.Closed || !p.m.has(actor, needs(st.Request.Action)) {
		return fmt.Sprintf("approved by %s, who is %s; closed %v", actor, p.m.standing[actor], is.Closed)
	}
	for id, l := range p.m.lines {
		if p.stands(id) != nil && l.verb == "attempt" && l.what == "failed" && !l.foreign && rank(l.action) < rank(st.Request.Action) {
			return ""
		}
	}
	return "approved without evidence"
}

// stands is a text that is there.
func (p *player) stands(id int64) *line {
	l := p.m.lines[id]
	if l == nil || l.deleted {
		return nil
	}
	return l
}

// lostRecord finds an attempt that its author posted and nobody touched, and
// that is not in the log; and, where the thread is open and so listed, one that
// is in the log and gone.
func (p *player) lostRecord(listed bool) string {
	objects, err := p.w.ledger.Objects(context.Background(), p.w.thread(p.n).ID)
	p.w.must(err)
	have := map[int64]bool{}
	for _, o := range objects {
		var data struct {
			Records []struct{ Altered bool }
		}
		if len(o.Data) > 0 {
			p.w.must(json.Unmarshal(o.Data, &data))
		}
		have[o.ID] = o.Kind == forge.ObjectComment && len(data.Records) > 0 && !data.Records[0].Altered
	}
	for id, l := range p.m.lines {
		c := p.stands(id)
		if c != nil && l.verb == "attempt" && !l.edited && !have[id] {
			return fmt.Sprintf("the attempt of comment %d is lost", id)
		}
		if c == nil && have[id] && listed {
			return fmt.Sprintf("the attempt of comment %d is in the log, and deleted", id)
		}
	}
	return ""
}
