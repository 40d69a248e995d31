package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, p *plan.Program, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(context.Background(), p, cpu.New(2), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func tokens(n, step int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*step + step) % 97)
	}
	return ids
}

// logits runs ids in appends of the sizes given, the last repeated, and returns
// every token's logits.
func logits(ctx context.Context, e *engine.Engine, ids []int32, sizes ...int) ([][]float32, error) {
	s, err := e.NewSequence(ctx, len(ids))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var all [][]float32
	for len(ids) > 0 {
		n := min(sizes[0], len(ids))
		if len(sizes) > 1 {
			sizes = sizes[1:]
		}
		outputs := make([]engine.Output, n)
		for i := range outputs {
			outputs[i] = engine.Output{Token: int32(i), Want: plan.WantLogits}
		}
		next := 0
		err := s.Append(ctx, ids[:n], outputs, func(r engine.Result) error {
			if r.Index != next {
				return errors.New("results out of order")
			}
			next++
			all = append(all, slices.Clone(r.Logits))
			return nil
		})
		if err != nil {
			return nil, err
		}
		if next != n {
			return nil, errors.New("results are missing")
		}
		ids = ids[n:]
	}
	return all, nil
}

func equal(a, b [][]float32) bool { return slices.EqualFunc(a, b, slices.Equal[[]float32]) }

// Sequences that take turns, each appended to in its own way, over pages that
// others used before, compute what one alone does.
func TestManySequences(t *testing.T) {
	p := plantest.Model(t, nil)
	e := open(t, p, engine.Config{Context: 400, Parallel: 3, Cache: tensor.F16})
	want := map[int][][]float32{}
	lengths := []int{1, 31, 32, 33, 257, 400}
	for _, n := range lengths {
		var err error
		if want[n], err = logits(t.Context(), e, tokens(n, n), n); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			n := lengths[i%len(lengths)]
			got, err := logits(t.Context(), e, tokens(n, n), 1+i, 40+i*3)
			if err != nil {
				t.Error(err)
			} else if !equal(got, want[n]) {
				t.Errorf("%d tokens differ beside others", n)
			}
		})
	}
	wg.Wait()
}

func TestContextIsExact(t *testing.T) {
	e := open(t, plantest.Model(t, nil), engine.Config{Context: 40, Parallel: 1, Cache: tensor.F32})
	if _, err := logits(t.Context(), e, tokens(40, 1), 40); err != nil {
		t.Errorf("a sequence of exactly the context: %v", err)
	}
	s, err := e.NewSequence(t.Context(), 41)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Append(t.Context(), tokens(41, 1), nil, nil); err == nil {
		t.Error("one token more than the context was taken")
	}
	if err := s.Append(t.Context(), tokens(40, 1), nil, nil); err != nil {
		t.Errorf("after a refusal nothing is held, and the context fits: %v", err)
	}
}

// A sequence waits for its turn, and stops waiting when its context ends.
func TestWaiting(t *testing.T) {
	p := plantest.Model(t, nil)
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(context.Background(), p, cpu.New(1), engine.Config{Context: 8, Parallel: 1, Cache: tensor.F32}, nil)
		if err != nil {
			t.Fatal(err)
		}
		first, err := e.NewSequence(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		gone := errors.New("the client left")
		ctx, cancel := context.WithCancelCause(t.Context())
		var left error
		go func() { _, left = e.NewSequence(ctx, 1) }()
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		if !errors.Is(left, gone) || !errors.Is(left, context.Canceled) {
			t.Errorf("the wait ended with %v", left)
		}
		done := false
		go func() {
			s, err := e.NewSequence(t.Context(), 1)
			if err != nil {
				t.Error(err)
				return
			}
			done = true
			s.Close()
			s.Close() // a second time does nothing
		}()
		synctest.Wait()
		if done {
			t.Error("two sequences hold state at one time")
		}
		first.Close()
		synctest.Wait()
		if !done {
			t.Error("the second sequence never had its turn")
		}
		holder, err := e.NewSequence(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		var waiting error
		go func() { _, waiting = e.NewSequence(t.Context(), 1) }()
		synctest.Wait()
		for range 2 {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if !errors.Is(waiting, engine.ErrClosed) {
			t.Errorf("Close left one waiting: %v", waiting)
		}
		if err := holder.Append(t.Context(), tokens(1, 1), nil, nil); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("appending after Close: %v", err)
		}
		holder.Close()
		if _, err := e.NewSequence(t.Context(), 1); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestCancelledAppend(t *testing.T) {
	e := open(t, plantest.Model(t, nil), engine.Config{Context: 64, Parallel: 1, Cache: tensor.F32})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := e.NewSequence(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, tokens(4, 1), nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	s.Close()
	if _, err := logits(t.Context(), e, tokens(64, 1), 64); err != nil {
		t.Errorf("after a cancelled sequence: %v", err)
	}
}

// A window keeps its own pages only, however long the sequence is.
func TestWindowPages(t *testing.T) {
	p := plantest.Model(t, nil)
	c := engine.Config{Context: 4096, Parallel: 2, Cache: tensor.F16}
	l := c.Limits(p)
	for g, group := range p.Groups {
		all := 2 * 4096 / l.PageTokens
		if group.Window == 0 && l.Pages[g] != all || group.Window > 0 && l.Pages[g] >= all/5 {
			t.Errorf("group %+v has %d pages of %d tokens", group, l.Pages[g], l.PageTokens)
		}
	}
	e := open(t, p, c)
	if _, err := logits(t.Context(), e, tokens(1500, 3), 700, 1, 300); err != nil {
		t.Error(err)
	}
}
