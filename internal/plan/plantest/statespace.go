package plantest

import (
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// recurred computes the layer of Mamba-2 for a whole sequence in float64, by its recurrence.
func recurred(x, steps [][]float64, a *plan.StateSpaceAttr) [][]float64 {
	vector := func(w *tensor.Tensor) []float64 {
		return matrix(&tensor.Tensor{DType: w.DType, Shape: []int{1, w.Elems()}, Data: w.Data})[0]
	}
	decay, skip, bias := vector(a.A), vector(a.Skip), vector(a.StepBias)
	state := make([]float64, a.Matrix())
	y := make([][]float64, len(x))
	for t := range x {
		y[t] = make([]float64, a.Heads*a.HeadDim)
		for h := range a.Heads {
			s := max(softplus(steps[t][h]+bias[h]), a.StepMin)
			if a.StepMax > 0 {
				s = min(s, a.StepMax)
			}
			g := h / (a.Heads / a.Groups)
			in := x[t][a.Heads*a.HeadDim+g*a.States:]
			out := x[t][a.Heads*a.HeadDim+(a.Groups+g)*a.States:]
			for c := range a.HeadDim {
				column := h*a.HeadDim + c
				for n := range a.States {
					v := &state[column*a.States+n]
					*v = math.Exp(s*decay[h])**v + s*x[t][column]*in[n]
					y[t][column] += *v * out[n]
				}
				y[t][column] += skip[h] * x[t][column]
			}
		}
	}
	return y
}

// stateSpace computes several sequences cut into steps of several sizes, and compares them with the
// recurrence. Decays range from almost none to what leaves nothing of the token before.
func stateSpace(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		plan.StateSpaceAttr
		steps, decay float64
	}{
		{plan.StateSpaceAttr{Heads: 4, HeadDim: 16, Groups: 1, States: 16}, 1, 1},
		{plan.StateSpaceAttr{Heads: 6, HeadDim: 7, Groups: 3, States: 5, StepMin: 0.3, StepMax: 0.9}, 2, 0.3},
		{plan.StateSpaceAttr{Heads: 20, HeadDim: 32, Groups: 1, States: 17}, 1, 1e-3},
		{plan.StateSpaceAttr{Heads: 2, HeadDim: 16, Groups: 2, States: 300, StepMin: 1e-3}, 30, 100},
		{plan.StateSpaceAttr{Heads: 1, HeadDim: 1, Groups: 1, States: 1}, 1, 1},
	} {
		rng := newRand(uint64(c.States))
		a := c.StateSpaceAttr
		width := a.Width()
		table := Weight(rng, "table", tensor.F32, 1/math.Sqrt(math.Sqrt(float64(a.States))), 41, width)
		steps := Weight(rng, "steps", tensor.F32, c.steps/math.Sqrt(float64(width)), a.Heads, width)
		a.A, a.Skip, a.StepBias = negative(rng, "a", c.decay, a.Heads), vector(rng, "skip", 0, 1, a.Heads), vector(rng, "bias", 0, 1, a.Heads)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			return b.StateSpace(x, b.Linear(x, steps, nil), "h", a)
		})
		r := runner(t, b, p, 220, 3, 160, plan.Limits{Cache: tensor.F16, Activations: b.Rounds()})
		lists := [][]int32{ids(rng, 140, 41), ids(rng, 1, 41), ids(rng, 70, 41)}
		for _, chunks := range [][]int{{140, 1, 70}, {1, 1, 7}, {64, 1, 65}, {63, 1, 2}} {
			var seqs []*Seq
			for i, list := range lists {
				seqs = append(seqs, r.Add(list, chunks[i]))
			}
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			for i, s := range seqs {
				x := rowsOf(matrix(table), s.IDs)
				near(t, fmt.Sprintf("%v, sequence %d in steps of %v", a, i, chunks), s.Logits, recurred(x, product(x, matrix(steps), nil), &a), 2e-5, 1)
				r.Drop(s)
			}
		}
	}
}
