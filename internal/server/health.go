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

// health says that the process is there.
func (s *Server) health(x *Exchange) error {
	x.WriteJSON([]byte(`{"status":"ok"}`))
	return nil
}

// ready says whether a request would be let in and answered by some model, and how many
// answers are under way or wait, of those that may.
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
		Status  string `json:"status"`
		Answers int    `json:"answers"`
		Limit   int    `json:"limit"`
	}{"ready", taken, limit})
}

// able is nil where some model can answer, as it is well or can be loaded, or why the first
// cannot.
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

// A pulse knows whether a model can answer. It is taken as well until a request fails by
// no fault of its own; from then on the model is asked itself, until it answers that or any
// request.
type pulse struct {
	asking sync.Mutex // held by who asks the model
	asked  time.Time  // guarded by asking

	mu     sync.Mutex
	failed *Error // nil while the model is well
}

// state is why the model fails, or nil.
func (p *pulse) state() *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// set notes why the model fails, or that it does not, and returns what was noted before.
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

// beaten notes how a request ended.
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

// well notes that the model has answered x, or was asked for its sake.
func (p *pulse) well(x *Exchange) {
	if before := p.set(nil); before != nil {
		x.Server.config.Logger.Info("the model answers again: ready", slog.String("request_id", x.id), slog.String("failed_with", before.Message))
	}
}

// check is nil, or why the model cannot answer.
func (p *pulse) check(x *Exchange, m *Model) error {
	failed := p.state()
	if failed != nil && p.asking.TryLock() {
		defer p.asking.Unlock()
		if time.Since(p.asked) >= pulseEvery {
			// Who asks may leave sooner than the model answers, again and again.
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

// failing is the answer of a server that is not ready, as the model fails by that.
func failing(e *Error) error {
	return &Error{Status: http.StatusServiceUnavailable, Code: "model_failed", RetryAfter: int(pulseEvery / time.Second),
		Message: "the model cannot answer as it should: " + e.Message}
}

// beforeAll goes before whatever requests there are, so that it is known soon whether the model
// answers when all places are taken, too.
const beforeAll = math.MaxInt

// beat has the model do what it is made for once, which reads its weights, of a mixture some
// experts alone.
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
