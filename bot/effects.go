package bot

import (
	"context"
	"slices"

	"playbook-bot/bot/forge"
	"playbook-bot/templates"
)

// maxEffectTries bounds the tries to set labels and reactions: they are a
// courtesy, no proof, and never cost an answer.
const maxEffectTries = 3

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

func (s *session) needsEffects() bool {
	if !s.b.NoReactions && len(s.st.Reactions) > 0 {
		return true
	}
	return !s.b.NoLabels && !s.st.Gone && !slices.Equal(s.st.labels(), s.st.Labels)
}

// effects sets labels and gives reactions as the state asks. Both are
// idempotent, so a crash between deed and record repeats them harmlessly.
func (s *session) effects(ctx context.Context) error {
	err := s.applyEffects(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.b.Log.WarnContext(ctx, "labels or reactions not set", "thread", s.t.Number, "error", err)
		s.st.EffectTries++
	}
	if err == nil || s.st.EffectTries >= maxEffectTries {
		s.st.EffectTries = 0
		s.st.Labels, s.st.Reactions = s.st.labels(), nil
	}
	return s.commit(ctx)
}

func (s *session) applyEffects(ctx context.Context) error {
	if want := s.st.labels(); !s.b.NoLabels && !slices.Equal(want, s.st.Labels) {
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
	}
	if s.b.NoReactions {
		return nil
	}
	for _, p := range s.st.Reactions {
		s.b.Fail("reacting")
		if err := s.forge.React(ctx, s.t.Repo.ID, s.t.Number, p.Object, p.Reaction, true); err != nil {
			return err
		}
		s.b.Fail("reacted")
	}
	return nil
}

// seen tells the author at once that the text was noticed. Nothing waits for
// it and nothing depends on it, so its error is not even kept.
func (s *session) seen(ctx context.Context, o forge.Object) {
	if s.b.NoReactions {
		return
	}
	s.b.courtesies.Go(func() {
		_ = s.forge.React(ctx, s.t.Repo.ID, s.t.Number, o, forge.ReactionSeen, true)
	})
}
