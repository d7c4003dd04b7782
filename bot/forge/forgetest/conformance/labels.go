package conformance

import (
	"slices"
	"strings"
	"testing"

	"playbook-bot/bot/forge"
)

// labelFacts are about labels.
var labelFacts = map[string]func(*testing.T, *world){
	"ALabelOfAScopeTakesTheOthersOff": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		for _, name := range []string{"recovery/requested", "recovery/refused", "recovery/approved"} {
			mustDo(t, w.bot.SetLabels(t.Context(), w.repo.ID, n, []string{name, "recovery-contaminated"}, nil))
			w.wantLabels(t, n, "recovery-contaminated", name)
		}
	},
	"LabelsOfOthersAreKept": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		w.label(t, n, "bug")
		w.label(t, n, "area/network")
		mustDo(t, w.bot.SetLabels(t.Context(), w.repo.ID, n, []string{"recovery/approved"}, nil))
		w.wantLabels(t, n, "area/network", "bug", "recovery/approved")
		mustDo(t, w.bot.SetLabels(t.Context(), w.repo.ID, n, nil, []string{"recovery/approved", "never-there"}))
		w.wantLabels(t, n, "area/network", "bug")
	},
	"SettingWhatStandsIsOneCall": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		mustDo(t, w.bot.SetLabels(t.Context(), w.repo.ID, n, []string{"recovery/approved"}, nil))
		calls := w.counted(func() {
			mustDo(t, w.bot.SetLabels(t.Context(), w.repo.ID, n, []string{"recovery/approved"}, []string{"recovery/refused"}))
		})
		if calls != "issue.read" {
			t.Errorf("calls %q", calls)
		}
	},
	"ALabelThatWasDeletedIsMadeAgain": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		mustDo(t, w.bot.SetLabels(t.Context(), w.repo.ID, n, []string{"recovery/requested"}, nil))
		for _, l := range w.repoLabels(t) {
			mustDo(t, w.people(t, Admin).DeleteLabel(w.repo, l.Name))
		}
		mustDo(t, w.bot.SetLabels(t.Context(), w.repo.ID, n, []string{"recovery/requested"}, nil))
		w.wantLabels(t, n, "recovery/requested")
	},
	"LabelsAreMadeOnceAndAsSpecified": func(t *testing.T, w *world) {
		specs := []forge.LabelSpec{
			{Name: "recovery/approved", Color: "0e8a16", Description: "A restart was approved", Exclusive: true},
			{Name: "recovery-break-glass", Color: "#B60205"},
		}
		for range 2 {
			mustDo(t, w.adapter(t, Bot).EnsureLabels(t.Context(), w.repo.ID, specs))
		}
		got := w.repoLabels(t)
		slices.SortFunc(got, func(a, b forge.LabelSpec) int { return strings.Compare(a.Name, b.Name) })
		want := []forge.LabelSpec{
			{Name: "recovery-break-glass", Color: "b60205"},
			{Name: "recovery/approved", Color: "0e8a16", Description: "A restart was approved", Exclusive: !w.s.Facts.PlainLabels},
		}
		if !slices.Equal(got, want) {
			t.Errorf("labels %+v, want %+v", got, want)
		}
	},
}

func (w *world) repoLabels(t *testing.T) []forge.LabelSpec {
	t.Helper()
	return get(w.people(t, Admin).Labels(w.repo))(t)
}

// label puts a person's label on an issue.
func (w *world) label(t *testing.T, number int64, name string) {
	t.Helper()
	mustDo(t, w.people(t, Admin).Label(w.repo, number, name))
}

func (w *world) wantLabels(t *testing.T, number int64, want ...string) {
	t.Helper()
	got := []string{}
	for _, l := range get(w.bot.Issue(t.Context(), w.repo.ID, number))(t).Labels {
		got = append(got, l.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
}

// reactions are the bot's, sorted.
func (w *world) reactions(t *testing.T, number int64, obj forge.Object) []string {
	t.Helper()
	out := get(w.people(t, Admin).Reactions(w.repo, number, obj, w.s.Accounts[Bot].Login))(t)
	slices.Sort(out)
	return out
}
