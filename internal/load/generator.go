// Package load sends requests to a server of OpenAI's kind and measures how it
// answers.
//
// A [Generator] either keeps a number of requests under way, a new one for each that
// has ended, or sends them at the times of a Poisson process or of a trace, whether
// the server keeps up or not. In the second case latencies count from the time at which
// a request was due: one that waits because those before it hold things up has waited.
package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what is sent.
type Options struct {
	URL      string // of the server, with or without its /v1
	Model    string // empty: the only one that the server names
	Key      string // empty: none
	Endpoint Endpoint

	Prompt   Lengths // tokens of a prompt, beside those that it shares
	Answer   Lengths // tokens of an answer, at most
	Shared   int     // tokens that a prompt begins with and shares with others
	Prefixes int     // how many such beginnings there are, if Shared is not 0
	Seed     uint64  // of prompts, lengths and times

	// Fields go into every request as they are; null takes one out.
	Fields map[string]any

	Requests    int           // 0: as many as Duration allows
	Duration    time.Duration // for which requests are sent; 0: no limit
	Concurrency int           // requests under way at most; with a Rate, 0 is no limit
	Rate        float64       // requests a second; 0: one for each that has ended
	Timeout     time.Duration // for one request; 0: none

	// Trace, where not nil, says when requests are due and how long they are; Rate, Prompt,
	// Answer and Shared do not count then.
	Trace *Trace
	SLO   SLO // that answers are held to; zero: none
}

// timed says that requests are sent when they are due.
func (o *Options) timed() bool { return o.Rate > 0 || o.Trace != nil }

// An Endpoint is the kind of request that is sent.
type Endpoint string

// The endpoints.
const (
	Chat        Endpoint = "chat"
	Completions Endpoint = "completions"
)

// ErrOptions is in the chain of what [New] returns for options that make no sense.
var ErrOptions = errors.New("load: options that make no sense")

// An optionsError says what is wrong with options.
type optionsError struct{ error }

func (e optionsError) Is(target error) bool { return target == ErrOptions }

func optionsErrorf(format string, a ...any) error { return optionsError{fmt.Errorf(format, a...)} }

func (o *Options) check() error {
	switch {
	case o.Endpoint != Chat && o.Endpoint != Completions:
		return optionsErrorf("the endpoint is %q: want %s or %s", o.Endpoint, Chat, Completions)
	case o.Requests < 0 || o.Duration < 0 || o.Requests == 0 && o.Duration == 0 && o.Trace == nil:
		return optionsErrorf("%d requests in %s: want a number of requests, a duration, or both", o.Requests, o.Duration)
	case o.Rate != 0 && !(o.Rate >= minRate && o.Rate <= maxRate):
		return optionsErrorf("a rate of %v requests a second: want %v to %.0f", o.Rate, minRate, float64(maxRate))
	case o.Trace != nil && (o.Rate != 0 || o.Shared != 0):
		return optionsErrorf("a trace says by itself when requests are due and what they share: want no rate and no tokens shared beside it")
	case o.Concurrency < 0 || o.Concurrency == 0 && !o.timed():
		return optionsErrorf("%d requests at one time: want 1 or more, a rate, or a trace", o.Concurrency)
	case o.Shared < 0 || o.Shared > maxLength:
		return optionsErrorf("%d tokens shared: want 0 to %d", o.Shared, maxLength)
	case o.Shared > 0 && o.Prefixes < 1:
		return optionsErrorf("%d different beginnings: want 1 or more", o.Prefixes)
	case o.Timeout < 0:
		return optionsErrorf("a time limit of %s: want more than 0, or 0 for none", o.Timeout)
	}
	return nil
}

// minRate is a request in eleven days, maxRate more than one process can send.
const (
	minRate = 1e-6
	maxRate = 1e6
)

// A Generator sends requests once.
type Generator struct {
	options Options
	client  *Client
	writer  *writer
	record  *recorder

	begun  atomic.Pointer[time.Time] // nil before it is
	sent   atomic.Int64
	done   atomic.Int64
	failed atomic.Int64
	chunks atomic.Int64
}

// New asks the server what it needs to know: the name of its model where the options
// have none, and how it counts tokens where it says so.
func New(ctx context.Context, o Options) (*Generator, error) {
	return newGenerator(ctx, o, newTransport())
}

