package github

import (
	"strings"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
)

// ghost is whom the texts of deleted accounts belong to. To GitHub it is an
// account like any other, with an id: here it has none that can carry rights.
func ghost(login string) bool { return strings.EqualFold(login, "ghost") }

func neutral(a forge.Account) forge.Account {
	if ghost(a.Login) {
		a.ID = -1
	}
	return a
}

// toAccount is the zero account for null.
func toAccount(u *sdk.User) forge.Account {
	return neutral(forge.Account{ID: u.GetID(), Login: u.GetLogin()})
}

// originalAuthor names a mannequin, the stand-in of GitHub's importers for an
// author who has no account here: what it says was said elsewhere.
func originalAuthor(u *sdk.User) string {
	if u.GetType() == "Mannequin" {
		return u.GetLogin()
	}
	return ""
}
