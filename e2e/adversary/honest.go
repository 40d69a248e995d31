package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// An honest client asks for short answers, one after another.
type honest struct {
	url    string
	client *http.Client
}

func newHonest(url string) *honest {
	return &honest{url: url, client: &http.Client{Timeout: time.Minute}}
}

// A period records how an honest client fared for a while.
type period struct {
	answers, lost int
	median, worst time.Duration
	err           error // the error of the last request that failed
}

// patience is how long the client repeats a request after answers with status 429, and mostCuts
// how many connections it may lose. It pauses before it repeats one, as clients of the APIs do.
const (
	patience = 20 * time.Second
	mostCuts = 4
	again    = 100 * time.Millisecond
)

// ask gets one answer. It repeats the request if the server says so, or if the connection is cut
// before an answer has begun: at the bound of connections a new one replaces one that waits.
func (h *honest) ask(ctx context.Context) error {
	var last error
	for end, cuts := time.Now().Add(patience), 0; cuts < mostCuts && time.Now().Before(end); time.Sleep(again) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/v1/completions",
			strings.NewReader(`{"model":"demo","prompt":"How do I change the port of the server?","max_tokens":8,"temperature":0}`))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := h.client.Do(r)
		if err != nil {
			last = err
			cuts++
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case err != nil:
			return err
		case resp.StatusCode == http.StatusOK:
			return nil
		case resp.StatusCode != http.StatusTooManyRequests:
			return fmt.Errorf("%d %.200s", resp.StatusCode, body)
		}
		last = fmt.Errorf("%d %.200s", resp.StatusCode, body)
	}
	return last
}

// during asks for one answer after another until d is over.
func (h *honest) during(ctx context.Context, d time.Duration) (p period) {
	var times []time.Duration
	for end := time.Now().Add(d); time.Now().Before(end); {
		begun := time.Now()
		err := h.ask(context.WithoutCancel(ctx))
		switch {
		case errors.Is(err, context.Canceled):
		case err != nil:
			p.lost++
			p.err = err
		default:
			times = append(times, time.Since(begun))
		}
		time.Sleep(20 * time.Millisecond)
		if ctx.Err() != nil {
			break
		}
	}
	if p.answers = len(times); p.answers > 0 {
		slices.Sort(times)
		p.median, p.worst = times[len(times)/2], times[len(times)-1]
	}
	return p
}
