package store

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"playbook-bot/bot/store/pgtest"
)

// benchDatabases runs a benchmark on both databases, as they are served: with
// their own clocks, and everything synced to disk.
func benchDatabases(b *testing.B, f func(b *testing.B, l *ledger)) {
	b.Run("sqlite", func(b *testing.B) { f(b, mustOpen(b, filepath.Join(b.TempDir(), "bot.db"), Options{})) })
	b.Run("postgres", func(b *testing.B) { f(b, mustOpen(b, pgtest.URL(b), Options{})) })
}

// BenchmarkAccept takes in new comments, a hundred to a thread: from one
// connection, and from 32.
func BenchmarkAccept(b *testing.B) {
	benchDatabases(b, func(b *testing.B, l *ledger) {
		var id atomic.Int64
		accept := func() {
			n := id.Add(1)
			if _, err := l.Accept(b.Context(), comment(1+n/100, n)); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				accept()
			}
		})
		b.Run("parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(16) // times GOMAXPROCS
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					accept()
				}
			})
		})
	})
}

// BenchmarkAcquireRelease is what one event costs beside its decision and
// answer: acquire, load, finish, release.
func BenchmarkAcquireRelease(b *testing.B) {
	benchDatabases(b, func(b *testing.B, l *ledger) {
		b.ReportAllocs()
		n := int64(0)
		for b.Loop() {
			b.StopTimer()
			n++
			if _, err := l.Accept(b.Context(), comment(n, n)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			le, err := l.Acquire(b.Context(), "w", 10*time.Second)
			if err != nil || le == nil {
				b.Fatal(le, err)
			}
			t, err := l.Load(b.Context(), le)
			if err != nil {
				b.Fatal(err)
			}
			if err := l.Commit(b.Context(), le, Change{State: []byte("{}"), Finish: done(t.Events[0].ID)}); err != nil {
				b.Fatal(err)
			}
			if err := l.Release(b.Context(), le); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOpen is a start on a database that exists.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bot.db")
	for b.Loop() {
		l, err := open(b.Context(), path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
