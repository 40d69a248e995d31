package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// The steps of a quick backend are done when they are submitted, and not checked: all time is the
// engine's.
type quick struct {
	plan.Backend // nil
	spare        chan *quickStep
	steps        int
	masks        int                 // number of calls of SetMask
	count        func(b *plan.Batch) // called with every batch, or nil

	// If lockstep is set, a step ends only when callers have the results of the previous ones. busy
	// holds the times from the end of a wait to the beginning of the next.
	lockstep bool
	given    int64 // rows of steps that were waited for
	taken    atomic.Int64
	busy     []time.Duration
	waited   time.Time
}

type quickStep struct {
	b      *quick
	rows   int
	result plan.Result
}

func (b *quick) Compile(_ context.Context, _ *plan.Program, l plan.Limits, _ plan.Loaded) (plan.Executable, error) {
	b.spare = make(chan *quickStep, 8)
	for range cap(b.spare) {
		n := l.Rows
		b.spare <- &quickStep{b: b, result: plan.Result{Tokens: make([]int32, n), Logits: make([][]float32, n), Hidden: make([][]float32, n), LogProbabilities: make([]float32, n)}}
	}
	return b, nil
}

func (b *quick) Close() error                    { return nil }
func (b *quick) AllocHost(n int) ([]byte, error) { return make([]byte, n), nil }
func (b *quick) FreeHost([]byte) error           { return nil }
func (b *quick) SetMask(int32, []uint32) error   { b.masks++; return nil }
func (b *quick) Choose(plan.Step) error          { return nil }
func (b *quick) Setup() plan.Setup               { return plan.Setup{} }

func (b *quick) Submit(batch *plan.Batch) (plan.Step, error) {
	b.steps++
	if b.count != nil {
		b.count(batch)
	}
	s := <-b.spare
	s.rows = len(batch.Rows)
	return s, nil
}

func (s *quickStep) Wait(context.Context) (*plan.Result, error) {
	if b := s.b; b.lockstep {
		if !b.waited.IsZero() {
			b.busy = append(b.busy, time.Since(b.waited))
		}
		for b.taken.Load() < b.given {
			runtime.Gosched()
		}
		b.given += int64(s.rows)
		b.waited = time.Now()
	}
	return &s.result, nil
}

func (s *quickStep) Release() { s.b.spare <- s }

// together has 64 requests of n tokens each run beside each other; some share masks.
func together(tb testing.TB, b *quick, e *engine.Engine, n int, masks ...*engine.Mask) {
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			r := &engine.Request{Prompt: []int32{int32(i % vocab), int32(i / vocab)}, Tokens: n, Salt: fmt.Sprint(i)}
			if len(masks) > 0 {
				r.Allowed = masks[i%len(masks)]
			}
			if _, err := e.Run(context.Background(), r, func(*engine.Result) (bool, error) { b.taken.Add(1); return true, nil }); err != nil {
				tb.Error(err)
			}
		})
	}
	all.Wait()
}

func openQuick(tb testing.TB, b *quick, context int) *engine.Engine {
	m := &hashModel{windows: []int{0, 100}}
	e, err := engine.New(tb.Context(), m.program(), b, engine.Config{Context: context, Parallel: 64, Cache: tensor.F32}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// While 64 answers stay within their pages, steps allocate nothing.
func TestStepsAllocateNothing(t *testing.T) {
	var masks []*engine.Mask
	for i := range 9 {
		masks = append(masks, &engine.Mask{Words: []uint32{1 << i, 1}})
	}
	t.Run("plain", func(t *testing.T) { stepsAllocateNothing(t) })
	t.Run("masked", func(t *testing.T) { stepsAllocateNothing(t, masks...) })
}

func stepsAllocateNothing(t *testing.T, masks ...*engine.Mask) {
	b := &quick{}
	e := openQuick(t, b, 600)
	together(t, b, e, 500, masks...) // fills the pools of reused memory
	// The measured steps begin when all answers are past the beginning of a page, and end when the
	// first of them is near its end.
	var begun, ended runtime.MemStats
	from, windows, steps := 0, 0, 0
	var allocated uint64
	b.count = func(batch *plan.Batch) {
		least, most := batch.Positions[0], batch.Positions[0]
		for _, pos := range batch.Positions {
			least, most = min(least, pos), max(most, pos)
		}
		whole := len(batch.Positions) == 64 && least/32 == most/32 && least > 64
		switch {
		case from == 0 && whole && least%32 >= 3 && most%32 < 12:
			from = b.steps
			runtime.ReadMemStats(&begun)
		case from > 0 && (!whole || most%32 >= 28):
			runtime.ReadMemStats(&ended)
			if whole && b.steps-from >= 8 {
				windows, steps = windows+1, steps+b.steps-from
				allocated += ended.Mallocs - begun.Mallocs
			}
			from = 0
		}
	}
	for range 20 {
		together(t, b, e, 500, masks...)
	}
	if windows < 5 {
		t.Fatalf("the answers went on side by side for %d windows of steps only", windows)
	}
	if allocated*5 > uint64(steps) {
		t.Errorf("%d steps in %d windows took %d allocations", steps, windows, allocated)
	}
	if b.masks != len(masks) {
		t.Errorf("%d masks were set %d times", len(masks), b.masks)
	}
	t.Logf("%d steps in %d windows took %d allocations", steps, windows, allocated)
}

// The engine's own time for a step of 64 answers: the time without a wait for a step, in the middle
// of all steps.
func BenchmarkStep64(b *testing.B) {
	q := &quick{lockstep: true, busy: make([]time.Duration, 0, 1<<16)}
	e := openQuick(b, q, 2048)
	together(b, q, e, 100)
	b.ReportAllocs()
	q.busy = q.busy[:0]
	first := q.steps
	for b.Loop() {
		q.waited = time.Time{}
		together(b, q, e, 2000)
	}
	slices.Sort(q.busy)
	b.ReportMetric(float64(q.busy[len(q.busy)/2].Nanoseconds()), "ns/step")
	b.ReportMetric(float64(64*2000*b.N)/float64(q.steps-first), "answers/step")
}
