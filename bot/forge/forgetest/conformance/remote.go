package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
)

// Remote makes a Server of a real Gitea: it adds accounts, an organisation and
// tokens, whose names begin with a part of their own, so that it can be used on
// one server any number of times. siteToken is a site administrator's, with all
// scopes.
func Remote(t *testing.T, baseURL, siteToken string, client *http.Client) Server {
	t.Helper()
	if client == nil {
		client = http.DefaultClient
	}
	prefix := fmt.Sprintf("c%d", time.Now().UnixNano()%1e10)
	s := Server{BaseURL: baseURL, HTTP: client, Org: prefix + "-org", Accounts: map[Role]Account{}}
	site, err := sdk.NewClient(baseURL, sdk.SetToken(siteToken), sdk.SetHTTPClient(client), sdk.SetGiteaVersion(""))
	if err != nil {
		t.Fatal(err)
	}
	me, _, err := site.GetMyUserInfo()
	mustDo(t, err)
	s.Accounts[Site] = Account{me.UserName, siteToken}
	for _, role := range []Role{Owner, Admin, Writer, Reader, Nobody, Bot} {
		s.Accounts[role] = addAccount(t, site, s, prefix+"-"+string(role), role)
	}
	owner, err := sdk.NewClient(baseURL, sdk.SetToken(s.Accounts[Owner].Token), sdk.SetHTTPClient(client), sdk.SetGiteaVersion(""))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = owner.CreateOrg(sdk.CreateOrgOption{Name: s.Org})
	mustDo(t, err)
	repos := 0
	s.NewRepo = func(t *testing.T) forge.Repo {
		t.Helper()
		repos++
		r, _, err := owner.CreateOrgRepo(s.Org, sdk.CreateRepoOption{Name: fmt.Sprintf("repo-%d", repos)})
		mustDo(t, err)
		for role, mode := range map[Role]sdk.AccessMode{
			Admin: sdk.AccessModeAdmin, Bot: sdk.AccessModeAdmin, Writer: sdk.AccessModeWrite, Reader: sdk.AccessModeRead,
		} {
			_, err := owner.AddCollaborator(s.Org, r.Name, s.Accounts[role].Login, sdk.AddCollaboratorOption{Permission: &mode})
			mustDo(t, err)
		}
		return forge.Repo{ID: r.ID, Owner: r.Owner.UserName, OwnerID: r.Owner.ID, Name: r.Name}
	}
	return s
}

// botScopes are those the README asks for.
var botScopes = []sdk.AccessTokenScope{"write:issue", "read:repository", "read:user"}

func addAccount(t *testing.T, site *sdk.Client, s Server, login string, role Role) Account {
	t.Helper()
	const password = "for-the-suite-only-1"
	no := false
	_, _, err := site.AdminCreateUser(sdk.CreateUserOption{Username: login, Email: login + "@example.test",
		Password: password, MustChangePassword: &no})
	mustDo(t, err)
	self, err := sdk.NewClient(s.BaseURL, sdk.SetBasicAuth(login, password), sdk.SetHTTPClient(s.HTTP), sdk.SetGiteaVersion(""))
	if err != nil {
		t.Fatal(err)
	}
	scopes := []sdk.AccessTokenScope{"all"}
	if role == Bot {
		scopes = botScopes
	}
	token, _, err := self.CreateAccessToken(sdk.CreateAccessTokenOption{Name: "suite", Scopes: scopes})
	mustDo(t, err)
	return Account{login, strings.TrimSpace(token.Token)}
}
