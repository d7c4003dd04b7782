//go:build unix

package crashtest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/store"
	"playbook-bot/bot/store/pgtest"
	"playbook-bot/bot/webhook"
)

const (
	secret   = "a secret of the crash tests that is long enough"
	repoName = "ops/incidents"
	botLogin = "playbook-bot"
)

// times are how the tests shorten what is seconds in production. All stay
// under 300 ms.
var times = []string{"LEASE=200ms", "REQUEST_TIMEOUT=290ms", "SETTLE=100ms", "SETTLE_PROXY=250ms"}

// people and their rights in the repository.
var people = map[string]string{"olga": "admin", "adam": "admin", "wren": "write", "rhea": "read", "remy": "read"}

// databases are what the tests run on: SQLite with the one process it serves,
// PostgreSQL with two replicas.
var databases = []struct {
	name     string
	replicas int
	url      func(t testing.TB) string
}{
	{"sqlite", 1, func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "bot.db") }},
	{"postgres", 2, func(t testing.TB) string { return pgtest.URL(t.(pgtest.TB)) + "&pool_max_conns=6" }},
}

// world is a fake forge, a database and the processes between them.
type world struct {
	t        testing.TB
	forge    *forgetest.Forge
	repo     forge.Repo
	accounts map[string]forge.Account
	database string
	path     string
	environ  []string
	// fuse is the file by which a failpoint is set (see arm).
	fuse string
	// redeliver has a delivery that was not taken sent again until it is, as a
	// person does by the button on the hook's page. A forge itself never does.
	redeliver atomic.Bool
	// watch reads the database beside the processes; forgot: it is not the
	// first.
	watch  store.Store
	forgot bool

	mu       sync.Mutex
	replicas []*replica
	turn     int
	closed   chan struct{}
}

// option changes a world before its processes start.
type option func(*world)

// setting adds variables to the processes' environment.
func setting(vars ...string) option { return func(w *world) { w.environ = append(w.environ, vars...) } }

// clock gives the forge a clock of its own.
func clock(now func() time.Time) option {
	return func(w *world) { w.forge = forgetest.New(now) }
}

// newWorld makes a world and starts its replicas.
func newWorld(t testing.TB, database string, replicas int, options ...option) *world {
	t.Helper()
	w := &world{t: t, database: database, path: program(t), accounts: map[string]forge.Account{}, closed: make(chan struct{})}
	w.redeliver.Store(true)
	for _, o := range options {
		o(w)
	}
	if w.forge == nil {
		w.forge = forgetest.New(time.Now)
	}
	srv := httptest.NewServer(w.forge)
	t.Cleanup(srv.Close)
	t.Cleanup(w.forge.Close) // first: it ends what the server waits for
	w.populate()
	w.fuse = filepath.Join(t.TempDir(), "fuse")
	// What the options say comes last, and so counts.
	w.environ = append(append([]string{
		"GITEA_URL=" + srv.URL, "GITEA_TOKEN=" + w.forge.Token(botLogin), "PLAYBOOK_SECRET=" + secret, "REPOSITORIES=" + repoName,
		"LISTEN=127.0.0.1:0", "LOG_FORMAT=json", "SWEEP_INTERVAL=1h", "PLAYBOOK_BOT_FAILPOINT=@" + w.fuse,
	}, times...), w.environ...)
	t.Cleanup(w.end)
	w.forge.SetSink(w.deliver)
	for i := range replicas {
		w.start(fmt.Sprintf("replica %d", i+1))
	}
	if replicas > 0 {
		w.openWatch()
	}
	return w
}

func (w *world) populate() {
	w.forge.AddUser(botLogin)
	w.forge.AddOrg("ops")
	w.repo = w.forge.AddRepo(repoName)
	for login, right := range people {
		w.accounts[login] = w.forge.AddUser(login)
		w.forge.AddCollaborator(repoName, login, right)
	}
	w.forge.AddCollaborator(repoName, botLogin, "admin")
	w.forge.AddRepoHook(repoName, webhook.HookSecret(secret, "gitea", webhook.ScopeRepo, w.repo.ID))
}

// openWatch opens the database for looking.
func (w *world) openWatch() {
	w.t.Helper()
	db, err := store.Open(w.t.Context(), w.database, store.Options{Offline: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.watch = db
	w.t.Cleanup(func() { _ = db.Close() })
}

// start starts a process in the place of one of that name, if any, with
// variables of its own.
func (w *world) start(name string, vars ...string) *replica {
	w.t.Helper()
	r, err := w.tryStart(name, vars...)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) tryStart(name string, vars ...string) (*replica, error) {
	r, err := launch(w.path, name, append(append(w.environ[:len(w.environ):len(w.environ)], "DATABASE_URL="+w.database), vars...))
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, old := range w.replicas {
		if old.name == name {
			w.replicas[i] = r
			return r, nil
		}
	}
	w.replicas = append(w.replicas, r)
	return r, nil
}

// end ends all processes and whatever waits for them.
func (w *world) end() {
	close(w.closed)
	for _, r := range w.all() {
		r.kill()
		if w.t.Failed() {
			w.t.Logf("the last words of %s:\n%s", r.name, r.log())
		}
	}
}

func (w *world) all() []*replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*replica(nil), w.replicas...)
}

