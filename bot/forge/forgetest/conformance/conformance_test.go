package conformance_test

import (
	"fmt"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/forgetest/conformance"
)

func TestFake(t *testing.T) {
	f := forgetest.New(time.Now)
	t.Cleanup(f.Close)
	s := conformance.Server{BaseURL: "http://gitea.test", HTTP: f.Client(), Org: "ops",
		Accounts: map[conformance.Role]conformance.Account{}}
	f.AddAdmin("root")
	for _, login := range []string{"olga", "alice", "wendy", "rita", "nobody", "botty"} {
		f.AddUser(login)
	}
	for role, login := range map[conformance.Role]string{
		conformance.Site: "root", conformance.Owner: "olga", conformance.Admin: "alice", conformance.Writer: "wendy",
		conformance.Reader: "rita", conformance.Nobody: "nobody",
	} {
		s.Accounts[role] = conformance.Account{Login: login, Token: f.Token(login, "all")}
	}
	s.Accounts[conformance.Bot] = conformance.Account{Login: "botty", Token: f.Token("botty")}
	f.AddOrg("ops", "olga")
	repos := 0
	s.NewRepo = func(t *testing.T) forge.Repo {
		repos++
		name := fmt.Sprintf("ops/repo-%d", repos)
		r := f.AddRepo(name)
		for login, right := range map[string]string{"alice": "admin", "botty": "admin", "wendy": "write", "rita": "read"} {
			f.AddCollaborator(name, login, right)
		}
		return r
	}
	conformance.Run(t, s)
}
