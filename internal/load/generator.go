// Package load sends requests to a server with OpenAI's API and measures its answers.
//
// A [Generator] either keeps a number of requests running, a new one for each that has ended, or
// sends them at the times of a Poisson process or of a trace, whether the server keeps up or not.
// In the second case latencies count from the time at which a request was due: a request that is
// sent late because earlier ones block it has waited.
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

// Options configure a [Generator].
type Options struct {
	URL      string // of the server, with or without /v1
	Model    string // if empty, the only one of the server
	Key      string // if empty, none
	Endpoint Endpoint

	Prompt   Lengths // tokens of a prompt without the shared ones
	Answer   Lengths // tokens of an answer, at most
	Shared   int     // tokens that a prompt begins with and shares with others
	Prefixes int     // number of shared beginnings, if Shared is not 0
	Seed     uint64  // of prompts, lengths and times

	// Fields are added to every request; null removes a field.
	Fields map[string]any

	Requests    int           // if 0, as many as Duration allows
	Duration    time.Duration // time in which requests are sent; 0 for no limit
	Concurrency int           // running requests at most; with a Rate, 0 for no limit
	Rate        float64       // requests a second; if 0, one for each that has ended
	Timeout     time.Duration // of one request; 0 for none

	// Trace, if not nil, gives the times and lengths of requests; Rate, Prompt, Answer and Shared
	// are ignored then.
	Trace *Trace
	SLO   SLO // zero for none
}

// timed reports whether requests are sent when they are due.
func (o *Options) timed() bool { return o.Rate > 0 || o.Trace != nil }

// An Endpoint is a kind of request.
type Endpoint string

// The endpoints.
const (
	Chat        Endpoint = "chat"
	Completions Endpoint = "completions"
)

// ErrOptions is wrapped by the errors that [New] returns for invalid options.
var ErrOptions = errors.New("load: options that make no sense")

// An optionsError reports invalid options.
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
		return optionsErrorf("a trace sets arrival times and shared prefixes; want no rate and no shared tokens with it")
	case o.Concurrency < 0 || o.Concurrency == 0 && !o.timed():
		return optionsErrorf("%d running requests; want 1 or more, a rate, or a trace", o.Concurrency)
	case o.Shared < 0 || o.Shared > maxLength:
		return optionsErrorf("%d tokens shared: want 0 to %d", o.Shared, maxLength)
	case o.Shared > 0 && o.Prefixes < 1:
		return optionsErrorf("%d different beginnings: want 1 or more", o.Prefixes)
	case o.Timeout < 0:
		return optionsErrorf("a time limit of %s: want more than 0, or 0 for none", o.Timeout)
	}
	return nil
}

// minRate is one request in eleven days; maxRate is more than one process can send.
const (
	minRate = 1e-6
	maxRate = 1e6
)

// A Generator sends the requests of one measurement.
type Generator struct {
	options Options
	client  *Client
	writer  *writer
	record  *recorder

	begun  atomic.Pointer[time.Time] // nil before the start
	sent   atomic.Int64
	done   atomic.Int64
	failed atomic.Int64
	chunks atomic.Int64
}

// New asks the server for what it needs: the name of the model if the options have none, and token
// counts if the server supports that.
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

// Run sends the requests, waits for their answers and returns the measurement. When ctx ends it
// cancels the running requests, and returns the measurement so far and the error of ctx.
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

// oneForAnother keeps a number of requests running.
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

// whenDue sends requests when they are due. It writes the next one before that time.
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

// poisson yields the times at which requests are due.
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

// sleepUntil waits until at, and reports whether it came before ctx ended.
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

// send sends one request, which was due at the given time, and records its outcome.
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

// A Progress is the state of a measurement.
type Progress struct {
	Elapsed            time.Duration
	Sent, Done, Failed int64 // requests; Done includes the failed ones
	Chunks             int64 // parts of answers, about as many as tokens
}

// Progress returns the state of the measurement. Any goroutine may call it.
func (g *Generator) Progress() Progress {
	var elapsed time.Duration
	if begun := g.begun.Load(); begun != nil {
		elapsed = time.Since(*begun)
	}
	return Progress{Elapsed: elapsed, Done: g.done.Load(), Sent: g.sent.Load(), Failed: g.failed.Load(), Chunks: g.chunks.Load()}
}

// Model returns the name of the model.
func (g *Generator) Model() string { return g.options.Model }

// newTransport returns a transport with a connection for each running request, as many users have.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1<<16
	t.DisableCompression = true
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}
