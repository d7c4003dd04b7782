package conformance

import (
	"slices"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

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
			_, err := w.api(t, Admin).DeleteLabel(w.repo.Owner, w.repo.Name, l.ID)
			mustDo(t, err)
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
		got := map[string]*sdk.Label{}
		for _, l := range w.repoLabels(t) {
			if got[l.Name] != nil {
				t.Errorf("%s was made twice", l.Name)
			}
			got[l.Name] = l
		}
		a, b := got["recovery/approved"], got["recovery-break-glass"]
		if a == nil || !a.Exclusive || a.Color != "0e8a16" || a.Description != "A restart was approved" {
			t.Errorf("recovery/approved is %+v", a)
		}
		if b == nil || b.Exclusive || b.Color != "b60205" {
			t.Errorf("recovery-break-glass is %+v", b)
		}
	},
}

func (w *world) repoLabels(t *testing.T) []*sdk.Label {
	t.Helper()
	list, _, err := w.api(t, Admin).ListRepoLabels(w.repo.Owner, w.repo.Name, sdk.ListLabelsOptions{})
	mustDo(t, err)
	return list
}

// label puts a person's label on an issue.
func (w *world) label(t *testing.T, number int64, name string) {
	t.Helper()
	api := w.api(t, Admin)
	l, _, err := api.CreateLabel(w.repo.Owner, w.repo.Name, sdk.CreateLabelOption{Name: name, Color: "#123456"})
	mustDo(t, err)
	_, _, err = api.AddIssueLabels(w.repo.Owner, w.repo.Name, number, sdk.IssueLabelsOption{Labels: []int64{l.ID}})
	mustDo(t, err)
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
	var list []*sdk.Reaction
	var err error
	if obj.Kind == forge.ObjectComment {
		list, _, err = w.api(t, Admin).GetIssueCommentReactions(w.repo.Owner, w.repo.Name, obj.ID)
	} else {
		list, _, err = w.api(t, Admin).ListIssueReactions(w.repo.Owner, w.repo.Name, number, sdk.ListIssueReactionsOptions{})
	}
	mustDo(t, err)
	out := []string{}
	for _, r := range list {
		if r.User.UserName == w.s.Accounts[Bot].Login {
			out = append(out, r.Reaction)
		}
	}
	slices.Sort(out)
	return out
}
