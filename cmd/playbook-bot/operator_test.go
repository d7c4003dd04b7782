package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
)

// watched is a running serve whose whole log is kept.
type watched struct {
	served
	admin string
	mu    sync.Mutex
	log   bytes.Buffer
}

func (w *watched) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// end stops serve and gives its exit status. Connections that this process
// keeps for later would be waited for.
func (w *watched) end(t *testing.T) int {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	w.stop()
	return w.wait(t)
}

// addressOf reads a "listening" line of the log, of either format.
func addressOf(line []byte) (what, address string) {
	var j struct{ Msg, For, Address string }
	if json.Unmarshal(line, &j) == nil {
		if j.Msg != "listening" {
			return "", ""
		}
		return j.For, j.Address
	}
	if !bytes.Contains(line, []byte("msg=listening")) {
		return "", ""
	}
	for f := range strings.FieldsSeq(string(line)) {
		if v, ok := strings.CutPrefix(f, "for="); ok {
			what = v
		}
		if v, ok := strings.CutPrefix(f, "address="); ok {
			address = v
		}
	}
	return what, address
}

// startWatched runs serve with an admin listener and waits for both.
func startWatched(t *testing.T, environ map[string]string) *watched {
	t.Helper()
	environ = maps.Clone(environ)
	environ["ADMIN_LISTEN"] = "localhost:0"
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	w := &watched{served: served{stop: stop, exit: make(chan int, 1)}}
	logs, out := io.Pipe()
	found := make(chan [2]string, 2)
	read := make(chan struct{})
	go func() {
		defer close(read)
		in := bufio.NewScanner(logs)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			w.mu.Lock()
			w.log.Write(in.Bytes())
			w.log.WriteByte('\n')
			w.mu.Unlock()
			if what, addr := addressOf(in.Bytes()); addr != "" {
				found <- [2]string{what, addr}
			}
		}
	}()
	go func() {
		code := run(ctx, []string{"serve"}, environ, strings.NewReader(""), out, out)
		_ = out.Close()
		<-read // so that whoever sees the exit also sees the last line
		w.exit <- code
	}()
	for range 2 {
		select {
		case f := <-found:
			if f[0] == "LISTEN" {
				w.url = "http://" + f[1]
			} else {
				w.admin = "http://" + f[1]
			}
		case code := <-w.exit:
			t.Fatalf("serve ended with %d before it listened:\n%s", code, w.logged())
		case <-time.After(patience):
			t.Fatalf("serve does not listen:\n%s", w.logged())
		}
	}
	return w
}

// incident lets a bot and a fake forge hold a short conversation, and gives
// the thread's number.
func (g *fakeGitea) incident(t *testing.T, s *watched) int64 {
	t.Helper()
	repo := g.Repo("ops/incidents")
	g.AddRepoHook("ops/incidents", webhook.HookSecret(planted, "gitea", webhook.ScopeRepo, repo.ID))
	g.SetSink(forgetest.URLSink(http.DefaultClient, s.url))
	number, err := g.OpenIssue("ada", "ops/incidents", "search is down", "/restart full_mcp_restart target==SUM(1) all clients 404")
	if err != nil {
		t.Fatal(err)
	}
	g.waitForAnswer(t)
	if _, err := g.Comment("ada", "ops/incidents", number, "/attempt client_reconnect insufficient still 404"); err != nil {
		t.Fatal(err)
	}
	g.waitForAnswer(t)
	return number
}

