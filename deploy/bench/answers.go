//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"playbook-bot/deploy/sandbox/internal/bot"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

const (
	// answersPerThread is below the bot's limit of answers to one account in
	// a thread.
	answersPerThread = 9
	owner            = "olivia"
	echoText         = "Noted."
)

// answerTimes are from a comment's 201 to the answer's, on a real Gitea.
type answerTimes struct {
	echo, ours result
	// long are the calls in a thread of longThread comments.
	long callsOf
}

// side is one of the two bots on the real Gitea.
type side struct {
	repo  *tracker.Repo
	watch *watch
	// text is what is said the ith time.
	text   func(i int) string
	number int64
	times  result
}

// compareAnswers measures the bot and the echo bot in turns.
func (b *bench) compareAnswers(ctx context.Context) (_ *answerTimes, err error) {
	if b.gitea == nil {
		return nil, nil
	}
	b.saying("answers: starting Gitea")
	server, err := tracker.Start(ctx, b.dir, *b.gitea)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	echo, stopEcho, err := b.echoSide(ctx, server)
	if err != nil {
		return nil, err
	}
	defer stopEcho()
	ours, stopOurs, err := b.ourSide(ctx, server)
	if err != nil {
		return nil, err
	}
	defer stopOurs()
	b.saying("answers: %d on each side", b.answers)
	const warmUp = 6
	for i := range b.answers + warmUp {
		for _, s := range []*side{echo, ours} {
			took, err := s.say(ctx, i)
			if err != nil {
				return nil, err
			}
			if i >= warmUp {
				s.times.latencies = append(s.times.latencies, took)
			}
		}
	}
	t := &answerTimes{echo: echo.times, ours: ours.times}
	b.saying("answers: calls in a thread of %d comments", longThread)
	t.long, err = longAnswers(ctx, ours)
	return t, err
}

// side makes a repository on the server and a watch over a bot's way to it.
func newSide(ctx context.Context, server *tracker.Server, name string) (*side, error) {
	repo, err := server.NewRepo(ctx, tracker.RepoSpec{Org: "ops", Name: name, Owner: owner,
		People: []tracker.Person{{Login: admin, Permission: "admin"}, {Login: botLogin, Permission: "admin"}}})
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(server.URL)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 32}
	w, err := watchOver(proxy)
	return &side{repo: repo, watch: w}, err
}

// say comments and waits until the answer stands and all that follows it.
func (s *side) say(ctx context.Context, i int) (time.Duration, error) {
	if i%answersPerThread == 0 {
		number, err := s.repo.Open(ctx, admin, fmt.Sprintf("thread %d", i/answersPerThread), "Something is wrong.")
		if err != nil {
			return 0, err
		}
		s.number = number
		if err := s.watch.quiet(ctx, settled); err != nil {
			return 0, err
		}
	}
	took, err := s.ask(ctx, s.number, s.text(i))
	if err != nil {
		return 0, fmt.Errorf("comment %d in %s: %w", i, s.repo.FullName(), err)
	}
	return took, s.watch.quiet(ctx, apart)
}

// apart is how long the forge is left alone between two comments. Gitea gathers
// deliveries for 100 ms before it sends them (batchDebounceDuration in its
// modules/queue): a comment that follows an answer of the other side sooner
// rides along with that answer's delivery, and the more so the later the other
// side was done.
const apart = 160 * time.Millisecond

// ask comments, and returns the time from the comment's 201 to the answer's.
func (s *side) ask(ctx context.Context, number int64, text string) (time.Duration, error) {
	if _, err := s.repo.Comment(ctx, admin, number, text); err != nil {
		return 0, err
	}
	begun := time.Now()
	at, err := s.watch.answered(ctx)
	return max(at.Sub(begun), 0), err
}

