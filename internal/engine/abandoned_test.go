package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A watched backend counts the steps submitted and not done.
type watched struct {
	plan.Backend
	now, most atomic.Int64
}

func (w *watched) Compile(ctx context.Context, p *plan.Program, lim plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	exe, err := w.Backend.Compile(ctx, p, lim, loaded)
	return &watchedExecutable{exe, w}, err
}

type watchedExecutable struct {
	plan.Executable
	w *watched
}

func (e *watchedExecutable) Submit(b *plan.Batch) (plan.Step, error) {
	e.w.most.Store(max(e.w.most.Load(), e.w.now.Add(1))) // one goroutine submits at a time
	s, err := e.Executable.Submit(b)
	if err != nil {
		e.w.now.Add(-1)
		return nil, err
	}
	return &watchedStep{Step: s, w: e.w}, nil
}

type watchedStep struct {
	plan.Step
	w    *watched
	once sync.Once
}

func (s *watchedStep) Wait(ctx context.Context) (*plan.Result, error) {
	res, err := s.Step.Wait(ctx)
	if err == nil {
		s.once.Do(func() { s.w.now.Add(-1) })
	}
	return res, err
}

// However many callers leave before their steps are done, few steps are under way,
// and those who stay get theirs.
func TestAbandonedSteps(t *testing.T) {
	p := plantest.Model(t, nil)
	w := &watched{Backend: cpu.New(2)}
	e, err := engine.New(context.Background(), p, w, engine.Config{Context: 256, Parallel: 64, Cache: tensor.F16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
			defer cancel()
			switch _, err := logits(ctx, e, tokens(64, 7), 64); {
			case errors.Is(err, context.DeadlineExceeded):
				left.Add(1)
			case err != nil:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left.Load() == 0 {
		t.Error("no caller left before its step was done")
	}
	if _, err := logits(t.Context(), e, tokens(64, 7), 64); err != nil {
		t.Error(err)
	}
	if n := w.most.Load(); n > 2 {
		t.Errorf("%d steps were under way at one time, want 2 at most", n)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
