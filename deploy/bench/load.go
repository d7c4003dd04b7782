//go:build unix

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// shotTimeout is how long one answer may take; Gitea itself waits 5 s.
const shotTimeout = 5 * time.Second

// target is where deliveries go.
type target struct {
	addr   string // HOST:PORT, always on loopback
	path   string
	secret string
	t      *template
	// next numbers the deliveries; those of one target never repeat.
	next *atomic.Int64
	// accepted counts those that were answered with a 2xx.
	accepted *atomic.Int64
}

// burst is how deliveries are sent.
type burst struct {
	conns int
	// rate is how many are due per second, evenly; 0: each connection sends
	// its next as soon as it has the last one's answer.
	rate float64
	time time.Duration
}

// result is what came of bursts.
type result struct {
	sent, failed int
	// firstFailure says what the first failure was.
	firstFailure error
	took         time.Duration
	// latencies are of those that were taken, from when each was due. They
	// are sorted by quantile.
	latencies []time.Duration
}

func (r *result) add(o result) {
	r.sent += o.sent
	r.failed += o.failed
	r.firstFailure = cmp.Or(r.firstFailure, o.firstFailure)
	r.took += o.took
	r.latencies = append(r.latencies, o.latencies...)
}

// rate is deliveries taken per second.
func (r *result) rate() float64 {
	if r.took <= 0 {
		return 0
	}
	return float64(len(r.latencies)) / r.took.Seconds()
}

// quantile of the latencies by nearest rank; 0 where there are none.
func (r *result) quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	slices.Sort(r.latencies)
	rank := int(q*float64(len(r.latencies))+0.999999) - 1
	return r.latencies[min(max(rank, 0), len(r.latencies)-1)]
}

// send sends a burst and returns when all its answers are there.
func send(ctx context.Context, to target, b burst) result {
	var (
		mu    sync.Mutex
		total result
		wg    sync.WaitGroup
		due   atomic.Int64
	)
	begun := time.Now()
	ctx, cancel := context.WithDeadline(ctx, begun.Add(b.time))
	defer cancel()
	for range b.conns {
		wg.Go(func() {
			r := oneConn(ctx, to, func() (time.Time, bool) { return nextDue(ctx, begun, b.rate, &due) })
			mu.Lock()
			defer mu.Unlock()
			total.add(r)
		})
	}
	wg.Wait()
	total.took = time.Since(begun)
	return total
}

// nextDue waits until the next delivery is due. With a rate it is measured
// from then, however late a connection is free for it: a receiver that stalls
// must not slow down the clock it is measured with.
func nextDue(ctx context.Context, begun time.Time, rate float64, due *atomic.Int64) (time.Time, bool) {
	if rate <= 0 {
		return time.Now(), ctx.Err() == nil
	}
	at := begun.Add(time.Duration(float64(due.Add(1)-1) / rate * float64(time.Second)))
	wait := time.NewTimer(time.Until(at))
	defer wait.Stop()
	select {
	case <-wait.C:
		return at, ctx.Err() == nil
	case <-ctx.Done():
		return at, false
	}
}

// oneConn sends over one connection, which is made anew where it broke.
func oneConn(ctx context.Context, to target, next func() (time.Time, bool)) (r result) {
	m := to.t.maker(to.secret)
	var c *conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for {
		at, ok := next()
		if !ok {
			return r
		}
		r.sent++
		var err error
		if c == nil {
			c, err = dial(to.addr)
		}
		if err == nil {
			body, sig := m.make(to.next.Add(1) - 1)
			err = c.deliver(to, body, sig)
		}
		if err == nil {
			to.accepted.Add(1)
			r.latencies = append(r.latencies, time.Since(at))
			continue
		}
		if r.failed++; r.firstFailure == nil {
			r.firstFailure = err
		}
		if c != nil {
			c.Close()
			c = nil
		}
		if r.failed > 20 {
			return r // it is down: no use in hammering it
		}
	}
}

// conn speaks just enough HTTP/1.1: the less the sender costs, the more of the
// machine is left for what is measured.
type conn struct {
	net.Conn
	in  *bufio.Reader
	out bytes.Buffer
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, shotTimeout)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReader(c)}, nil
}

// deliver sends one delivery as Gitea does and reads its answer, which must be
// a 2xx.
func (c *conn) deliver(to target, body, sig []byte) error {
	id := strconv.FormatInt(to.next.Load(), 16)
	c.out.Reset()
	fmt.Fprintf(&c.out, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n"+
		"X-Gitea-Delivery: 53a1b12c-7e29-48e8-82ef-%012s\r\nX-Gitea-Event: issue_comment\r\nX-Gitea-Event-Type: issue_comment\r\n"+
		"X-Gitea-Signature: %s\r\nX-Hub-Signature-256: sha256=%s\r\nContent-Length: %d\r\n\r\n",
		to.path, to.addr, id, sig, sig, len(body))
	c.out.Write(body)
	if err := c.SetDeadline(time.Now().Add(shotTimeout)); err != nil {
		return err
	}
	if _, err := c.Write(c.out.Bytes()); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
