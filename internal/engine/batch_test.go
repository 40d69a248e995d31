package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A scripted backend computes nothing. It looks whether a step could be run, notes
// what it is of, and ends it when it is told to.
type scripted struct {
	plan.Backend // nil
	program      *plan.Program
	limits       plan.Limits
	rows         int // of the step before
	steps        []scriptedBatch
	proceed      chan error // a step ends, with an error or without
	refuse       error      // of Submit
}

// A scriptedBatch is the part of each sequence, by the length of its prompt, which
// tests have differ.
type scriptedBatch map[int32]scriptedPart

type scriptedPart struct{ start, tokens, rows int }

func (b *scripted) Compile(_ context.Context, p *plan.Program, l plan.Limits, _ plan.Loaded) (plan.Executable, error) {
	b.program, b.limits = p, l
	return b, nil
}

func (b *scripted) Close() error                    { return nil }
func (b *scripted) AllocHost(n int) ([]byte, error) { return make([]byte, n), nil }
func (b *scripted) FreeHost([]byte) error           { return nil }

func (b *scripted) Submit(batch *plan.Batch) (plan.Step, error) {
	if b.refuse != nil {
		return nil, b.refuse
	}
	if err := batch.Validate(b.program, &b.limits, b.rows); err != nil {
		return nil, err
	}
	b.rows = len(batch.Rows)
	step := scriptedBatch{}
	for s, id := range batch.Lengths {
		from, to := batch.Start[s], batch.Start[s+1]
		part := scriptedPart{start: int(batch.Positions[from]), tokens: int(to - from)}
		for _, r := range batch.Rows {
			if from <= r.Token && r.Token < to {
				part.rows++
			}
		}
		step[id] = part
	}
	b.steps = append(b.steps, step)
	n := len(batch.Rows)
	return &scriptedStep{b: b, result: plan.Result{
		Tokens: make([]int32, n), Logits: make([][]float32, n), Hidden: make([][]float32, n), LogProbabilities: make([]float32, n),
	}}, nil
}

type scriptedStep struct {
	b      *scripted
	result plan.Result
}

func (s *scriptedStep) Wait(context.Context) (*plan.Result, error) {
	if err := <-s.b.proceed; err != nil {
		return nil, err
	}
	return &s.result, nil
}

func (s *scriptedStep) Release() {}

