package plan

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/tensor"
)

// StateSpace is the state-space layer of Mamba-2 (Dao and Gu, "Transformers are SSMs: Generalized
// Models and Efficient Algorithms Through Structured State Space Duality", 2024), see
// [StateSpaceAttr]. With steps of 1 it is linear attention whose decay is a constant of each head:
// retention (Sun et al., "Retentive Network: A Successor to Transformer for Large Language Models",
// 2023) and lightning attention (Qin et al., "Lightning Attention-2", 2024).
var StateSpace = &Op{Name: "statespace", Scope: BySequence}

// StateSpaceAttr holds the parameters of [StateSpace]. Its first input has, for each token, the
// values x of all heads, then the inputs B and the outputs C of all groups; its second the step dt
// of each head. Head h is of group h / (Heads/Groups). For each token in order and each head, with
// s = log(1 + exp(dt + StepBias)), at least StepMin and at most StepMax,
//
//	H = exp(s*A)*H + s * B xᵀ
//	y = C·H + Skip*x
//
// Without a second input s is 1 and y is C·H; x, B and C are then the values, keys and queries of
// attention.
//
// The matrix H [States, HeadDim] is 0 before the sequence's first token. A state per sequence keeps
// it after every [RecurrentChunk] tokens, at absolute multiples; a state per token keeps s*x, B and s*A of the
// tokens since then. With these every row is computed in the dual form, which has no other matrix:
// with G the sum of s*A since the multiple, and i the tokens since then up to t,
//
//	y(t) = exp(G(t)) * C(t)·H + sum over i of exp(G(t)-G(i)) * (C(t)·B(i)) * s(i)*x(i) + Skip*x(t)
//
// added in this order, so that its bits do not depend on how a sequence is cut into steps. States
// are float32.
type StateSpaceAttr struct {
	Heads, HeadDim int
	Groups, States int

	StepMin, StepMax float64 // StepMax 0: no limit

	A              *tensor.Tensor // [Heads], not positive
	Skip, StepBias *tensor.Tensor // [Heads] each; nil without steps

	Rows int // the state per token, see [RecurrentChunk]
}

// Width returns the number of columns of the first input.
func (a *StateSpaceAttr) Width() int { return a.Heads*a.HeadDim + 2*a.Groups*a.States }

// Row returns the number of values that the state per token keeps.
func (a *StateSpaceAttr) Row() int { return a.Heads*a.HeadDim + a.Groups*a.States + a.Heads }

// Matrix returns the number of values that the state per sequence keeps.
func (a *StateSpaceAttr) Matrix() int { return a.Heads * a.HeadDim * a.States }

// weights implements weighted.
func (a StateSpaceAttr) weights() []Weight {
	all := []Weight{{a.A, Vector, 1, 1}}
	if a.Steps() {
		all = append(all, Weight{a.Skip, Vector, 1, 1}, Weight{a.StepBias, Vector, 1, 1})
	}
	return all
}

// Steps reports whether steps are an input.
func (a *StateSpaceAttr) Steps() bool { return a.StepBias != nil }

func (a StateSpaceAttr) replace(f func(*tensor.Tensor) *tensor.Tensor) any {
	if a.A = f(a.A); a.Steps() {
		a.Skip, a.StepBias = f(a.Skip), f(a.StepBias)
	}
	return a
}

func (a StateSpaceAttr) second() int { return a.Rows }

func (a StateSpaceAttr) withSecond(state int) any {
	a.Rows = state
	return a
}

func (a StateSpaceAttr) String() string {
	s := fmt.Sprintf("{heads %d dim %d, groups %d states %d", a.Heads, a.HeadDim, a.Groups, a.States)
	if a.StepMin > 0 || a.StepMax > 0 {
		s += fmt.Sprintf(", steps %.6g", a.StepMin)
		if a.StepMax > 0 {
			s += fmt.Sprintf(" to %.6g", a.StepMax)
		}
	}
	return s + fmt.Sprintf("} @%d", a.Rows)
}

// StateSpace adds the layer with the parameters a for x [T, a.Width()] and steps [T, a.Heads]. name
// names its states, which it declares.
func (b *Builder) StateSpace(x, steps Value, name string, a StateSpaceAttr) Value {
	if b.Cols(steps) != a.Heads || b.Rows(steps) != b.Rows(x) {
		b.Failf("statespace %v does not fit steps of %d columns", a, b.Cols(steps))
	}
	if !(a.StepMin >= 0 && a.StepMax >= 0 && max(a.StepMin, a.StepMax) <= math.MaxFloat32) || a.StepMax > 0 && a.StepMax < a.StepMin {
		b.Failf("statespace: steps of %v to %v: want positive numbers in this order, or 0 for no limit", a.StepMin, a.StepMax)
	}
	b.vector(a.Skip, a.Heads)
	b.vector(a.StepBias, a.Heads)
	return b.stateSpace([]Value{x, steps}, name, a)
}

// Retention adds the layer with steps of 1 for x [T, a.Width()]: linear attention whose decays are
// exp(decays) for each head.
func (b *Builder) Retention(x Value, decays *tensor.Tensor, name string, a StateSpaceAttr) Value {
	a.A, a.Skip, a.StepBias, a.StepMin, a.StepMax = decays, nil, nil, 0, 0
	return b.stateSpace([]Value{x}, name, a)
}

func (b *Builder) stateSpace(in []Value, name string, a StateSpaceAttr) Value {
	const most = 1 << 20 // of a row and of a state of a head: products of the numbers fit in an int
	if a.Heads < 1 || a.HeadDim < 1 || a.Groups < 1 || a.States < 1 || a.Heads%a.Groups != 0 ||
		a.Heads > most || a.HeadDim > most || a.States > most || a.Heads*a.HeadDim > most || a.HeadDim*a.States > most || a.Groups*a.States > most {
		b.Failf("statespace: %d heads of %d cannot share %d groups of %d states", a.Heads, a.HeadDim, a.Groups, a.States)
	}
	if b.Cols(in[0]) != a.Width() {
		b.Failf("statespace %v does not fit x of %d columns", a, b.Cols(in[0]))
	}
	b.vector(a.A, a.Heads)
	state := b.State(State{Name: name, Kind: PerSequence, Size: a.Matrix(), Every: RecurrentChunk})
	a.Rows = b.State(State{Name: name + ".rows", Kind: PerToken, KVHeads: 1, HeadDim: a.Row(), Chunk: RecurrentChunk, Exact: true})
	return b.add(Node{Op: StateSpace, In: in, State: state, Attr: a}, Tokens, Dim(a.Heads*a.HeadDim))
}
