package engine_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// If a step fails that restores pages for a sequence with no token in it, no sequence uses those
// pages.
func TestLostRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &hashModel{windows: []int{0}}
		lost := 0
		f := &fake{
			model: m, broken: t.Errorf, rng: rand.New(rand.NewPCG(3, 3)), room: 1 << 20,
			pause: func(n int, _ <-chan struct{}) { time.Sleep(time.Duration(n)) },
			lose: func(b *plan.Batch) bool {
				restores := slices.ContainsFunc(b.States, func(op plan.StateOp) bool { return op.Kind == plan.RestorePage })
				if restores && lost == 0 {
					lost++
					return true
				}
				return false
			},
		}
		e, err := engine.New(t.Context(), m.program(), f, engine.Config{Context: 512, Parallel: 3, States: 1, Host: f.room, Cache: tensor.F32}, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.verify = e.Check
		rng := rand.New(rand.NewPCG(4, 4))
		prompt := func(n int) []int32 {
			for {
				p := ids(rng, n)
				if !m.expect(&engine.Request{Prompt: p, Tokens: 1}, nil).damaged {
					return p
				}
			}
		}
		outputs := func(from, to int) (all []engine.Output) {
			for i := from; i < to; i++ {
				all = append(all, engine.Output{Token: int32(i), Want: plan.WantHidden})
			}
			return all
		}
		run := func(r *engine.Request) error {
			want, n := m.expect(r, nil), 0
			_, err := e.Run(t.Context(), r, func(got *engine.Result) (bool, error) {
				if d := want.differs(r, got, n); d != "" {
					t.Errorf("result %d after %d tokens: %s", n, len(r.Prompt), d)
				}
				n++
				return true, nil
			})
			return err
		}
		one := prompt(80)
		if err := run(&engine.Request{Prompt: one}); err != nil {
			t.Fatal(err)
		}
		if err := run(&engine.Request{Prompt: prompt(512)}); err != nil { // puts those pages out
			t.Fatal(err)
		}
		// While two steps of the first are in flight, others arrive: the outputs of the second take
		// all of a step's, and the third wants an output of the first token that it has to run.
		var all [3]error
		for i, r := range []*engine.Request{
			{Prompt: prompt(150), Outputs: outputs(0, 150)}, {Prompt: prompt(151), Outputs: outputs(0, 151)}, {Prompt: one, Outputs: outputs(64, 70)},
		} {
			go func() { all[i] = run(r) }()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if lost == 0 {
			t.Error("no page was brought back")
		}
		for _, err := range all {
			if err != nil && !errors.Is(err, errLost) {
				t.Error(err)
			}
		}
		if err := run(&engine.Request{Prompt: one, Outputs: outputs(64, 70)}); err != nil { // what is found now
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
