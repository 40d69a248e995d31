package plan_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/plan"
)

type pooled struct {
	plan.PooledStep
	number int
}

// newSteps returns a pool of numbered steps.
func newSteps() *plan.StepPool[pooled] {
	made := 0
	return &plan.StepPool[pooled]{New: func(s plan.PooledStep) *pooled {
		made++
		return &pooled{s, made}
	}}
}

// A step is reused after it was done and released, or abandoned, and not before.
func TestStepPool(t *testing.T) {
	steps, ctx := newSteps(), context.Background()
	first := steps.Take()
	first.Batch = &plan.Batch{}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := first.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a step under way gives %v when the context ends", err)
	}
	first.Result.Tokens = append(first.Result.Tokens, 7)
	first.Finish()
	for range 2 {
		if res, err := first.Wait(ctx); err != nil || len(res.Tokens) != 1 || res.Tokens[0] != 7 {
			t.Errorf("a step gives %v and %v, want token 7", res, err)
		}
	}
	if s := steps.Take(); s.number != 2 {
		t.Errorf("step %d is taken while the first is not released, want a new one", s.number)
	}
	first.Err = errors.New("lost")
	if _, err := first.Wait(ctx); !errors.Is(err, first.Err) {
		t.Errorf("a step that has failed gives %v", err)
	}
	first.Release()
	again := steps.Take()
	if again != first || again.Batch != nil || again.Err != nil {
		t.Errorf("step %d of batch %v and error %v is taken after the first was released", again.number, again.Batch, again.Err)
	}
	again.Batch = &plan.Batch{}
	again.Abandon()
	if s := steps.Take(); s != first || s.Batch != nil {
		t.Errorf("step %d of batch %v is taken after the first was abandoned", s.number, s.Batch)
	}
	first.Release() // it runs
	first.Finish()
	if s := steps.Take(); s.number != 3 {
		t.Errorf("step %d is taken, which was released as it ran", s.number)
	}
}

// Steps can be taken, waited for and released concurrently.
func TestStepPoolConcurrently(t *testing.T) {
	steps := newSteps()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				s := steps.Take()
				s.number = i
				go s.Finish()
				if _, err := s.Wait(context.Background()); err != nil || s.number != i {
					t.Errorf("step of %d is one of %d: %v", i, s.number, err)
				}
				s.Release()
			}
		})
	}
	all.Wait()
}

func TestStepPoolDoesNotAllocate(t *testing.T) {
	steps := newSteps()
	use := func() {
		s := steps.Take()
		s.Finish()
		if _, err := s.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.Release()
	}
	if n := testing.AllocsPerRun(100, use); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}
