package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/pool"
)

// health answers that the process is alive.
func (s *Server) health(x *Exchange) error {
	x.WriteJSON([]byte(`{"status":"ok"}`))
	return nil
}

// ready reports whether a request would be admitted and some model can answer it, how many answers
// run or wait, of how many, and how many copies of models with several work.
func (s *Server) ready(x *Exchange) error {
	if s.admission.isDraining() {
		return errDraining
	}
	if err := s.able(x); err != nil {
		return err
	}
	if err := s.admission.enter(0); err != nil {
		return err
	}
	taken, limit := s.admission.count()
	return x.JSON(struct {
		Status   string  `json:"status"`
		Answers  int     `json:"answers"`
		Limit    int     `json:"limit"`
		Replicas *copies `json:"replicas,omitempty"`
	}{"ready", taken, limit, s.replicas()})
}

// copies counts the replicas of models.
type copies struct {
	All     int `json:"all"`
	Working int `json:"working"`
}

// replicas returns the copies of loaded models that have several, or nil if none has.
func (s *Server) replicas() (all *copies) {
	for _, m := range s.models.Models() {
		s.Look(m.Name, func(m *Model) {
			if m.Replicas() < 2 {
				return
			}
			if all == nil {
				all = &copies{}
			}
			for _, r := range m.Metrics().Replicas {
				if all.All++; !r.Failed {
					all.Working++
				}
			}
		})
	}
	return all
}

// able returns nil if some model can answer: it is loaded and works, or can be loaded. Otherwise it
// returns why the first model cannot.
func (s *Server) able(x *Exchange) (failed error) {
	for _, m := range s.models.Models() {
		var err error
		if m.State == pool.Failed {
			err = failing(x.errorOf(&pool.LoadError{Model: m.Name, Err: m.Err}))
		}
		s.Look(m.Name, func(m *Model) {
			if err = m.Damage(); err != nil {
				err = failing(x.errorOf(err))
				return
			}
			err = m.pulse.check(x, m)
		})
		if err == nil {
			return nil
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// A pulse tracks whether a model can answer. The model counts as working until a request fails by
// no fault of its own. From then on the model itself is asked, until it answers that or any other
// request.
type pulse struct {
	asking sync.Mutex // held while the model is asked
	asked  time.Time  // guarded by asking

	mu     sync.Mutex
	failed *Error // nil while the model is well
}

// state returns why the model fails, or nil.
func (p *pulse) state() *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// set records why the model fails, or nil, and returns the value before.
func (p *pulse) set(failed *Error) (before *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, p.failed = p.failed, failed
	return before
}

// How often the model is asked, and how long it may take.
const (
	pulseEvery = time.Second
	pulseTime  = 10 * time.Second
)

// beaten records how a request ended.
func beaten(x *Exchange) {
	if x.hold == nil {
		return
	}
	p := &x.Model().pulse
	if x.err == nil {
		if x.asked && x.status == http.StatusOK {
			p.well(x)
		}
		return
	}
	if e := x.errorOf(x.err); e.Status == http.StatusInternalServerError && p.set(e) == nil {
		x.Server.config.Logger.Error("the model fails: not ready until it answers", slog.String("model", x.Name()), slog.String("code", e.Code), slog.String("error", x.err.Error()))
	}
}

// well records that the model has answered x, or the question that x caused.
func (p *pulse) well(x *Exchange) {
	if before := p.set(nil); before != nil {
		x.Server.config.Logger.Info("the model answers again: ready", slog.String("request_id", x.id), slog.String("failed_with", before.Message))
	}
}

// check returns nil, or why the model cannot answer.
func (p *pulse) check(x *Exchange, m *Model) error {
	failed := p.state()
	if failed != nil && p.asking.TryLock() {
		defer p.asking.Unlock()
		if time.Since(p.asked) >= pulseEvery {
			// The client may leave before the model answers, again and again, so its context is not
			// used.
			ctx, cancel := context.WithTimeout(x.Server.stopped, pulseTime)
			defer cancel()
			err := beat(ctx, m.Model)
			p.asked = time.Now()
			if err == nil {
				p.well(x)
				return nil
			}
			failed = x.errorOf(err)
			_ = p.set(failed)
		}
	}
	if failed == nil {
		return nil
	}
	return failing(failed)
}

// failing returns the answer of a server that is not ready because its model fails with e.
func failing(e *Error) error {
	return &Error{Status: http.StatusServiceUnavailable, Code: "model_failed", RetryAfter: int(pulseEvery / time.Second),
		Message: "the model fails: " + e.Message}
}

// beforeAll is a priority above that of all requests, so that the check ends soon even if all
// places are taken.
const beforeAll = math.MaxInt

// beat runs the model once for its purpose, which reads its weights (in a mixture of experts, those
// of some experts only).
func beat(ctx context.Context, m *realizar.Model) error {
	var err error
	for _, e := range m.Generate(ctx, &realizar.Request{PromptTokens: []int32{0}, Generation: realizar.Generation{MaxTokens: new(1), Priority: beforeAll}}) {
		err = e
	}
	if errors.Is(err, realizar.ErrUnsuited) {
		_, err = m.Embed(ctx, &realizar.EmbedRequest{Inputs: []realizar.EmbedInput{{Tokens: []int32{0}}}, Pooling: realizar.PoolingLast, Priority: beforeAll})
	}
	if errors.Is(err, realizar.ErrUnsuited) {
		_, err = m.Rank(ctx, &realizar.RankRequest{Query: "a", Documents: []string{"b"}, Priority: beforeAll})
	}
	return err
}