// script runs test beside an engine whose steps end one at a time: each call of
// next ends the oldest when everybody waits.
func script(t *testing.T, c engine.Config, test func(t *testing.T, b *scripted, e *engine.Engine, next func(error))) {
	p := plantest.Model(t, nil)
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{proceed: make(chan error)}
		e, err := engine.New(t.Context(), p, b, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		test(t, b, e, func(err error) {
			synctest.Wait()
			select {
			case b.proceed <- err:
			default:
				t.Error("no step is under way")
			}
			synctest.Wait()
		})
		close(b.proceed)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// begin decodes n tokens after a prompt on a goroutine of its own.
func begin(t *testing.T, e *engine.Engine, prompt, n int, yield func(i int) bool) *error {
	failed := errors.New("it has not ended")
	go func() {
		s, err := e.NewSequence(t.Context(), prompt)
		if err != nil {
			failed = err
			return
		}
		defer s.Close()
		_, failed = decode(t.Context(), s, tokens(prompt, 1), n, yield)
	}()
	return &failed
}

// Every step has a token of each sequence that decodes, also while long prompts
// are read, which are cut at multiples of 256, the first that came first.
func TestStepsOfAll(t *testing.T) {
	script(t, engine.Config{Context: 1000, Parallel: 4, Cache: tensor.F16}, func(t *testing.T, b *scripted, e *engine.Engine, next func(error)) {
		begin(t, e, 1, 100, nil)
		synctest.Wait()
		begin(t, e, 2, 100, nil)
		for range 4 {
			next(nil)
		}
		at := len(b.steps)
		begin(t, e, 600, 10, nil)
		synctest.Wait()
		begin(t, e, 300, 10, nil)
		for range 12 {
			next(nil)
		}
		next300 := 0
		chunks := []scriptedPart{}
		for i, step := range b.steps[at:] {
			if len(step) > 4 || step[1].tokens != 1 || step[2].tokens != 1 {
				t.Errorf("step %d is %v: a token of both that decode is missing", i, step)
			}
			if part := step[600]; part.tokens > 0 && part.start < 600 {
				chunks = append(chunks, part)
			}
			prompts := 0
			for _, id := range []int32{300, 600} {
				if part := step[id]; part.start < int(id) {
					prompts += part.tokens
					if part.tokens > 0 && part.start/256 != (part.start+part.tokens-1)/256 {
						t.Errorf("step %d is %v: a chunk crosses a multiple of 256", i, step)
					}
				}
			}
			if prompts > 256 {
				t.Errorf("step %d is %v: %d tokens of prompts", i, step, prompts)
			}
			if part := step[300]; part.tokens > 0 {
				if part.start != next300 {
					t.Errorf("step %d is %v: position %d comes next", i, step, next300)
				}
				next300 = part.start + part.tokens
			}
		}
		if want := []scriptedPart{{0, 256, 0}, {256, 256, 0}, {512, 88, 1}}; !slices.Equal(chunks, want) {
			t.Errorf("a prompt of 600 tokens is read as %v, want %v", chunks, want)
		}
		if next300 < 300 {
			t.Errorf("%d of the tokens of the other prompt were read", next300)
		}
	})
}

// Prompts that come together share steps, also where a context is shorter than
// what a step takes of prompts otherwise.
func TestShortContext(t *testing.T) {
	script(t, engine.Config{Context: 40, Parallel: 4, Cache: tensor.F16}, func(t *testing.T, b *scripted, e *engine.Engine, next func(error)) {
		var failed []*error
		for i := range 4 {
			failed = append(failed, begin(t, e, 33+i, 5, nil))
		}
		for range 9 { // the prompts and, with the last, four tokens more
			next(nil)
		}
		for i, err := range failed {
			if *err != nil {
				t.Errorf("a prompt of %d tokens: %v", 33+i, *err)
			}
		}
	})
}

// A caller who takes their time is given a few tokens, and those beside them all.
func TestSlowCaller(t *testing.T) {
	script(t, engine.Config{Context: 100, Parallel: 2, Cache: tensor.F16}, func(t *testing.T, b *scripted, e *engine.Engine, next func(error)) {
		wait := make(chan struct{})
		slow := begin(t, e, 1, 20, func(int) bool { <-wait; return true })
		synctest.Wait()
		fast := begin(t, e, 2, 30, nil)
		for range 32 {
			next(nil)
		}
		if *fast != nil {
			t.Errorf("beside a slow caller: %v", *fast)
		}
		given := 0
		for _, step := range b.steps {
			given += step[1].tokens
		}
		if given != 3 {
			t.Errorf("a caller who looks at a token has %d, want 3", given)
		}
		close(wait)
		for range 17 {
			next(nil)
		}
		if *slow != nil {
			t.Errorf("the slow caller: %v", *slow)
		}
	})
}

// A step that fails ends those whose step it is, and no other.
func TestStepFails(t *testing.T) {
	script(t, engine.Config{Context: 100, Parallel: 3, Cache: tensor.F16}, func(t *testing.T, b *scripted, e *engine.Engine, next func(error)) {
		lost := errors.New("the device is lost")
		one := begin(t, e, 1, 20, nil)
		synctest.Wait() // its first two steps are under way
		two := begin(t, e, 2, 20, nil)
		next(nil)
		next(lost)
		if !errors.Is(*one, lost) || errors.Is(*two, lost) {
			t.Errorf("in a step that failed: %v; beside it: %v", *one, *two)
		}
		b.refuse = lost
		next(nil)
		if !errors.Is(*two, lost) {
			t.Errorf("in a step that was refused: %v", *two)
		}
	})
}

// Sequences of unlike lengths that begin while others decode choose what each
// alone does; one that cannot be computed takes none with it.
func TestManyLengths(t *testing.T) {
	const bad = 13
	p := plantest.Model(t, nil)
	poison(t, p, bad)
	e := open(t, p, engine.Config{Context: 700, Parallel: 12, Cache: tensor.F16})
	ids := func(n int) []int32 {
		ids := tokens(n, n)
		for i, id := range ids {
			if id == bad {
				ids[i]++
			}
		}
		return ids
	}
	lengths := []int{5, 640, 1, 64, 257, 33, 300, 31, 512, 2, 100, 90}
	want := map[int][]int32{}
	count := func(n int) int { return 20 + n%41 }
	run := func(n int, more func(int) bool) ([]int32, error) {
		s, err := e.NewSequence(t.Context(), n)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		return decode(t.Context(), s, ids(n), count(n), more)
	}
	whole := 0
	for _, n := range lengths {
		var err error
		if want[n], err = run(n, nil); err == nil {
			whole++
		} else if !errors.Is(err, plan.ErrNotFinite) {
			t.Fatal(err)
		}
	}
	if whole < len(lengths)/2 {
		t.Fatalf("%d sequences of %d can be computed", whole, len(lengths))
	}
	var all sync.WaitGroup
	var start func(i int)
	start = func(i int) {
		if i == len(lengths) {
			return
		}
		all.Go(func() {
			n := lengths[i]
			got, err := run(n, func(k int) bool {
				if k == 0 {
					start(i + 1)
				}
				return true
			})
			if !slices.Equal(got, want[n]) || (err != nil) != (len(want[n]) < count(n)) {
				t.Errorf("%d tokens after %d beside others: %v (%v), want %v", count(n), n, got, err, want[n])
			}
		})
		all.Go(func() {
			s, err := e.NewSequence(t.Context(), 1)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := decode(t.Context(), s, []int32{bad}, 5, nil); !errors.Is(err, plan.ErrNotFinite) {
				t.Errorf("error %v, want that of a value that is not finite", err)
			}
		})
	}
	start(0)
	all.Wait()
}

// What no step could run is refused before it is in one with others.
func TestRefused(t *testing.T) {
	e := open(t, plantest.Model(t, nil), engine.Config{Context: 64, Parallel: 1, Cache: tensor.F32})
	s, err := e.NewSequence(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	masked, cold := sampled, sampled
	masked.Mask = make([]uint32, 1)
	cold.Sampling.Temperature = -1
	late := sampled
	late.Token = 2
	for what, err := range map[string]error{
		"an id":      s.Append(t.Context(), []int32{1, 1 << 20}, nil, nil),
		"a negative": s.Append(t.Context(), []int32{-1}, nil, nil),
		"an order":   s.Append(t.Context(), tokens(2, 1), []engine.Output{sampled, sampled}, nil),
		"a token":    s.Append(t.Context(), tokens(2, 1), []engine.Output{late}, nil),
		"a mask":     s.Append(t.Context(), tokens(2, 1), []engine.Output{masked}, nil),
		"a sampler":  s.Decode(t.Context(), tokens(2, 1), 2, cold, nil),
	} {
		if err == nil {
			t.Errorf("%s that does not exist was taken", what)
		}
	}
	if got, err := decode(t.Context(), s, tokens(2, 1), 3, nil); err != nil || len(got) != 3 {
		t.Errorf("after these: %v (%v)", got, err)
	}
}

// What was under way when its caller left changes nothing for the sequence.
func TestAppendAfterLeaving(t *testing.T) {
	script(t, engine.Config{Context: 1000, Parallel: 1, Cache: tensor.F16}, func(t *testing.T, b *scripted, e *engine.Engine, next func(error)) {
		s, err := e.NewSequence(t.Context(), 600)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var left error
		go func() { left = s.Append(ctx, tokens(600, 1), nil, nil) }()
		next(nil) // the second chunk is under way
		cancel()
		synctest.Wait()
		if !errors.Is(left, context.Canceled) {
			t.Errorf("a caller who left before the step was done: %v", left)
		}
		next(nil)
		for i := range 2 {
			go func() { left = s.Append(t.Context(), tokens(5, 1), nil, nil) }()
			next(nil)
			if got, want := b.steps[len(b.steps)-1][600], (scriptedPart{start: 256 + 5*i, tokens: 5}); left != nil || got != want {
				t.Errorf("after that, step %v (%v), want %v", got, left, want)
			}
		}
	})
}

// A window has pages for what is under way, however long the prompt is.
func TestWindowMovesOn(t *testing.T) {
	e := open(t, plantest.Model(t, nil), engine.Config{Context: 2000, Parallel: 1, Cache: tensor.F16})
	s, err := e.NewSequence(t.Context(), 1801)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Append(t.Context(), tokens(1500, 3), nil, nil); err != nil {
		t.Error(err)
	}
	if got, err := decode(t.Context(), s, tokens(301, 3), 200, nil); err != nil || len(got) != 200 {
		t.Errorf("%d tokens after that (%v)", len(got), err)
	}
}
