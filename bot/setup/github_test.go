package setup

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/forge/github"
)

var (
	_ Admin   = (*gitea.Client)(nil)
	_ Probe   = (*gitea.Client)(nil)
	_ Tester  = (*gitea.Client)(nil)
	_ Admin   = (*github.Client)(nil)
	_ Probe   = (*github.Client)(nil)
	_ Tester  = (*github.Client)(nil)
	_ Teller  = (*github.Client)(nil)
	_ Invited = (*github.Client)(nil)
)

// hub is as much of GitHub's API as setting up takes: one organisation with
// one repository, and accounts that must accept what they are offered. It
// answers in GitHub's forms; what of its rules matters here is in serve.
type hub struct {
	t       *testing.T
	hooks   map[string]map[int64]map[string]any // "repo" or "org" → id → hook
	labels  map[string]map[string]any
	used    map[string]bool
	files   map[string]string // branch + ":" + path
	pulls   []string
	perm    string // of the bot
	invited bool
	direct  bool
	team    bool
	member  bool
	given   bool // the repository to the team
	last    int64
	sent    int // status of the last delivery
}

const hubRepo = `{"id":41,"name":"incidents","full_name":"ops/incidents","default_branch":"main","permissions":{"push":true},"owner":{"id":7,"login":"ops","type":"Organization"}}`

