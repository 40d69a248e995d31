package plantest

import (
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// recurred computes the layer of Mamba-2 for a whole sequence in float64, by its recurrence. Without
// steps it is linear attention.
func recurred(x, steps [][]float64, a *plan.StateSpaceAttr) [][]float64 {
	vector := func(w *tensor.Tensor) []float64 {
		return matrix(&tensor.Tensor{DType: w.DType, Shape: []int{1, w.Elems()}, Data: w.Data})[0]
	}
	decay, skip, bias := vector(a.A), make([]float64, a.Heads), make([]float64, a.Heads)
	if a.Steps() {
		skip, bias = vector(a.Skip), vector(a.StepBias)
	}
	state := make([]float64, a.Matrix())
	y := make([][]float64, len(x))
	for t := range x {
		y[t] = make([]float64, a.Heads*a.HeadDim)
		for h := range a.Heads {
			s := 1.0
			if a.Steps() {
				s = max(softplus(steps[t][h]+bias[h]), a.StepMin)
			}
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
		steps, decay float64 // steps 0: none
	}{
		{plan.StateSpaceAttr{Heads: 4, HeadDim: 16, Groups: 1, States: 16}, 1, 1},
		{plan.StateSpaceAttr{Heads: 6, HeadDim: 7, Groups: 3, States: 5, StepMin: 0.3, StepMax: 0.9}, 2, 0.3},
		{plan.StateSpaceAttr{Heads: 20, HeadDim: 32, Groups: 1, States: 17}, 1, 1e-3},
		{plan.StateSpaceAttr{Heads: 2, HeadDim: 16, Groups: 2, States: 300, StepMin: 1e-3}, 30, 100},
		{plan.StateSpaceAttr{Heads: 1, HeadDim: 1, Groups: 1, States: 1}, 1, 1},
		{plan.StateSpaceAttr{Heads: 4, HeadDim: 16, Groups: 4, States: 16}, 0, 0.5},
		{plan.StateSpaceAttr{Heads: 6, HeadDim: 9, Groups: 3, States: 33}, 0, 1e-3},
	} {
		rng := newRand(uint64(c.States))
		a := c.StateSpaceAttr
		width := a.Width()
		table := Weight(rng, "table", tensor.F32, 1/math.Sqrt(math.Sqrt(float64(a.States))), 41, width)
		steps := Weight(rng, "steps", tensor.F32, c.steps/math.Sqrt(float64(width)), a.Heads, width)
		if a.A = negative(rng, "a", c.decay, a.Heads); c.steps > 0 {
			a.Skip, a.StepBias = vector(rng, "skip", 0, 1, a.Heads), vector(rng, "bias", 0, 1, a.Heads)
		}
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			if !a.Steps() {
				return b.Retention(x, a.A, "h", a)
			}
			return b.StateSpace(x, b.Linear(x, steps, nil), "h", a)
		})
		r := runner(t, b, p, 220, 3, 160, plan.Limits{Cache: tensor.F16, Activations: b.Rounds()})
		lists := [][]int32{ids(rng, 140, 41), ids(rng, 1, 41), ids(rng, 70, 41)}
		inSteps(t, r, fmt.Sprint(a), lists, [][]int{{140, 1, 70}, {1, 1, 7}, {64, 1, 65}, {63, 1, 2}}, 2e-5, 1, func(list []int32) [][]float64 {
			x := rowsOf(matrix(table), list)
			return recurred(x, product(x, matrix(steps), nil), &a)
		})
	}
}

// StatesModel returns a small decoder of 97 tokens without attention: layers of Mamba, of Mamba-2, of
// linear attention and of Griffin, behind convolutions, which read the embeddings too. change is as
// for [Model].
func StatesModel(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	rng := newRand(19)
	changed := applying(change)
	const inner, taps, states = 128, 4, 16
	return build(t, func(b *plan.Builder) {
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, modelHidden))
		embedded := x
		for i, d := range []tensor.DType{tensor.Q4_K, tensor.Q8_0, tensor.BF16, tensor.Q8_0, tensor.Q4_0} {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
			linear := func(x plan.Value, s string, rows int) plan.Value {
				format := d
				if b.Cols(x)%format.BlockLen() != 0 {
					format = tensor.F32
				}
				return b.Linear(x, changed(Weight(rng, name(s), format, 0.06, rows, b.Cols(x))), nil)
			}
			h := b.RMSNorm(b.Concat(x, embedded), changed(vector(rng, name("norm"), 1, 0.1, 2*modelHidden)), 1e-5)
			a := plan.StateSpaceAttr{Heads: 4, HeadDim: inner / 4, Groups: 2, States: states, StepMin: 0.01}
			width := inner
			if i != 1 && i != 4 {
				width = a.Width()
			}
			tail := b.State(plan.State{Name: name("tail"), Kind: plan.PerSequence, Size: (taps - 1) * width})
			u := b.Conv(linear(h, "in", width), Weight(rng, name("conv"), tensor.F32, 0.6, width, taps), vector(rng, name("conv.bias"), 0, 0.1, width), tail)
			u = b.Activate(u, plan.SiLU)
			var y plan.Value
			switch i {
			case 1:
				state := b.State(plan.State{Name: name("h"), Kind: plan.PerSequence, Size: states * inner})
				y = b.Scan(u, linear(linear(u, "rank", 8), "steps", inner), linear(u, "B", states), linear(u, "C", states),
					negative(rng, name("a"), 1, inner, states), vector(rng, name("skip"), 1, 0.1, inner), state)
			case 3:
				y = b.Retention(u, negative(rng, name("a"), 0.1, a.Heads), name("h"), a)
			case 4:
				state := b.State(plan.State{Name: name("h"), Kind: plan.PerSequence, Size: inner})
				y = b.LRU(u, linear(u, "input", inner), linear(u, "decay", inner), state, plan.LRUAttr{
					Rate: vector(rng, name("rate"), -2, 2, inner), InputBias: vector(rng, name("in.bias"), 0, 1, inner), DecayBias: vector(rng, name("decay.bias"), 0, 1, inner),
				})
			default:
				a.A, a.Skip, a.StepBias = negative(rng, name("a"), 0.5, a.Heads), vector(rng, name("skip"), 1, 0.1, a.Heads), vector(rng, name("bias"), 0, 1, a.Heads)
				y = b.StateSpace(u, linear(h, "steps", a.Heads), name("h"), a)
			}
			y = b.GLU(linear(h, "gate", inner), y, plan.GLUAttr{Act: plan.SiLU})
			y = b.RMSNormHeads(y, changed(vector(rng, name("heads.norm"), 1, 0.1, inner)), inner/2, 1e-5)
			x = b.Add(x, linear(y, "out", modelHidden))
		}
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), changed(vector(rng, "last", 1, 0.1, modelHidden)), 1e-5)
		b.Output(h, b.Linear(h, changed(Weight(rng, "head", tensor.Q8_0, 0.06, modelVocab, modelHidden)), nil))
	})
}