// eventually polls until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !f() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// TestOperators runs a conversation and then does with it what operators and
// auditors do.
func TestOperators(t *testing.T) {
	g := newFakeGitea(t)
	dir := t.TempDir()
	environ := serveEnv(g, dir)
	s := startWatched(t, environ)
	g.incident(t, s)
	metricsAreServed(t, s)

	t.Run("audit beside the bot", func(t *testing.T) { auditPrints(t, environ) })
	t.Run("verify", func(t *testing.T) {
		for _, args := range [][]string{{"audit", "--verify"}, {"audit", "--verify", "--offline"}, {"audit", "--verify", "--thread", "OPS/incidents#1"}} {
			if code, out, errs := program(environ, args...); code != exitOK || !strings.Contains(out, "WHOLE: ") {
				t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
			}
		}
	})
	t.Run("backup", func(t *testing.T) {
		file := filepath.Join(dir, "backup.db")
		if code, out, errs := program(environ, "db", "backup", file); code != exitOK || !strings.Contains(out, "backed up") {
			t.Fatalf("exit %d\n%s%s", code, out, errs)
		}
		other := maps.Clone(environ)
		other["DATABASE_URL"] = "sqlite:" + file
		if code, out, errs := program(other, "audit", "--verify"); code != exitOK {
			t.Errorf("the backup's log: exit %d\n%s%s", code, out, errs)
		}
		cutTail(t, file)
		code, out, _ := program(other, "audit", "--verify", "--json")
		var v verification
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatal(err)
		}
		if code != exitRefused || v.Whole || len(v.Threads) != 1 || !strings.Contains(strings.Join(v.Threads[0].Broken, " "), "not in the log") {
			t.Errorf("a cut tail: exit %d\n%s", code, out)
		}
		if code, out, errs := program(other, "audit", "--verify", "--offline"); code != exitOK {
			t.Errorf("a cleanly cut tail shows in the thread only, here: exit %d\n%s%s", code, out, errs)
		}
	})
	t.Run("prune", func(t *testing.T) {
		for _, args := range [][]string{{"db", "prune"}, {"db", "prune", "--older-than", "1h"}} {
			if code, out, errs := program(environ, args...); code != exitOK || !strings.Contains(out, "dropped 0 events") {
				t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
			}
		}
	})
	t.Run("put a backup back", func(t *testing.T) { putsBack(t, environ, s, dir) })
	s = startWatched(t, environ)
	g.SetSink(forgetest.URLSink(http.DefaultClient, s.url))
	t.Run("copy", func(t *testing.T) { copies(t, environ, s, dir) })
}

func metricsAreServed(t *testing.T, s *watched) {
	t.Helper()
	if status, _ := get(t, s.url+"/metrics"); status != http.StatusNotFound {
		t.Errorf("/metrics on LISTEN: %d", status)
	}
	eventually(t, "metrics of the conversation", func() bool {
		status, out := get(t, s.admin+"/metrics")
		if status != http.StatusOK {
			t.Fatalf("/metrics: %d", status)
		}
		for _, want := range []string{
			`playbook_bot_ready 1`, `playbook_bot_database_up 1`,
			`playbook_bot_deliveries_total{forge="gitea",status="202"}`,
			`playbook_bot_delivery_outcomes_total{forge="gitea",outcome="taken"} 2`,
			`playbook_bot_answers_total{code="attempt_log_missing",verdict="refused"} 1`,
			`playbook_bot_answers_total{code="allowed_attempt_log",verdict="approved"} 1`,
			`playbook_bot_forge_requests_total{forge="gitea",kind="comment.create",status="201"} 2`,
			`playbook_bot_recovery_figures_timestamp_seconds`,
		} {
			if !strings.Contains(out, "\n"+want) {
				return false
			}
		}
		return true
	})
}