// arm sets a failpoint, such as "claimed" or "posted:2:stop": the first
// process that gets there is killed or stopped, and no other.
func (w *world) arm(spec string) {
	w.t.Helper()
	// Whole or not at all: a process may be reading.
	if err := os.WriteFile(w.fuse+".new", []byte(spec), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(w.fuse+".new", w.fuse); err != nil {
		w.t.Fatal(err)
	}
}

// disarm takes the failpoint back, and reports whether a process had acted.
func (w *world) disarm() (acted bool) { return os.Remove(w.fuse) != nil }

func (w *world) armed() bool {
	_, err := os.Stat(w.fuse)
	return err == nil
}

// client is the forge's as it delivers. Gitea waits five seconds; the tests
// have less time to lose on processes that are frozen.
var client = &http.Client{Timeout: time.Second}

// deliver posts a delivery to one replica after the other, as a load balancer
// does.
func (w *world) deliver(path string, h http.Header, body []byte) int {
	for {
		status := 0
		if r := w.next(); r != nil {
			if status = forgetest.URLSink(client, r.url)(path, h, body); status/100 == 2 || status/100 == 4 {
				return status
			}
		}
		if !w.redeliver.Load() {
			return status
		}
		select {
		case <-w.closed:
			return status
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// next is the next replica that lives and can be reached.
func (w *world) next() *replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range w.replicas {
		w.turn = (w.turn + 1) % len(w.replicas)
		if r := w.replicas[w.turn]; !r.dead() && !r.away.Load() {
			return r
		}
	}
	return nil
}

// frozen waits for a process to stop at a failpoint, not one that a test froze
// itself, and has nothing delivered to it until it is thawed.
func (w *world) frozen() *replica {
	w.t.Helper()
	var stopped *replica
	eventually(w.t, "a process stops", func() bool {
		if w.armed() {
			return false
		}
		for _, r := range w.all() {
			if !r.away.Load() && r.frozen() {
				stopped = r
			}
		}
		return stopped != nil
	})
	stopped.away.Store(true)
	return stopped
}

// delivered is closed when everything told so far is delivered.
func (w *world) delivered() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		w.forge.Settle()
		close(done)
	}()
	return done
}

// horizon is how far off a wake-up must be to count as none: approvals end
// after minutes, every wait of the ledger is shorter than this.
const horizon = 30 * time.Second

// idle reports whether the ledger has nothing left to do.
func (w *world) idle() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := w.watch.Stats(ctx)
	if err != nil || s.Waiting > 0 || s.OpenAnswers > 0 {
		return false
	}
	now, err := w.watch.Now(ctx)
	if err != nil {
		return false
	}
	next, err := w.watch.NextWake(ctx)
	return err == nil && (next.IsZero() || next.Sub(now) > horizon)
}

// settle waits until all is delivered and done. Meanwhile revive is called,
// again and again, to see after the processes.
func (w *world) settle(revive func()) {
	w.t.Helper()
	delivered := w.delivered()
	eventually(w.t, "all is delivered and done", func() bool {
		revive()
		select {
		case <-delivered:
			return w.idle()
		default:
			return false
		}
	})
}

// reviveDead starts anew what was killed, and fails for what ended otherwise.
func (w *world) reviveDead() {
	w.t.Helper()
	for _, r := range w.all() {
		w.revive(r)
	}
}

// reviveLast starts anew what was killed where none is left.
func (w *world) reviveLast() {
	w.t.Helper()
	if w.next() == nil {
		w.reviveDead()
	}
}

func (w *world) revive(r *replica) {
	w.t.Helper()
	if !r.dead() {
		return
	}
	if !r.killed() {
		w.t.Fatalf("%s ended by itself:\n%s", r.name, r.log())
	}
	w.start(r.name)
}

// thread is the database's of an issue.
func (w *world) thread(number int64) (*store.Thread, error) {
	return w.watch.FindThread(context.Background(), "gitea", w.repo.ID, number)
}

// genuine reports whether a comment is an answer of the bot's as it posted it.
func (w *world) genuine(number int64, c forge.Comment) bool {
	return strings.EqualFold(c.Author.Login, botLogin) && bot.Genuine([]string{secret}, "gitea", w.repo.ID, number, c.Body)
}
