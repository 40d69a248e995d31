// Package server answers HTTP requests with a model, in the dialects of known APIs.
//
// The package of a [Dialect] has its endpoints, the fields of its requests, and the form of its
// answers and errors. This package has what all dialects share: who may send requests and how many
// at a time, how a body is read, how prompts are run, and how an answer is streamed.
//
// A request is read strictly. A field that is not known, or that would change the answer and is not
// supported, is an error that names it. Nothing is truncated, clamped or ignored silently.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/kvtransfer"
)

// A Config says how models are served.
type Config struct {
	// Version is the program's version.
	Version string
	// Dialects are the dialects of the server, at least one.
	Dialects []Dialect
	// Parallel is the number of answers, of all models together, that run at a time.
	Parallel int
	// MaxQueue is the number of answers that may wait beyond Parallel; further requests are refused
	// with 429. 0 means that none waits.
	MaxQueue int
	// MaxBody is the maximum size of a request's body in bytes. 0 means 32 MiB.
	MaxBody int64
	// RequestMemory is the number of bytes that all requests may hold together: bodies, texts,
	// tokens, and answers that are not sent yet. 0 means 256 MiB.
	RequestMemory int64
	Deadlines     Deadlines
	// JSON says how JSON answers are written. Whether a schema is strict is in the request.
	JSON realizar.JSONOptions
	// Connections bounds the clients' connections, and is shown in the metrics. nil means no bound.
	Connections *Connections
	// Hosts are the names by which requests may call the server, besides IP addresses and
	// localhost; "*" permits any name, and so does nil. Other names are refused, as the owner of a
	// web page can make its name refer to this machine, so that scripts of the page could ask the
	// server.
	Hosts []string
	// Keys are the keys of which a request must have one. nil means that no key is needed.
	Keys *Keys
	// Origins are the origins of web pages whose scripts may use the server, for example
	// "https://example.org"; "*" permits all. By default only pages from the server's own address
	// may, if that is an IP address or localhost or if keys are needed.
	Origins []string
	// Logger logs a line for each request. nil means no log.
	Logger *slog.Logger
	// Lenient ignores unknown fields of requests, and reports them in the log and in a header.
	// Otherwise they are errors.
	Lenient bool
	// StreamKeepAlive is how long a stream of events may be silent before it gets a comment, while
	// the request waits in the queue or its prompt is read. 0 means that there are no comments.
	StreamKeepAlive time.Duration
	// LogPrompts adds the bodies of requests to their log lines.
	LogPrompts bool
	// Spans traces each request. nil means no tracing.
	Spans Spans
	// Transfer moves pages of the KV cache from and to other servers. nil means that there are none.
	Transfer *kvtransfer.Peer
	// Page is the page for browsers. nil means none.
	Page Page
	// Store has the models of the machine, which clients may change. nil means that they may not.
	Store Store
}

// The defaults of a [Config].
const (
	defaultMaxBody       = 32 << 20
	defaultRequestMemory = 256 << 20
)

func (c *Config) complete() error {
	switch {
	case c.Parallel < 1:
		return fmt.Errorf("server: %d answers at one time; want 1 or more", c.Parallel)
	case c.RequestMemory < 0:
		return fmt.Errorf("server: %d bytes for all requests; want 1 or more, or 0 for %d", c.RequestMemory, defaultRequestMemory)
	case len(c.Dialects) == 0:
		return errors.New("server: no dialect")
	}
	if c.RequestMemory == 0 {
		c.RequestMemory = defaultRequestMemory
	}
	if c.Connections == nil {
		c.Connections = &Connections{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// A Server serves models.
type Server struct {
	models     *Models
	created    time.Time
	config     Config // without what settings has
	settings   atomic.Pointer[settings]
	mux        *http.ServeMux
	methods    map[string][]string // of the paths
	operations map[string]string   // of the routes that have one
	handler    http.Handler
	admission  admission
	memory     *budget.Budget
	turns      turns
	grammars   *grammars
	records    records
	metrics    *metrics

	stopped context.Context // ends when running requests must end
	stop    context.CancelCauseFunc
	ended   []func(*Exchange) // called after each request
}

// New returns a server of models. It does not close models.
func New(models *Models, c Config) (*Server, error) {
	set, err := newSettings(&c)
	if err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	s := &Server{models: models, created: time.Now(), config: c, mux: http.NewServeMux(), methods: map[string][]string{}, operations: map[string]string{}, grammars: newGrammars()}
	s.turns = newTurns()
	s.memory = budget.New(c.RequestMemory)
	s.admission.draining, s.admission.empty = make(chan struct{}), make(chan struct{})
	s.stopped, s.stop = context.WithCancelCause(context.Background())
	s.metrics = newMetrics(s.state)
	s.ended = append(s.ended, beaten, s.metrics.answered, s.unfollow)
	s.settings.Store(set)
	s.admission.bound(c.Parallel + c.MaxQueue)
	s.routes()
	s.handler = s.middleware(s.mux)
	return s, nil
}

// state returns the current state of s.
func (s *Server) state() state {
	now := state{memory: s.memory.Stats(), connections: s.config.Connections.Stats(), pool: s.poolState()}
	now.admitted, _ = s.admission.count()
	now.models = s.modelMetrics(now.pool.models)
	if s.config.Transfer != nil {
		now.transfers = s.config.Transfer.Stats()
	}
	return now
}

// Held returns the number of bytes that requests hold.
func (s *Server) Held() int64 {
	m := s.memory.Stats()
	return m.Used - m.Spare
}

// Spare opens a spare account for data that is kept for later requests, see
// [budget.Budget.OpenSpare].
func (s *Server) Spare(evict func()) *budget.Account { return s.memory.OpenSpare(evict) }

// Version returns the program's version.
func (s *Server) Version() string { return s.config.Version }

// Created returns the time when the server was created.
func (s *Server) Created() time.Time { return s.created }

// Handler answers the requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Drain refuses new requests with 503; running ones go on.
func (s *Server) Drain() { s.admission.drain() }

// Draining returns a channel that [Server.Drain] closes. Streams that would never end must end
// then.
func (s *Server) Draining() <-chan struct{} { return s.admission.draining }

// Wait waits until no request runs after [Server.Drain], or ctx ends.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-s.admission.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop drains the server and ends running requests with an error.
func (s *Server) Stop() {
	s.Drain()
	s.stop(errDraining)
}