func auditPrints(t *testing.T, environ map[string]string) {
	code, out, errs := program(environ, "audit")
	if code != exitOK || !strings.Contains(out, "ops/incidents#1\n") || !strings.Contains(out, "attempt_log_missing") ||
		!strings.Contains(out, "client_reconnect insufficient by ada, in comment") || !strings.Contains(out, "(counted)") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	list := func(args ...string) []entry {
		t.Helper()
		code, out, errs := program(environ, append([]string{"audit", "--json"}, args...)...)
		var l []entry
		if err := json.Unmarshal([]byte(out), &l); err != nil || code != exitOK {
			t.Fatalf("%v: exit %d, %v\n%s%s", args, code, err, out, errs)
		}
		return l
	}
	all := list()
	if len(all) < 2 || all[0].Seq != 1 || all[0].Chain != 1 || all[0].Forge != "gitea" || all[0].Actor != "ada" || len(all[0].Hash) != 64 {
		t.Fatalf("entries: %+v", all)
	}
	past, future := "2020-01-01T00:00:00Z", "2120-01-01T00:00:00Z"
	for want, sets := range map[int][][]string{
		len(all): {{"--since", past}, {"--until", future}, {"--actor", "ADA"}, {"--thread", "ops/incidents#1"}},
		0:        {{"--since", future}, {"--until", past}, {"--actor", "rhea"}, {"--break-glass"}, {"--code", "no_such_code"}},
		1:        {{"--code", "attempt_log_missing"}, {"--code", "attempt_log_missing", "--actor", "ada"}},
	} {
		for _, args := range sets {
			if got := list(args...); len(got) != want {
				t.Errorf("%v: %d entries, want %d", args, len(got), want)
			}
		}
	}
	code, out, errs = program(environ, "audit", "--csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != exitOK || err != nil || len(rows) != len(all)+1 || !slices.Equal(rows[0], auditColumns) {
		t.Fatalf("--csv: exit %d, %v\n%s%s", code, err, out, errs)
	}
	if got := rows[1][slices.Index(auditColumns, "target")]; got != "'=SUM(1)" {
		t.Errorf("a target that is a formula stands as %q", got)
	}
	if code, out, _ := program(environ, "audit", "--csv", "--since", future); code != exitOK || strings.Count(out, "\n") != 1 {
		t.Errorf("no entries as CSV: exit %d\n%s", code, out)
	}
	if code, _, errs := program(environ, "audit", "--thread", "ops/incidents#77"); code != exitFailure || !strings.Contains(errs, "knows no thread") {
		t.Errorf("an unknown thread: exit %d\n%s", code, errs)
	}
	for _, args := range [][]string{{"--thread", "41"}, {"--csv", "--json"}, {"--offline"}, {"--verify", "--code", "x"}, {"--verify", "--csv"}, {"--since", "yesterday"}, {"x"}} {
		if code, _, errs := program(environ, append([]string{"audit"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d\n%s", args, code, errs)
		}
	}
}

// cutTail takes the newest entry out of a database and out of the thread's
// own row, as somebody with the file in hand would.
func cutTail(t *testing.T, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(q string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), q, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("DROP TRIGGER audit_no_delete")
	exec("DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)")
	exec(`UPDATE threads SET state = CAST(json_set(CAST(state AS TEXT), '$.audit.seq', (SELECT max(seq) FROM audit),
		'$.audit.hash', (SELECT lower(hex(hash)) FROM audit ORDER BY seq DESC LIMIT 1)) AS BLOB)`)
}

// putsBack goes back to a backup as OPERATIONS.md says; the answers of the
// running forge are the ones from before.
func putsBack(t *testing.T, environ map[string]string, s *watched, dir string) {
	file := filepath.Join(dir, "put-back.db")
	if code, _, errs := program(environ, "db", "backup", file); code != exitOK {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	if code, _, errs := program(environ, "db", "reread"); code != exitFailure || !strings.Contains(errs, "another process") {
		t.Errorf("under the running bot: exit %d\n%s", code, errs)
	}
	s.end(t)
	other := maps.Clone(environ)
	other["DATABASE_URL"] = "sqlite:" + file
	if code, out, errs := program(other, "db", "reread"); code != exitOK || out != "1 thread will be read again\n" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, _ := program(other, "approval", "1/1"); code != exitRefused {
		t.Errorf("an approval from before: exit %d\n%s", code, out)
	}
	again := startWatched(t, other)
	eventually(t, "the rebuilt entry", func() bool {
		_, out, _ := program(other, "audit", "--json")
		return strings.Contains(out, `"what":"rebuilt"`)
	})
	again.end(t)
	code, out, errs := program(other, "audit", "--verify")
	if code != exitOK || !strings.Contains(out, "the database was lost") {
		t.Errorf("the log afterwards: exit %d\n%s%s", code, out, errs)
	}
}

func copies(t *testing.T, environ map[string]string, s *watched, dir string) {
	src, dst := environ["DATABASE_URL"], "sqlite:"+filepath.Join(dir, "copy.db")
	if code, _, errs := program(environ, "db", "copy", "-", dst); code != exitFailure || !strings.Contains(errs, "another process") {
		t.Errorf("a copy under the bot: exit %d\n%s", code, errs)
	}
	s.end(t)
	code, out, errs := program(environ, "db", "copy", "-", dst)
	if code != exitOK || !strings.Contains(out, "copied SQLite ") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := program(environ, "db", "copy", src, dst); code != exitFailure || !strings.Contains(errs, "not empty") {
		t.Errorf("a copy over another: exit %d\n%s", code, errs)
	}
	other := maps.Clone(environ)
	other["DATABASE_URL"] = dst
	_, before, _ := program(environ, "audit", "--json")
	if _, after, _ := program(other, "audit", "--json"); before != after || len(before) < 100 {
		t.Errorf("the copy's log differs:\n%s\n%s", before, after)
	}
	if code, out, errs := program(other, "approval", "1/1"); code != exitOK {
		t.Errorf("the copy's approval: exit %d\n%s%s", code, out, errs)
	}
	again := startWatched(t, other)
	if code := again.end(t); code != exitOK {
		t.Errorf("serve on the copy ended with %d", code)
	}
	for _, args := range [][]string{{"db", "copy", src}, {"db", "copy", planted, dst}, {"db", "copy", src, "mysql://u:" + planted + "@h/d"}, {"db", "vacuum"}, {"db", "prune", "--older-than", "-1h"}} {
		code, _, errs := program(environ, args...)
		if code != exitUsage || strings.Contains(errs, planted) {
			t.Errorf("%v: exit %d\n%s", args[:2], code, errs)
		}
	}
	if code, _, errs := program(environ, "db", "copy", "sqlite:"+filepath.Join(dir, "none.db"), dst); code != exitFailure || !strings.Contains(errs, "not found") {
		t.Errorf("a source that is not there: exit %d\n%s", code, errs)
	}
	postgres := map[string]string{"DATABASE_URL": "postgres://bot:" + planted + "@127.0.0.1:1/bot"}
	if code, _, errs := program(postgres, "db", "backup", filepath.Join(dir, "x")); code != exitFailure || !strings.Contains(errs, "pg_dump") || strings.Contains(errs, planted) {
		t.Errorf("a backup of PostgreSQL: exit %d\n%s", code, errs)
	}
}

// TestDead gives up an answer on a locked issue, and posts it when the issue
// is unlocked and the answer sent again.
func TestDead(t *testing.T) {
	g := newFakeGitea(t)
	environ := serveEnv(g, t.TempDir())
	environ["SETTLE"], environ["SETTLE_PROXY"], environ["REQUEST_TIMEOUT"] = "10ms", "20ms", "1s"
	if code, _, errs := program(environ, "dead"); code != exitFailure || !strings.Contains(errs, "not found") {
		t.Errorf("without a database: exit %d\n%s", code, errs)
	}
	s := startWatched(t, environ)
	if code, out, errs := program(environ, "dead"); code != exitOK || out != "Nothing is dead.\n" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	g.OrderKind("comment.create", forgetest.Fault{Status: http.StatusGone})
	repo := g.Repo("ops/incidents")
	g.AddRepoHook("ops/incidents", webhook.HookSecret(planted, "gitea", webhook.ScopeRepo, repo.ID))
	g.SetSink(forgetest.URLSink(http.DefaultClient, s.url))
	number, err := g.OpenIssue("ada", "ops/incidents", "search is down", "/restart full_mcp_restart all clients 404")
	if err != nil {
		t.Fatal(err)
	}
	var items []deadItem
	list := func() []deadItem {
		_, out, errs := program(environ, "dead", "--json")
		items = nil
		if err := json.Unmarshal([]byte(out), &items); err != nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		return items
	}
	eventually(t, "a dead answer", func() bool { return len(list()) == 1 })
	if i := items[0]; i.Kind != "answer" || i.Thread != "ops/incidents#1" || i.Object != "issue 1" || !strings.Contains(i.Why, "status 410") {
		t.Errorf("dead: %+v", i)
	}
	if _, out, _ := program(environ, "dead"); !strings.Contains(out, "1 is dead") || !strings.Contains(out, items[0].ID) || !strings.Contains(out, "status 410") {
		t.Errorf("the list is\n%s", out)
	}
	if code, _, errs := program(environ, "dead", "--resend", "4711"); code != exitFailure || !strings.Contains(errs, `"4711"`) {
		t.Errorf("an unknown id: exit %d\n%s", code, errs)
	}
	s.end(t)
	if code, out, errs := program(environ, "dead", "--resend", items[0].ID); code != exitOK || out != "1 waits again\n" {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	again := startWatched(t, environ)
	eventually(t, "the answer", func() bool { return len(g.CommentsBy("playbook-bot", "ops/incidents", number)) == 1 })
	again.end(t)
	if n := len(g.CommentsBy("playbook-bot", "ops/incidents", number)); n != 1 || len(list()) != 0 {
		t.Errorf("%d answers, %d dead", n, len(items))
	}
	if code, out, errs := program(environ, "dead", "--resend", "all"); code != exitOK || out != "0 wait again\n" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestDeadEvents lists and sends again what no test of the whole program can
// bring about in short: an event that failed for hours.
func TestDeadEvents(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "bot.db")
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	in := store.Incoming{Forge: "gitea", Number: 41, Action: "created", Source: store.SourceDelivery}
	in.Repo.ID, in.Object.Kind, in.Object.ID = 7, "comment", 812
	if _, err := db.Accept(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	l, err := db.Acquire(t.Context(), "w", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	th, err := db.Load(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	end := store.EventEnd{ID: th.Events[0].ID, Status: store.EventDead, Tries: 10, Note: "read comment 812: status 500"}
	if err := db.Commit(t.Context(), l, store.Change{Finish: []store.EventEnd{end}}); err != nil {
		t.Fatal(err)
	}
	environ := map[string]string{"DATABASE_URL": url}
	_, out, _ := program(environ, "dead")
	for _, want := range []string{"  1 ", "event in gitea repository 7#41, about comment 812 (created)", "10 tries: read comment 812: status 500"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if code, out, errs := program(environ, "dead", "--resend", "1"); code != exitOK || out != "1 waits again\n" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if _, out, _ := program(environ, "dead", "--json"); out != "[]\n" {
		t.Errorf("still dead:\n%s", out)
	}
}

func TestInert(t *testing.T) {
	for in, want := range map[string]string{
		"ada": "ada", "": "", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "|cmd": "'|cmd", "%x": "'%x",
		" =1": "' =1", "\t=1": "' =1", "\r=1": "' =1", "\u200b=1": "'=1", "＝1": "'＝1", "a=b": "a=b", "2026-12-01": "2026-12-01", "ops/incidents#1": "ops/incidents#1",
	} {
		if got := inert(in); got != want {
			t.Errorf("inert(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestSubcommandsOfDB have the help that the others have.
func TestSubcommandsOfDB(t *testing.T) {
	for _, cmd := range (&app{}).db().Commands() {
		code, out, errs := cli(t, "", "db", cmd.Name(), "--help")
		if code != exitOK || errs != "" || len(cmd.Long) < 100 || !strings.Contains(out, "playbook-bot db "+cmd.Name()) {
			t.Errorf("db %s: exit %d, help\n%s%s", cmd.Name(), code, out, errs)
		}
	}
	if code, out, _ := cli(t, "", "db"); code != exitOK || !strings.Contains(out, "backup") {
		t.Errorf("db alone: exit %d\n%s", code, out)
	}
}