func newHub(t *testing.T) (*hub, *github.Client) {
	t.Helper()
	h := &hub{t: t, hooks: map[string]map[int64]map[string]any{"repo": {}, "org": {}}, labels: map[string]map[string]any{},
		used: map[string]bool{}, files: map[string]string{"main:README.md": "x"}, perm: "read", sent: 202}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := github.New(github.Config{BaseURL: server.URL, Token: func() string { return "t" }, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in map[string]any
	if b, err := io.ReadAll(r.Body); err == nil && len(b) > 0 {
		if err := json.Unmarshal(b, &in); err != nil {
			h.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	status, out := h.answer(r.Method, path, r.URL.Query().Get("affiliation"), in)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-GitHub-Media-Type", "github.v3; format=json")
	w.Header().Set("X-GitHub-Request-Id", "1")
	w.WriteHeader(status)
	if s, ok := out.(string); ok {
		_, _ = io.WriteString(w, s)
	} else if out != nil {
		_ = json.NewEncoder(w).Encode(out)
	}
}

var (
	hookPath  = regexp.MustCompile(`^/(repositories/41|orgs/ops)/hooks(?:/(\d+)(?:/(pings|deliveries))?)?$`)
	labelPath = regexp.MustCompile(`^/repositories/41/labels(?:/(.+))?$`)
	filePath  = regexp.MustCompile(`^/repositories/41/contents/(.+)$`)
)

func missing() (int, any) {
	return 404, `{"message":"Not Found","documentation_url":"https://docs.github.com/rest"}`
}

func (h *hub) answer(method, path, affiliation string, in map[string]any) (int, any) {
	if m := hookPath.FindStringSubmatch(path); m != nil {
		return h.hook(method, m[1], m[2], m[3], in)
	}
	if m := labelPath.FindStringSubmatch(path); m != nil {
		return h.label(method, m[1], in)
	}
	if m := filePath.FindStringSubmatch(path); m != nil {
		return h.file(method, m[1], in)
	}
	switch method + " " + path {
	case "GET /repos/ops/incidents", "GET /repositories/41":
		return 200, hubRepo
	case "GET /users/ops":
		return 200, `{"id":7,"login":"ops","type":"Organization"}`
	case "GET /user":
		return 200, `{"id":1,"login":"playbook-bot","type":"User"}`
	case "GET /meta":
		return 200, `{"installed_version":"3.14.2"}`
	case "GET /repositories/41/collaborators/playbook-bot/permission":
		return 200, fmt.Sprintf(`{"permission":%q,"role_name":%q,"user":{"id":1,"login":"playbook-bot"}}`, h.effective(), h.effective())
	case "GET /repositories/41/collaborators":
		if affiliation == "direct" && !h.direct {
			return 200, `[]`
		}
		return 200, `[{"id":1,"login":"playbook-bot","permissions":{"push":true}}]`
	case "PUT /repositories/41/collaborators/playbook-bot":
		h.invited = true
		return 201, `{"id":5}`
	case "DELETE /repositories/41/collaborators/playbook-bot":
		h.perm, h.direct = "read", false
		return 204, nil
	case "GET /user/repository_invitations":
		if !h.invited {
			return 200, `[]`
		}
		return 200, `[{"id":4,"repository":{"id":40}},{"id":5,"repository":{"id":41}}]`
	case "PATCH /user/repository_invitations/5":
		h.invited, h.direct, h.perm = false, true, "write"
		return 204, nil
	case "GET /repositories/41/issues":
		return 200, `[]`
	case "GET /repositories/41/git/ref/heads/main":
		return 200, `{"ref":"refs/heads/main","object":{"sha":"abc"}}`
	case "POST /repositories/41/git/refs":
		return 201, `{}`
	case "DELETE /repositories/41/git/refs/heads/playbook-bot/setup":
		return 422, `{"message":"Reference does not exist","documentation_url":"x"}`
	case "POST /repositories/41/pulls":
		h.pulls = append(h.pulls, fmt.Sprint(in["head"], "→", in["base"]))
		return 201, `{"number":9}`
	case "GET /repositories/41/pulls":
		if len(h.pulls) == 0 {
			return 200, `[]`
		}
		return 200, `[{"number":9,"head":{"ref":"playbook-bot/setup","repo":{"id":41}}}]`
	}
	return h.teams(method + " " + path)
}

func (h *hub) effective() string {
	if h.team && h.member && h.given {
		return "write"
	}
	return h.perm
}

func (h *hub) teams(call string) (int, any) {
	const team = `{"id":3,"name":"playbook-bot","slug":"playbook-bot"}`
	list := func(is bool, one string) (int, any) {
		if is {
			return 200, "[" + one + "]"
		}
		return 200, "[]"
	}
	switch call {
	case "GET /orgs/ops/teams":
		return list(h.team, team)
	case "POST /orgs/ops/teams":
		h.team = true
		return 201, team
	case "DELETE /orgs/ops/teams/playbook-bot":
		h.team, h.member, h.given = false, false, false
		return 204, nil
	case "GET /orgs/ops/teams/playbook-bot/members":
		return list(h.member, `{"id":1,"login":"playbook-bot"}`)
	case "PUT /orgs/ops/teams/playbook-bot/memberships/playbook-bot":
		return 200, `{"state":"pending"}`
	case "PATCH /user/memberships/orgs/ops":
		h.member = true
		return 200, `{"state":"active"}`
	case "GET /orgs/ops/teams/playbook-bot/repos":
		return list(h.given, hubRepo)
	case "PUT /orgs/ops/teams/playbook-bot/repos/ops/incidents":
		h.given = true
		return 204, nil
	}
	h.t.Errorf("nobody here to answer %s", call)
	return missing()
}

func (h *hub) hook(method, place, id, what string, in map[string]any) (int, any) {
	at := h.hooks["repo"]
	if place != "repositories/41" {
		at = h.hooks["org"]
	}
	if id == "" {
		if method == "POST" {
			for _, o := range at {
				if o["config"].(map[string]any)["url"] == in["config"].(map[string]any)["url"] {
					return 422, `{"message":"Validation Failed","errors":[{"message":"Hook already exists on this repository"}],"documentation_url":"x"}`
				}
			}
			h.last++
			in["id"] = h.last
			at[h.last] = in
			return 201, in
		}
		var list []any
		for _, o := range at {
			list = append(list, o)
		}
		if list == nil {
			return 200, `[]`
		}
		return 200, list
	}
	var n int64
	_, _ = fmt.Sscan(id, &n)
	have, ok := at[n]
	switch {
	case !ok:
		return missing()
	case what == "pings":
		return 204, nil
	case what == "deliveries":
		return 200, fmt.Sprintf(`[{"id":1,"delivered_at":%q,"status_code":%d}]`, noon.Add(-time.Minute).Format(time.RFC3339), h.sent)
	case method == "DELETE":
		delete(at, n)
		return 204, nil
	case method == "PATCH":
		for k, v := range in {
			have[k] = v
		}
	}
	return 200, have
}

func (h *hub) label(method, name string, in map[string]any) (int, any) {
	switch {
	case method == "POST":
		h.last++
		in["id"] = h.last
		h.labels[in["name"].(string)] = in
		return 201, in
	case method == "DELETE":
		delete(h.labels, name)
		return 204, nil
	}
	list := []any{}
	for _, l := range h.labels {
		list = append(list, l)
	}
	return 200, list
}

func (h *hub) file(method, path string, in map[string]any) (int, any) {
	branch, _ := in["branch"].(string)
	if branch == "" {
		branch = "main"
	}
	have, ok := h.files["main:"+path]
	switch method {
	case "GET":
		if !ok {
			return missing()
		}
		return 200, map[string]any{"type": "file", "encoding": "base64", "content": have, "sha": "v1"}
	case "DELETE":
		if in["sha"] != "v1" {
			return 409, `{"message":"does not match","documentation_url":"x"}`
		}
		delete(h.files, "main:"+path)
		return 200, `{}`
	}
	h.files[branch+":"+path] = in["content"].(string)
	return 201, `{}`
}

func hubWant(c *github.Client) Want {
	return Want{
		Admin: c, Invited: c, Bot: forge.Account{ID: 1, Login: "playbook-bot"}, PublicURL: publicURL, Labels: wantedLabels,
		Form: []byte(wantedForm), FormPath: "ISSUE_TEMPLATE/restart-request.yaml",
		Secret: func(scope string, id int64) string { return fmt.Sprint("secret of ", scope, id) }, Repos: []string{"ops/incidents"},
	}
}

func TestGitHubRepository(t *testing.T) {
	h, c := newHub(t)
	want := hubWant(c)
	mustEqual(t, "set up", perform(t, want.Plan), `create ops/incidents access
		create ops/incidents label recovery/approved
		create ops/incidents label recovery/refused
		create ops/incidents label recovery-contaminated
		create ops/incidents form
		create ops/incidents hook`)
	mustEqual(t, "again", perform(t, want.Plan), ``)
	if h.perm != "write" || h.invited {
		t.Errorf("the bot has %s, and an open invitation: %v", h.perm, h.invited)
	}
	if _, ok := h.files["main:.github/ISSUE_TEMPLATE/restart-request.yaml"]; !ok {
		t.Errorf("files: %v", h.files)
	}
	config := func() map[string]any { return h.hooks["repo"][4]["config"].(map[string]any) }
	if got := config(); got["secret"] != "secret of repo41" || got["content_type"] != "json" || got["url"] != publicURL+"/webhook/github/repo/41" {
		t.Errorf("the hook: %v", got)
	}
	// There is one hook to an address, and its secret can be changed.
	config()["secret"] = "another"
	want.NewSecret = true
	mustEqual(t, "a secret", perform(t, want.Plan), `repair ops/incidents hook 4`)
	if config()["secret"] != "secret of repo41" {
		t.Errorf("the hook: %v", config())
	}
	want.NewSecret = false
	mustEqual(t, "removed", perform(t, want.PlanRemoval), `delete ops/incidents hook 4
		delete ops/incidents form
		delete ops/incidents label recovery/approved
		delete ops/incidents label recovery/refused
		delete ops/incidents label recovery-contaminated
		delete ops/incidents access`)
	mustEqual(t, "removed again", perform(t, want.PlanRemoval), ``)
}

func TestGitHubPullRequest(t *testing.T) {
	h, c := newHub(t)
	want := hubWant(c)
	want.PullRequest = true
	perform(t, want.Plan)
	mustEqual(t, "again", perform(t, want.Plan), ``)
	if len(h.pulls) != 1 || h.pulls[0] != "playbook-bot/setup→main" {
		t.Errorf("pull requests: %q", h.pulls)
	}
	if _, ok := h.files["playbook-bot/setup:.github/ISSUE_TEMPLATE/restart-request.yaml"]; !ok || len(h.files) != 2 {
		t.Errorf("files: %v", h.files)
	}
}

// TestGitHubOrganisation: labels are each repository's own.
func TestGitHubOrganisation(t *testing.T) {
	h, c := newHub(t)
	want := hubWant(c)
	want.Org = "ops"
	mustEqual(t, "set up", perform(t, want.Plan), `create ops team playbook-bot
		create ops team member playbook-bot
		create ops/incidents access
		create ops/incidents label recovery/approved
		create ops/incidents label recovery/refused
		create ops/incidents label recovery-contaminated
		create ops/incidents form
		create ops hook`)
	mustEqual(t, "again", perform(t, want.Plan), ``)
	if len(h.hooks["org"]) != 1 || len(h.hooks["repo"]) != 0 || h.effective() != "write" {
		t.Errorf("hooks %v, the bot has %s", h.hooks, h.effective())
	}
	perform(t, want.PlanRemoval)
	mustEqual(t, "removed again", perform(t, want.PlanRemoval), ``)
}

func TestGitHubCheckup(t *testing.T) {
	h, c := newHub(t)
	perform(t, hubWant(c).Plan)
	u := Checkup{Forge: c, Tester: c, Repositories: []string{"ops/incidents"}, PublicURL: publicURL, Now: func() time.Time { return noon }}
	status := func() string {
		k := &checker{Checkup: u, self: forge.Account{ID: 1, Login: "playbook-bot"}}
		k.repository(t.Context(), target{forge.Repo{ID: 41, Owner: "ops", OwnerID: 7, Name: "incidents"}, true})
		return outcome(k.found)
	}
	const skipped = "skipped overlay ops/incidents\nskipped approvers ops/incidents\nskipped reachability ops/incidents"
	mustEqual(t, "by GitHub's record", status(), skipped)
	h.sent = 401
	mustEqual(t, "refused", status(), skipped+"\nfailed delivery ops/incidents")
	h.sent = 502
	mustEqual(t, "not reached", status(), skipped+"\nfailed delivery ops/incidents")
}