func newGenerator(ctx context.Context, o Options, t http.RoundTripper) (*Generator, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c, err := NewClient(o.URL, o.Key, t)
	if err != nil {
		return nil, err
	}
	if o.Model == "" {
		if o.Model, err = c.onlyModel(ctx); err != nil {
			return nil, err
		}
	}
	w, err := newWriter(ctx, c, &o)
	if err != nil {
		return nil, err
	}
	return &Generator{options: o, client: c, writer: w, record: newRecorder(o.SLO)}, nil
}

// Run sends the requests, waits for their answers and says what was measured. When
// ctx ends it gives up those under way, and returns the error of ctx beside what was
// measured until then.
func (g *Generator) Run(ctx context.Context) (*Result, error) {
	defer g.client.http.CloseIdleConnections()
	begun := time.Now()
	g.record.begun = begun
	g.begun.Store(&begun)
	if g.options.timed() {
		g.whenDue(ctx, begun)
	} else {
		g.oneForAnother(ctx, begun)
	}
	return g.record.result(&g.options, time.Since(begun)), ctx.Err()
}

// oneForAnother keeps requests under way.
func (g *Generator) oneForAnother(ctx context.Context, begun time.Time) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range g.options.Concurrency {
		workers.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if g.options.Requests > 0 && i >= g.options.Requests {
					return
				}
				r := g.writer.request(i)
				if ctx.Err() != nil || g.options.Duration > 0 && time.Since(begun) >= g.options.Duration {
					return
				}
				g.send(ctx, r, time.Now())
			}
		})
	}
	workers.Wait()
}

// whenDue sends requests when they are due. The next one is written before that.
func (g *Generator) whenDue(ctx context.Context, begun time.Time) {
	var places chan struct{}
	if g.options.Concurrency > 0 {
		places = make(chan struct{}, g.options.Concurrency)
	}
	times := g.options.poisson()
	if g.options.Trace != nil {
		times = g.options.Trace.times()
	}
	i := -1
	var underWay sync.WaitGroup
	defer underWay.Wait()
	for due := range times {
		if i++; g.options.Requests > 0 && i >= g.options.Requests || g.options.Duration > 0 && due >= g.options.Duration {
			return
		}
		g.record.expect(due)
		r := g.writer.request(i)
		at := begun.Add(due)
		if !sleepUntil(ctx, at) {
			return
		}
		underWay.Go(func() {
			if places != nil {
				select {
				case places <- struct{}{}:
					defer func() { <-places }()
				case <-ctx.Done():
					return
				}
			}
			g.send(ctx, r, at)
		})
	}
}

// poisson yields when requests are due at a rate.
func (o *Options) poisson() iter.Seq[time.Duration] {
	random := rand.New(rand.NewPCG(o.Seed, arrivals))
	return func(yield func(time.Duration) bool) {
		var due time.Duration
		for {
			if due += time.Duration(random.ExpFloat64() / o.Rate * float64(time.Second)); !yield(due) {
				return
			}
		}
	}
}

// sleepUntil reports whether the time came before ctx ended.
func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send sends one request, which was due at a time, and notes how it went.
func (g *Generator) send(ctx context.Context, r *request, due time.Time) {
	g.sent.Add(1)
	limited := ctx
	if g.options.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, g.options.Timeout)
		defer cancel()
	}
	a := &answer{due: due, sent: time.Now(), meter: &g.chunks}
	err := g.client.stream(limited, g.options.Endpoint, r.body, a)
	switch {
	case err == nil:
		g.record.add(a)
	case ctx.Err() != nil:
		g.record.abandon()
	case limited.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		g.failed.Add(1)
		g.record.fail(fmt.Sprintf("no end within %s", g.options.Timeout), err)
	default:
		g.failed.Add(1)
		g.record.fail(kind(err), err)
	}
	g.done.Add(1)
}

// A Progress is how far a Generator has come.
type Progress struct {
	Elapsed            time.Duration
	Sent, Done, Failed int64 // requests; those that failed are done
	Chunks             int64 // pieces of answers, about as many as tokens
}

// Progress may be called in any goroutine.
func (g *Generator) Progress() Progress {
	var elapsed time.Duration
	if begun := g.begun.Load(); begun != nil {
		elapsed = time.Since(*begun)
	}
	return Progress{Elapsed: elapsed, Done: g.done.Load(), Sent: g.sent.Load(), Failed: g.failed.Load(), Chunks: g.chunks.Load()}
}

// Model is the name of the model that is asked.
func (g *Generator) Model() string { return g.options.Model }

// newTransport keeps a connection for each request under way, as many users have.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1<<16
	t.DisableCompression = true
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}
