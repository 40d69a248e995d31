package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// The steps of a measured backend take a second each, one after the other.
type measured struct{ *quick }

func (m measured) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	_, err := m.quick.Compile(ctx, p, l, loaded)
	return m, err
}

func (m measured) Submit(b *plan.Batch) (plan.Step, error) {
	s, err := m.quick.Submit(b)
	return measuredStep{s}, err
}

func (m measured) Choose(plan.Step) error { return nil }

type measuredStep struct{ plan.Step }

func (s measuredStep) Wait(ctx context.Context) (*plan.Result, error) {
	time.Sleep(time.Second)
	return s.Step.Wait(ctx)
}

// Busy counts the time with steps in flight once, however many there are, and no other time.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &hashModel{windows: []int{0}}
		e, err := engine.New(t.Context(), m.program(), measured{&quick{}}, engine.Config{Context: 64, Parallel: 2, Cache: tensor.F32}, nil)
		if err != nil {
			t.Fatal(err)
		}
		busy := func(what string, extra time.Duration) {
			t.Helper()
			m := e.Metrics()
			if want := time.Duration(m.Steps)*time.Second + extra; m.Busy != want {
				t.Errorf("%s, after %d steps: busy for %v, want %v", what, m.Steps, m.Busy, want)
			}
		}
		run := func() {
			if _, err := e.Run(t.Context(), &engine.Request{Prompt: []int32{1}, Tokens: 5}, func(*engine.Result) (bool, error) { return true, nil }); err != nil {
				t.Error(err)
			}
		}
		busy("opened", 0)
		time.Sleep(time.Hour)
		run()
		time.Sleep(time.Minute)
		synctest.Wait()
		if e.Metrics().Steps < 5 {
			t.Errorf("%d steps", e.Metrics().Steps)
		}
		busy("at rest", 0)

		before := e.Metrics()
		done := make(chan struct{})
		go func() { run(); close(done) }()
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if got := e.Metrics().Busy - before.Busy; got != 300*time.Millisecond {
			t.Errorf("busy for %v of the first 300 ms of a step", got)
		}
		<-done
		time.Sleep(time.Minute)
		synctest.Wait()
		busy("at rest again", 0)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
