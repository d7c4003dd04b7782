//go:build unix

package scratch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// victimVar makes the test binary the process that is killed in
// TestWatchdogOutlivesUs; its value is the FIFO that its children hold open.
const victimVar = "SCRATCH_TEST_VICTIM"

func TestMain(m *testing.M) {
	if fifo := os.Getenv(victimVar); fifo != "" {
		victim(fifo)
	}
	os.Exit(m.Run())
}

func victim(fifo string) {
	d, err := New("scratch-victim")
	if err == nil {
		_, err = d.Start(holder(d, fifo))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(d.Path)
	select {}
}

// holder is a process that, with a child of its own, holds a FIFO open: its
// reader meets the end only when the whole group is gone. A process id would
// not tell, as it stays in use until the dead process is waited for.
func holder(d *Dir, fifo string) Spec {
	return Spec{Name: "holder", Path: "/bin/sh", Env: d.Env(),
		Args: []string{"-c", `exec 3>"$1"; echo up >&3; sleep 600 & sleep 600`, "sh", fifo}}
}

func makeFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// within fails the test if f takes longer than anything but a hang does.
func within(t *testing.T, what string, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: still waiting after 30 s", what)
	}
}

// holding opens a FIFO's reading end once its holder is up.
func holding(t *testing.T, fifo string) *bufio.Reader {
	t.Helper()
	var f *os.File
	t.Cleanup(func() {
		if f != nil {
			f.Close()
		}
	})
	var r *bufio.Reader
	within(t, "holder comes up", func() (err error) {
		if f, err = os.Open(fifo); err != nil {
			return err
		}
		r = bufio.NewReader(f)
		_, err = r.ReadString('\n')
		return err
	})
	return r
}

func released(r io.Reader) func() error {
	return func() error {
		_, err := io.Copy(io.Discard, r)
		return err
	}
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	d, err := New("scratch-test")
	if err != nil {
		t.Fatal(err)
	}
	fifo := makeFIFO(t)
	if _, err := d.Start(holder(d, fifo)); err != nil {
		t.Fatal(err)
	}
	r := holding(t, fifo)
	if err := d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	within(t, "group ends", released(r))
	wantGone(t, d.Path)
	if err := d.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := d.Start(holder(d, fifo)); err == nil {
		t.Error("started a process in a closed directory")
	}
}

func TestWatchdogOutlivesUs(t *testing.T) {
	fifo := makeFIFO(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVar+"="+fifo)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	path, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	path = strings.TrimSpace(path)
	r := holding(t, fifo)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	within(t, "group ends", released(r))
	within(t, "directory is removed", func() error {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				return nil
			}
		}
		return nil
	})
}

func TestStop(t *testing.T) {
	for _, c := range []struct {
		name, script string
		grace        time.Duration
		wantErr      string
		wantLog      string
	}{
		{"ends when asked", `trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done`, 20 * time.Second, "", "up\nasked\n"},
		{"does not listen", `trap '' TERM; echo up; while :; do sleep 0.05; done`, 50 * time.Millisecond, "still running 50ms after SIGTERM", "up\n"},
		{"is not asked", `trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done`, 0, "", "up\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := New("scratch-test")
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			p, err := d.Start(Spec{Name: "it", Path: "/bin/sh", Args: []string{"-c", c.script}, Env: d.Env()})
			if err != nil {
				t.Fatal(err)
			}
			within(t, "comes up", func() error {
				tick := time.NewTicker(5 * time.Millisecond)
				defer tick.Stop()
				for p.Log() == "" {
					<-tick.C
				}
				return nil
			})
			err = p.Stop(c.grace)
			if got := fmt.Sprint(err); (err == nil) != (c.wantErr == "") || !strings.Contains(got, c.wantErr) {
				t.Errorf("Stop: %v, want %q", err, c.wantErr)
			}
			if got := p.Log(); got != c.wantLog {
				t.Errorf("log is %q, want %q", got, c.wantLog)
			}
		})
	}
}

func TestErrShowsTheLog(t *testing.T) {
	d, err := New("scratch-test")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p, err := d.Start(Spec{Name: "it", Path: "/bin/sh", Env: d.Env(),
		Args: []string{"-c", `i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; done; exit 4`}})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "ends", func() error { <-p.Done(); return nil })
	got := fmt.Sprint(p.Err())
	for _, want := range []string{"it: exit status 4", "line 21\n", "line 40"} {
		if !strings.Contains(got, want) {
			t.Errorf("Err() = %q, lacks %q", got, want)
		}
	}
	if strings.Contains(got, "line 20\n") {
		t.Errorf("Err() = %q, more than 20 lines", got)
	}
}