func (b *bench) ourSide(ctx context.Context, server *tracker.Server) (_ *side, stop func(), err error) {
	s, err := newSide(ctx, server, "incidents")
	if err != nil {
		return nil, nil, err
	}
	s.text = func(i int) string { return fmt.Sprintf("/assess full_mcp_restart target=service-%d", i) }
	token, err := server.Token(ctx, botLogin, tracker.BotScopes)
	if err != nil {
		return nil, nil, err
	}
	running, err := bot.New(b.dir, bot.Config{Binary: b.binary, GiteaURL: s.watch.URL, Token: token,
		Secret: masterSecret, Repositories: []string{s.repo.FullName()}})
	if err != nil {
		return nil, nil, err
	}
	hook, err := running.Hook(ctx, s.repo.FullName())
	if err != nil {
		return nil, nil, err
	}
	if err := s.repo.Hook(ctx, hook.URL, hook.Secret); err != nil {
		return nil, nil, err
	}
	if err := running.Start(ctx); err != nil {
		return nil, nil, err
	}
	return s, func() { running.Kill(); _ = s.watch.close() }, s.watch.quiet(ctx, settled)
}

// echoSide is a bot that answers every comment with the same words, at once:
// what an answer on this Gitea costs at least.
func (b *bench) echoSide(ctx context.Context, server *tracker.Server) (_ *side, stop func(), err error) {
	s, err := newSide(ctx, server, "echoes")
	if err != nil {
		return nil, nil, err
	}
	s.text = func(i int) string { return fmt.Sprintf("Comment %d.", i) }
	token, err := server.Token(ctx, botLogin, tracker.BotScopes)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	srv := &http.Server{Handler: echo(s.watch.URL, s.repo.FullName(), token), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(l) }() // ends by Close
	stop = func() { _ = srv.Close(); _ = s.watch.close() }
	return s, stop, s.repo.Hook(ctx, "http://"+l.Addr().String()+"/", bareSecret)
}

// echo answers a delivery's comment while the delivery is answered.
func echo(forge, repo, token string) http.Handler {
	client := &http.Client{Timeout: shotTimeout}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var d struct {
			Action string
			Issue  struct{ Number int64 }
			Sender struct{ Login string }
		}
		err := json.NewDecoder(io.LimitReader(r.Body, 5<<20)).Decode(&d)
		w.WriteHeader(http.StatusAccepted)
		if err != nil || r.Header.Get("X-Gitea-Event") != "issue_comment" || d.Action != "created" || d.Sender.Login == botLogin {
			return
		}
		go func() {
			text, _ := json.Marshal(map[string]string{"body": echoText})
			to := fmt.Sprintf("%s/api/v1/repos/%s/issues/%d/comments", forge, repo, d.Issue.Number)
			req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, to, bytes.NewReader(text))
			if err != nil {
				return
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "token "+token)
			if resp, err := client.Do(req); err == nil { // an error shows as an answer that does not come
				resp.Body.Close()
			}
		}()
	})
}

// longThread is how many comments the long thread on the real Gitea has.
const longThread = 1_000

// longAnswers counts the calls of answers in a long thread on the real Gitea.
// The bot has seen its comments come, so that no answer is to a thread unknown:
// its cold column is the first answer's.
func longAnswers(ctx context.Context, s *side) (c callsOf, err error) {
	number, err := s.repo.Open(ctx, admin, "a long thread", "Something is wrong.")
	if err != nil {
		return c, err
	}
	for i := range longThread {
		if _, err := s.repo.Comment(ctx, admin, number, fmt.Sprintf("Comment %d: nothing new.", i)); err != nil {
			return c, err
		}
	}
	if err := s.watch.quiet(ctx, 2*settled); err != nil {
		return c, err
	}
	if _, err := s.ask(ctx, s.number, warmUpText(0)); err != nil {
		return c, err
	}
	if err := s.watch.quiet(ctx, settled); err != nil {
		return c, err
	}
	c, err = threeAnswers(ctx, s.watch, func(text string) (time.Duration, error) { return s.ask(ctx, number, text) })
	c.length = longThread
	return c, err
}
