package engine_test

import (
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A caller that makes a request before it takes more of an answer is served, even if there is a
// place and pages for only one sequence.
func TestRequestWithinAnother(t *testing.T) {
	for _, parallel := range []int{1, 2} {
		e, err := engine.New(t.Context(), plantest.Model(t, nil), cpu.New(2), engine.Config{Context: 300, Parallel: parallel, States: 1, Cache: tensor.F16}, nil)
		if err != nil {
			t.Fatal(err)
		}
		run := func(prompt []int32, n int, each func(k int)) (got []int32) {
			r := &engine.Request{Prompt: prompt, Tokens: n}
			_, err := e.Run(t.Context(), r, func(r *engine.Result) (bool, error) {
				got = append(got, r.Token)
				if each != nil {
					each(r.Index)
				}
				return true, nil
			})
			if err != nil {
				t.Error(err)
			}
			return got
		}
		outer, inner := []int32{3, 1, 4, 1, 5}, []int32{2, 7, 1, 8}
		wantOuter, wantInner := run(outer, 200, nil), run(inner, 250, nil)
		got := run(outer, 200, func(k int) {
			if k%70 == 0 && !slices.Equal(run(inner, 250, nil), wantInner) {
				t.Errorf("%d places: the inner answer differs", parallel)
			}
		})
		if !slices.Equal(got, wantOuter) {
			t.Errorf("%d places: the outer answer differs", parallel)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// So is a caller within the outputs of a prompt.
func TestRequestWithinOutputs(t *testing.T) {
	e := open(t, cpu.New(2), plantest.Model(t, nil), engine.Config{Context: 300, Parallel: 1, States: 1, Cache: tensor.F16})
	outer := &engine.Request{Prompt: tokens(200, 7)}
	for i := range outer.Prompt {
		outer.Outputs = append(outer.Outputs, engine.Output{Token: int32(i), Want: plan.WantLogits})
	}
	n := 0
	_, err := e.Run(t.Context(), outer, func(got *engine.Result) (bool, error) {
		n++
		if got.Index%60 > 0 {
			return true, nil
		}
		a, err := ask(t.Context(), e, &engine.Request{Prompt: tokens(5, 3), Tokens: 290}, nil)
		if err == nil && len(a.tokens[0]) != 290 {
			t.Errorf("%d tokens of 290", len(a.tokens[0]))
		}
		return true, err
	})
	if err != nil || n != 200 {
		t.Errorf("%d outputs of 200 (%v)", n, err)
	}
}

// A caller whose function panics leaves no place and no page in use.
func TestCallerPanics(t *testing.T) {
	e, err := engine.New(t.Context(), plantest.Model(t, nil), cpu.New(2), engine.Config{Context: 300, Parallel: 1, States: 1, Cache: tensor.F16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second gets the place of the first
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic went no further than the engine")
				}
			}()
			_, err := e.Run(t.Context(), &engine.Request{Prompt: []int32{3, 1, 4}, Tokens: 250}, func(r *engine.Result) (bool, error) {
				if r.Index == 5 {
					panic("the caller's own")
				}
				return true, nil
			})
			t.Errorf("after a panic: %v", err)
		}()
		m := e.Metrics()
		if m.Running+m.Waiting > 0 || m.Groups[0].Used > 0 || m.Ended[engine.Cancelled] == 0 {
			t.Errorf("after a panic: %+v", m)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
