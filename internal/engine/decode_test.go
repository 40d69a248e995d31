package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// sampled is an output whose token depends on the position too.
var sampled = engine.Output{Want: plan.WantToken, Sampling: sample.Params{Temperature: 2, Seed: 5}}

// decode chooses n tokens after ids, or fewer where more says so.
func decode(ctx context.Context, s *engine.Sequence, ids []int32, n int, more func(k int) bool) ([]int32, error) {
	var got []int32
	err := s.Decode(ctx, ids, n, sampled, func(r engine.Result) (bool, error) {
		if r.Index != len(got) {
			return false, fmt.Errorf("result %d has the index %d", len(got), r.Index)
		}
		got = append(got, r.Token)
		return more == nil || more(r.Index), nil
	})
	return got, err
}

// oneByOne chooses n tokens after ids, each waited for before it is run.
func oneByOne(ctx context.Context, e *engine.Engine, ids []int32, n int) ([]int32, error) {
	s, err := e.NewSequence(ctx, len(ids))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var got []int32
	for range n {
		o := sampled
		o.Token = int32(len(ids) - 1)
		if err := s.Append(ctx, ids, []engine.Output{o}, func(r engine.Result) error { got = append(got, r.Token); return nil }); err != nil {
			return nil, err
		}
		ids = got[len(got)-1:]
	}
	return got, nil
}

// A counter counts the steps of an executable, and those that read a token from
// the step before.
type counter struct {
	plan.Backend
	steps, chained int
}

func (c *counter) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	exe, err := c.Backend.Compile(ctx, p, l, loaded)
	return &countedExecutable{exe, c}, err
}

type countedExecutable struct {
	plan.Executable
	c *counter
}

func (e *countedExecutable) Submit(b *plan.Batch) (plan.Step, error) {
	e.c.steps++ // one goroutine submits at a time
	if b.From != nil {
		e.c.chained++
	}
	return e.Executable.Submit(b)
}

