package bot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/templates"
)

// maxEffectTries bounds the tries to set labels and reactions: they are a
// courtesy, no proof, and never cost an answer.
const maxEffectTries = 6

// labels are what the thread's state asks for.
func (s *state) labels() []string {
	out := []string{}
	switch {
	case s.Approval != nil:
		out = append(out, templates.LabelApproved)
	case s.Request != nil && s.Request.Verdict == verdictRefused:
		out = append(out, templates.LabelRefused)
	case s.Request != nil && s.Request.Verdict == verdictApproved && !s.Request.MustAsk:
		out = append(out, templates.LabelApproved)
	case s.Request != nil:
		out = append(out, templates.LabelRequested)
	case s.Ended == stateRecovered:
		out = append(out, templates.LabelRecovered)
	}
	if s.Contaminated {
		out = append(out, templates.LabelContaminated)
	}
	if s.BreakGlassUsed || s.Request != nil && s.Request.BreakGlass {
		out = append(out, templates.LabelBreakGlass)
	}
	return out
}

// lacksEffects reports whether labels or reactions are not as they should be,
// needsEffects whether something is to be done about it now.
func (s *session) lacksEffects() bool {
	if !s.b.NoReactions && len(s.st.Reactions) > 0 {
		return true
	}
	return !s.b.NoLabels && !s.st.Gone && !slices.Equal(s.st.labels(), s.st.Labels)
}

func (s *session) needsEffects() bool { return s.lacksEffects() && !s.st.EffectsAt.After(s.now) }

// effects sets labels and gives reactions as the state asks. Both are
// idempotent, so a crash between deed and record repeats them harmlessly. What
// fails is tried again, later and later, while the conversation goes on.
func (s *session) effects(ctx context.Context) error {
	err := errors.Join(s.applyLabels(ctx), s.applyReactions(ctx))
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	s.st.EffectsAt = time.Time{}
	if err == nil {
		s.st.EffectTries = 0
		return s.commit(ctx)
	}
	s.b.Log.WarnContext(ctx, "labels or reactions not set", "thread", s.t.Number, "tries", s.st.EffectTries+1, "error", err)
	var fe *forge.Error
	if !errors.As(err, &fe) || fe.RetryAfter == 0 { // waiting as told is no failed try
		s.st.EffectTries++
	}
	if s.st.EffectTries < maxEffectTries {
		s.st.EffectsAt = s.now.Add(backoff(max(s.st.EffectTries-1, 0), err))
		return s.commit(ctx)
	}
	s.b.Log.ErrorContext(ctx, "labels or reactions given up", "thread", s.t.Number, "error", err)
	s.observe = append(s.observe, Observation{What: "effects_dropped"})
	s.st.EffectTries, s.st.Labels, s.st.Reactions = 0, s.st.labels(), nil
	return s.commit(ctx)
}

// effectsAnew tries at once to set what a decision has changed, unless the
// forge asked to be left alone for long.
func (s *state) effectsAnew(now time.Time) {
	if s.EffectsAt.Sub(now) <= time.Hour {
		s.EffectTries, s.EffectsAt = 0, time.Time{}
	}
}

func (s *session) applyLabels(ctx context.Context) error {
	want := s.st.labels()
	if s.b.NoLabels || s.st.Gone || slices.Equal(want, s.st.Labels) {
		return nil
	}
	var add, remove []string
	for _, l := range want {
		if !slices.Contains(s.st.Labels, l) {
			add = append(add, l)
		}
	}
	for _, l := range s.st.Labels {
		if !slices.Contains(want, l) {
			remove = append(remove, l)
		}
	}
	s.b.Fail("labelling")
	if err := s.forge.SetLabels(ctx, s.t.Repo.ID, s.t.Number, add, remove); err != nil {
		return err
	}
	s.b.Fail("labelled")
	s.st.Labels = want
	return nil
}

// applyReactions gives the reactions that wait, and keeps those that could
// not be given. One on a text that is gone concerns nobody any more.
func (s *session) applyReactions(ctx context.Context) error {
	if s.b.NoReactions {
		s.st.Reactions = nil
	}
	var errs []error
	var left []pendingReaction
	for _, p := range s.st.Reactions {
		s.b.Fail("reacting")
		err := s.forge.React(ctx, s.t.Repo.ID, s.t.Number, p.Object, p.Reaction, true)
		if o := s.objects[p.Object]; err != nil && !(gone(err) && o != nil && o.Deleted) {
			errs, left = append(errs, err), append(left, p)
		}
		s.b.Fail("reacted")
	}
	s.st.Reactions = left
	return errors.Join(errs...)
}

// seen tells the author that the text was noticed, if the answer does not say
// so first. Nothing waits for it and nothing depends on it, so its error is not
// even kept.
func (s *session) seen(ctx context.Context, o forge.Object) {
	if s.b.NoReactions {
		return
	}
	s.courtesy.hold(func() {
		_ = s.forge.React(ctx, s.t.Repo.ID, s.t.Number, o, forge.ReactionSeen, true)
	})
}

// courtesyDelay is how long a first look's reaction waits for the answer: it is
// to be there within a second.
const courtesyDelay = 400 * time.Millisecond

// courtesy holds the first look's reactions of one lease back until an answer
// is out, the lease ends or courtesyDelay is over. Sent at once they are in the
// answer's way: a forge on SQLite writes one thing after the other, and where
// the two meet it waits before it tries again.
type courtesy struct {
	b     *Bot
	mu    sync.Mutex
	held  []func()
	timer *time.Timer
}

func (c *courtesy) hold(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = append(c.held, f)
	if c.timer == nil {
		c.timer = time.AfterFunc(courtesyDelay, c.pay)
	}
}

// pay sends what is held on its way, and waits for nothing.
func (c *courtesy) pay() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	for _, f := range c.held {
		c.b.courtesies.Go(f)
	}
	c.held = nil
}
