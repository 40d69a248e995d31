package engine_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/tensor"
)

// After its caller has ended an answer, its outcome does not affect the other answers of its
// request, even if it fails in the meantime.
func TestLeftAnswerFails(t *testing.T) {
	m := &hashModel{windows: []int{0}}
	rng := rand.New(rand.NewPCG(9, 9))
	// The first of two answers cannot be computed beyond its last token.
	var r *engine.Request
	var want *expected
	for {
		r = &engine.Request{Prompt: ids(rng, 20), Tokens: 40, Choices: 2}
		if want = m.expect(r, nil); !want.damaged && want.answers[0].err != nil && len(want.answers[0].tokens) > 2 && want.answers[1].err == nil {
			break
		}
	}
	last := len(want.answers[0].tokens)
	for _, leave := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{model: m, broken: t.Errorf, rng: rand.New(rand.NewPCG(3, 3)), pause: func(n int, _ <-chan struct{}) { time.Sleep(time.Duration(n)) }}
			e, err := engine.New(t.Context(), m.program(), f, engine.Config{Context: 64, Parallel: 2, Cache: tensor.F32}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var given [2]int
			_, err = e.Run(t.Context(), r, func(got *engine.Result) (bool, error) {
				if d := want.differs(r, got, given[got.Choice]); d != "" {
					t.Errorf("token %d of answer %d: %s", given[got.Choice], got.Choice, d)
				}
				if given[got.Choice]++; got.Choice == 0 && given[0] == last {
					time.Sleep(time.Second) // the step after it is done
					return !leave, nil
				}
				return true, nil
			})
			if leave && (err != nil || given != [2]int{last, 40}) || !leave && (err == nil || given[0] != last) {
				t.Errorf("left: %v; %v after %d tokens of %d and 40", leave, err, given, last)
			}
			if m := e.Metrics(); m.Ended[engine.EndedByError] == 0 || m.Running+m.Waiting > 0 {
				t.Errorf("%+v", m)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