// Alone, every step but those of the prompt begins before the one before it is
// waited for, none too many, and the tokens are those of one step at a time.
func TestDecode(t *testing.T) {
	c := &counter{Backend: cpu.New(2)}
	e, err := engine.New(t.Context(), plantest.Model(t, nil), c, engine.Config{Context: 600, Parallel: 2, Cache: tensor.F16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, test := range []struct{ prompt, n, chunks int }{{1, 1, 1}, {1, 90, 1}, {31, 2, 1}, {256, 70, 1}, {257, 40, 2}, {513, 88, 3}} {
		ids := tokens(test.prompt, 7)
		run := func(more func(int) bool) []int32 {
			s, err := e.NewSequence(t.Context(), len(ids))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got, err := decode(t.Context(), s, ids, test.n, more)
			if err != nil {
				t.Errorf("%+v: %v", test, err)
			}
			return got
		}
		first := run(func(int) bool { return false })
		want, err := oneByOne(t.Context(), e, ids, test.n)
		if err != nil {
			t.Fatal(err)
		}
		c.steps, c.chained = 0, 0
		if got := run(nil); !slices.Equal(got, want) || !slices.Equal(first, want[:1]) {
			t.Errorf("%+v: %v and %v, want %v", test, first, got, want)
		}
		if c.steps != test.chunks+test.n-1 || c.chained != test.n-1 {
			t.Errorf("%+v: %d steps, %d of them after an unknown token", test, c.steps, c.chained)
		}
	}
}

// Sequences that decode beside others, which come and leave, choose what one alone
// does.
func TestManyDecode(t *testing.T) {
	w := &watched{Backend: cpu.New(2)}
	e, err := engine.New(t.Context(), plantest.Model(t, nil), w, engine.Config{Context: 400, Parallel: 5, Cache: tensor.F16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	lengths := []int{1, 33, 257, 300}
	want := map[int][]int32{}
	for _, n := range lengths {
		if want[n], err = oneByOne(t.Context(), e, tokens(n, n), 60); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			n := lengths[i%len(lengths)]
			s, err := e.NewSequence(t.Context(), n)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			got, err := decode(t.Context(), s, tokens(n, n), 60, func(k int) bool { return k != 15+i*3 })
			if want := want[n][:min(60, 16+i*3)]; err != nil || !slices.Equal(got, want) {
				t.Errorf("after %d tokens beside others: %v (%v), want %v", n, got, err, want)
			}
		})
	}
	all.Wait()
	if n := w.most.Load(); n > 2 {
		t.Errorf("%d steps were under way at one time, want 2 at most", n)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// Steps that were under way when decoding stopped leave no trace, wherever pages
// begin and windows end.
func TestAppendAfterDecode(t *testing.T) {
	e := open(t, plantest.Model(t, nil), engine.Config{Context: 400, Parallel: 1, Cache: tensor.F16})
	const prompt, before, after = 60, 22, 3
	chosen, err := oneByOne(t.Context(), e, tokens(prompt, 3), before)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{0, 3, 4, 5, 19, 20, 21} {
		ids := slices.Concat(tokens(prompt, 3), chosen[:k], tokens(after, 11))
		want, err := logits(t.Context(), e, ids, prompt)
		if err != nil {
			t.Fatal(err)
		}
		for _, how := range []string{"stopped", "cancelled"} {
			s, err := e.NewSequence(t.Context(), len(ids))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			got, err := decode(ctx, s, tokens(prompt, 3), before+3, func(i int) bool {
				if i == k && how == "cancelled" {
					cancel()
				}
				return i < k || how == "cancelled"
			})
			if len(got) != k+1 || (err != nil) != (how == "cancelled") {
				t.Errorf("%s after %d tokens where %d were wanted: %v", how, len(got), k+1, err)
			}
			cancel()
			o := engine.Output{Token: after - 1, Want: plan.WantLogits}
			err = s.Append(t.Context(), tokens(after, 11), []engine.Output{o}, func(r engine.Result) error {
				if !slices.Equal(r.Logits, want[len(want)-1]) {
					return errors.New("the logits differ")
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s after %d tokens: %v", how, k, err)
			}
			s.Close()
		}
	}
}

// Who takes their time over a token holds nobody up.
func TestDecodeWithinDecode(t *testing.T) {
	e := open(t, plantest.Model(t, nil), engine.Config{Context: 64, Parallel: 4, Cache: tensor.F16})
	var within func(depth int) error
	within = func(depth int) error {
		s, err := e.NewSequence(t.Context(), 1)
		if err != nil {
			return err
		}
		defer s.Close()
		return s.Decode(t.Context(), tokens(1, depth), 3, sampled, func(engine.Result) (bool, error) {
			if depth == 1 {
				return true, nil
			}
			return true, within(depth - 1)
		})
	}
	if err := within(4); err != nil {
		t.Error(err)
	}
}

// Decoding ends where its caller, the context's size, its context or the engine
// does, and says why.
func TestDecodeEnds(t *testing.T) {
	e := open(t, plantest.Model(t, nil), engine.Config{Context: 40, Parallel: 1, Cache: tensor.F32})
	with := func(ctx context.Context, ids []int32, n int, yield func(engine.Result) (bool, error)) error {
		s, err := e.NewSequence(t.Context(), len(ids))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.Decode(ctx, ids, n, sampled, yield)
	}
	count := 0
	if err := with(t.Context(), tokens(40, 1), 1, func(engine.Result) (bool, error) { count++; return true, nil }); err != nil || count != 1 {
		t.Errorf("one token after a full context: %d (%v)", count, err)
	}
	for _, test := range []struct{ prompt, n int }{{40, 2}, {1, 41}, {0, 1}, {1, 0}} {
		err := with(t.Context(), tokens(test.prompt, 1), test.n, func(engine.Result) (bool, error) {
			t.Errorf("%+v: a token was chosen", test)
			return false, nil
		})
		if err == nil {
			t.Errorf("%+v was taken", test)
		}
	}
	enough := errors.New("enough")
	if err := with(t.Context(), tokens(2, 1), 30, func(engine.Result) (bool, error) { return true, enough }); !errors.Is(err, enough) {
		t.Errorf("the caller's error became %v", err)
	}
	left := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(t.Context())
	count = 0
	err := with(ctx, tokens(2, 1), 30, func(engine.Result) (bool, error) { count++; cancel(left); return true, nil })
	if !errors.Is(err, left) || !errors.Is(err, context.Canceled) || count != 1 {
		t.Errorf("cancelled with the first token: %v after %d", err, count)
	}
	if got, err := oneByOne(t.Context(), e, tokens(2, 1), 39); err != nil || len(got) != 39 {
		t.Errorf("after all of these: %v", err)
	}
	count = 0
	err = with(t.Context(), tokens(2, 1), 30, func(engine.Result) (bool, error) {
		count++
		return true, e.Close()
	})
	if !errors.Is(err, engine.ErrClosed) || count != 1 {
		t.Errorf("closed with the first token: %v after %d", err, count)
	}
}

// What cannot be computed ends the sequence that it is of, and no other.
func TestDecodeNotFinite(t *testing.T) {
	const bad = 13
	p := plantest.Model(t, nil)
	poison(t, p, bad)
	e := open(t, p, engine.Config{Context: 64, Parallel: 2, Cache: tensor.F32})
	s, err := e.NewSequence(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := decode(t.Context(), s, []int32{bad}, 5, nil); !errors.Is(err, plan.ErrNotFinite) {
		t.Errorf("error %v, want that of a value that is not finite", err)
	}
	other, err := e.NewSequence(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := decode(t.Context(), other, []int32{2}, 1, nil); err != nil {
		t.Errorf("another sequence: %v", err)
	}
}

// poison makes a token's row of the embedding something that is not a number.
func poison(t *testing.T, p *plan.Program, id int) {
	t.Helper()
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == plan.Embed {
			row := len(n.Weight.Data) / n.Weight.Shape[0]
			copy(n.Weight.Data[id*row:], []byte{0x00, 0x7e}) // NaN in float16
			return
		}
	}
	t.Fatal("the program has no embedding")
}
