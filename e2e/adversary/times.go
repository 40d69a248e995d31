package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// These limits leave room for a machine that is busy with other work.
const (
	slowRefusal = 20 * time.Second
	slowClose   = 40 * time.Second // less than the minute that a body may take
)

// A process that uses less processor time than idle in a second has stopped working. It
// must do so within slowStop seconds.
const (
	idle     = 500 * time.Millisecond
	slowStop = 10
)

// grace is how long work for a client may go on after it has left.
const grace = 100 * time.Millisecond

// measure measures the times that a single client sees while there is no other. Its error has
// those that are too long.
func measure(ctx context.Context, p *process) (lines []string, err error) {
	say := func(good bool, format string, a ...any) {
		line := fmt.Sprintf(format, a...)
		if lines = append(lines, line); !good {
			err = errors.Join(err, errors.New("too slow: "+line))
		}
	}
	body := &large{head: `{"model":"demo","prompt":"`, fill: "a", n: megabytes(30), tail: `"}`}
	if d, status := refusal(ctx, p.url, body); true {
		say(d < slowRefusal && status >= 400, "a prompt of 30 MB is refused with %d, %v after its last byte", status, d.Round(time.Millisecond))
	}
	for _, line := range []string{"POST /nothing", "PUT /v1/completions", "GET /health", "GET /metrics", "GET /ready", "GET /v1/models"} {
		begun := time.Now()
		c := dial(ctx, p.url, line+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nabc")
		if c == nil {
			say(false, "%s: no connection", line)
			continue
		}
		_, lost := io.Copy(io.Discard, c)
		say(lost == nil && time.Since(begun) < slowClose, "%s, whose body never comes, is answered and its connection closed after %v", line, time.Since(begun).Round(time.Millisecond))
		_ = c.Close()
	}
	left := &large{head: `{"prompt":"`, fill: "abc de ", n: megabytes(4), tail: `"}`}
	say(stops(ctx, p, "/tokenize", left))
	return lines, err
}

// refusal returns how long after its last byte a request is answered, or 0 if it is answered before,
// and the status.
func refusal(ctx context.Context, url string, body *large) (time.Duration, int) {
	var sent atomic.Int64 // nanoseconds since begun
	begun := time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent.Store(int64(time.Since(begun))) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", body.reader())
	if err != nil {
		return time.Hour, 0
	}
	r.ContentLength = body.length()
	resp, err := quick.Do(r)
	if err != nil {
		return time.Hour, 0
	}
	answered := time.Since(begun)
	_ = resp.Body.Close()
	if last := time.Duration(sent.Load()); last > 0 && last < answered {
		return answered - last, resp.StatusCode
	}
	return 0, resp.StatusCode
}

// stops measures how long the process works for a client that sent a large body and left.
func stops(ctx context.Context, p *process, path string, body *large) (good bool, format string, took time.Duration) {
	c := dial(ctx, p.url, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", path, body.length()))
	if c == nil {
		return false, "no connection: %v", 0
	}
	if _, err := io.Copy(c, body.reader()); err != nil {
		_ = c.Close()
		return false, "the body was not taken: %v", 0
	}
	time.Sleep(30 * time.Millisecond)
	_ = c.Close()
	time.Sleep(grace)
	for range slowStop {
		before := p.processorTime()
		time.Sleep(time.Second)
		last := p.processorTime() - before
		if took += last; last < idle {
			good = true
			break
		}
	}
	return good, "after the client of 4 MB to tokenize has left by 100ms the process is at work for %v until it stops", took
}
