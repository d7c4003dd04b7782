//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// lengths of threads, in comments, whose answers are counted.
var lengths = []int{10, 1_000, 10_000}

// settled is how long no call may be made for an answer to be done with.
const settled = 400 * time.Millisecond

// counted are the calls of one answer, by kind.
type counted map[string]int

// beside is what reactions and labels cost, which are a courtesy.
func (c counted) beside() int { return c[kindReaction] + c[kindLabel] }

// own is what the answer itself costs; the look for the repository's own
// playbook, which an approval takes afresh, is shown beside it.
func (c counted) own() int {
	n := -c.beside() - c[kindPlaybook]
	for _, k := range c {
		n += k
	}
	return n
}

// callsOf are the calls of three answers in a thread of a length: to the
// first command the bot sees there, to one after it, and to one that
// approves; with the time of each.
type callsOf struct {
	length               int
	cold, warm, approval counted
	took                 [3]time.Duration
}

// countCalls counts the calls of answers on the fake forge.
func (b *bench) countCalls(ctx context.Context) (all []callsOf, err error) {
	r, err := b.rehearse(ctx, b.sqlite("calls"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	// Older than what the bot would still answer: it is to be read, not to be
	// caught up with.
	old := time.Now().AddDate(0, 0, -30)
	first := r.forge.ImportIssue(repoName, writer, "", "first", "", old)
	for i, n := range lengths {
		b.saying("calls: a thread of %d comments", n)
		if _, err := r.say(ctx, admin, first, warmUpText(i)); err != nil {
			return all, err
		}
		if err := r.watch.quiet(ctx, settled); err != nil {
			return all, err
		}
		number := r.forge.ImportIssue(repoName, writer, "", fmt.Sprintf("thread of %d", n), "Something is wrong.", old)
		for i := range n { // nothing in them is for the bot
			r.forge.ImportComment(repoName, number, writer, "", fmt.Sprintf("Comment %d: nothing new.", i), old)
		}
		c, err := threeAnswers(ctx, r.watch, func(text string) (time.Duration, error) { return r.say(ctx, admin, number, text) })
		if err != nil {
			return all, fmt.Errorf("count the calls in a thread of %d comments: %w", n, err)
		}
		c.length = n
		all = append(all, c)
	}
	return all, nil
}

// theirs are the three commands: a question that is evidence too, another, and a
// request for a gated restart.
var theirs = [3]string{
	"/attempt session_reconnect insufficient whoami names the old build\n/recommend transport_eof",
	"/assess full_mcp_restart target=mcp-search",
	"/restart full_mcp_restart target=mcp-search symptom=stale_capability it names the old build",
}

// warmUpText is what is said in another thread before answers are counted: the
// first answer of a process asks who is who, and the first to an account in a
// minute what it may do. An answer within that minute is what is called warm.
func warmUpText(i int) string { return fmt.Sprintf("/assess full_mcp_restart target=warm-up-%d", i) }

func threeAnswers(ctx context.Context, w *watch, say func(string) (time.Duration, error)) (c callsOf, err error) {
	w.taken()
	for i, into := range []*counted{&c.cold, &c.warm, &c.approval} {
		if c.took[i], err = say(theirs[i]); err != nil {
			return c, err
		}
		if err := w.quiet(ctx, settled); err != nil {
			return c, err
		}
		*into = w.taken()
	}
	return c, nil
}
