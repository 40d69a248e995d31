package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// A Builder writes a program. Its methods check shapes and panic on a mismatch,
// so that architectures read as formulas; [Build] turns that panic into an
// error.
type Builder struct {
	p     Program
	layer int
}

type buildError struct{ err error }

// Build runs f and returns the program it wrote, or the error with which f or
// one of the Builder's methods stopped.
func Build(f func(*Builder)) (p *Program, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case buildError:
			p, err = nil, r.err
		default:
			panic(r)
		}
	}()
	b := &Builder{p: Program{Residual: -1, Hidden: -1, Logits: -1}, layer: NoLayer}
	f(b)
	if b.p.Logits < 0 {
		b.Failf("the program has no output")
	}
	return &b.p, nil
}

// Failf stops the build with an error; verbs are those of [fmt.Errorf].
func (b *Builder) Failf(format string, a ...any) {
	panic(buildError{fmt.Errorf("plan: "+format, a...)})
}

// Fail stops the build with err.
func (b *Builder) Fail(err error) { panic(buildError{err}) }

// Layer says that the nodes to come belong to layer i, or to none ([NoLayer]).
func (b *Builder) Layer(i int) { b.layer = i }

func (b *Builder) add(n Node, rows, cols Dim) Value {
	n.Out, n.Layer = Value(len(b.p.Shapes)), b.layer
	b.p.Shapes = append(b.p.Shapes, [2]Dim{rows, cols})
	b.p.Nodes = append(b.p.Nodes, n)
	return n.Out
}

// Rows is the first dimension of v.
func (b *Builder) Rows(v Value) Dim { return b.p.Shapes[v][0] }

// Cols is the number of columns of v.
func (b *Builder) Cols(v Value) int { return int(b.p.Shapes[v][1]) }

// matrix stops the build unless w is a matrix of a weight dtype.
func (b *Builder) matrix(w *tensor.Tensor) {
	if len(w.Shape) != 2 {
		b.Failf("%s: want a matrix, is %v", w.Name, w.Shape)
	}
	b.weight(w)
}

// vector stops the build unless w is a vector of n elements.
func (b *Builder) vector(w *tensor.Tensor, n int) {
	if len(w.Shape) != 1 || w.Shape[0] != n {
		b.Failf("%s: want shape [%d], is %v", w.Name, n, w.Shape)
	}
	b.weight(w)
}

func (b *Builder) weight(w *tensor.Tensor) {
	if !w.DType.Weight() {
		b.Failf("%s: dtype %v is not one of a weight", w.Name, w.DType)
	}
	if err := w.Validate(); err != nil {
		b.Fail(err)
	}
}

// State declares memory that outlives a step.
func (b *Builder) State(s State) int {
	g := Group{Kind: s.Kind, Window: s.Window}
	s.Group = slices.Index(b.p.Groups, g)
	if s.Group < 0 {
		s.Group = len(b.p.Groups)
		b.p.Groups = append(b.p.Groups, g)
	}
	if !s.exists() {
		b.Failf("state %v does not exist", s)
	}
	b.p.States = append(b.p.States, s)
	return len(b.p.States) - 1
}

// Embed is the rows of table w [vocab, d] named by the step's token ids.
func (b *Builder) Embed(w *tensor.Tensor) Value {
	b.matrix(w)
	if b.p.Vocab != 0 && b.p.Vocab != w.Shape[0] {
		b.Failf("%s: a second table of %d tokens beside one of %d", w.Name, w.Shape[0], b.p.Vocab)
	}
	b.p.Vocab = w.Shape[0]
	return b.add(Node{Op: Embed, Weight: w, State: NoState}, Tokens, Dim(w.Shape[1]))
}

// Position is the rows of table w [positions, d] at the positions of the step's tokens.
func (b *Builder) Position(w *tensor.Tensor) Value {
	b.matrix(w)
	if b.p.Positions == 0 || w.Shape[0] < b.p.Positions {
		b.p.Positions = w.Shape[0]
	}
	return b.add(Node{Op: Position, Weight: w, State: NoState}, Tokens, Dim(w.Shape[1]))
}

// PositionAxis is the rows of table w at the second (axis 1) or third (axis 2) positions
// of the step's tokens: which of two texts a token is of, for example.
func (b *Builder) PositionAxis(w *tensor.Tensor, axis int) Value {
	b.matrix(w)
	if axis < 1 || axis > len(b.p.Axes) {
		b.Failf("%s: a token has no position of axis %d", w.Name, axis)
	}
	if n := &b.p.Axes[axis-1]; *n == 0 || w.Shape[0] < *n {
		*n = w.Shape[0]
	}
	return b.add(Node{Op: Position, Weight: w, State: NoState, Attr: PositionAttr{Axis: axis}}, Tokens, Dim(w.Shape[1]))
}

// Linear is x·wᵀ + bias, w [out, in], bias [out] or nil.
func (b *Builder) Linear(x Value, w, bias *tensor.Tensor) Value {
	b.matrix(w)
	if b.Cols(x) != w.Shape[1] {
		b.Failf("%s: shape %v takes %d inputs, is given %d", w.Name, w.Shape, w.Shape[1], b.Cols(x))
	}
	if bias != nil {
		b.vector(bias, w.Shape[0])
	}
	return b.add(Node{Op: Linear, In: []Value{x}, Weight: w, Bias: bias, State: NoState}, b.Rows(x), Dim(w.Shape[0]))
}

// RMSNorm normalises groups of len(w) columns of x.
func (b *Builder) RMSNorm(x Value, w *tensor.Tensor, eps float64) Value {
	return b.norm(RMSNorm, x, w, nil, w.Elems(), eps)
}

// LayerNorm normalises groups of len(w) columns of x, bias [len(w)] or nil.
func (b *Builder) LayerNorm(x Value, w, bias *tensor.Tensor, eps float64) Value {
	return b.norm(LayerNorm, x, w, bias, w.Elems(), eps)
}

// LayerNormHeads normalises heads of headDim columns of x, each by weights of its own:
// w is a row's length, bias as long or nil.
func (b *Builder) LayerNormHeads(x Value, w, bias *tensor.Tensor, headDim int, eps float64) Value {
	if w.Elems() != b.Cols(x) {
		b.Failf("%s: want %d elements, one for each column, has %d", w.Name, b.Cols(x), w.Elems())
	}
	return b.norm(LayerNorm, x, w, bias, headDim, eps)
}

func (b *Builder) norm(op Op, x Value, w, bias *tensor.Tensor, g int, eps float64) Value {
	b.vector(w, w.Elems())
	if g <= 0 || b.Cols(x)%g != 0 {
		b.Failf("%s: normalises groups of %d, which do not divide %d", w.Name, g, b.Cols(x))
	}
	if bias != nil {
		b.vector(bias, w.Elems())
	}
	return b.add(Node{Op: op, In: []Value{x}, Weight: w, Bias: bias, State: NoState, Attr: NormAttr{g, eps}}, b.Rows(x), Dim(b.Cols(x)))
}

// Rope turns the heads of x by the positions of the step's tokens.
func (b *Builder) Rope(x Value, a RopeAttr) Value {
	half := a.Dims / 2
	switch {
	case b.Rows(x) != Tokens:
		b.Failf("rope: wants a row per token, has %v", b.Rows(x))
	case a.HeadDim <= 0 || b.Cols(x)%a.HeadDim != 0:
		b.Failf("rope: heads of %d do not divide %d", a.HeadDim, b.Cols(x))
	case a.Dims <= 0 || a.Dims%2 != 0 || a.Dims > a.HeadDim:
		b.Failf("rope: cannot turn %d of the %d elements of a head", a.Dims, a.HeadDim)
	case len(a.Freqs) != half || (a.LongFreqs != nil && len(a.LongFreqs) != half):
		b.Failf("rope: turning %d elements takes %d frequencies, there are %d and %d", a.Dims, half, len(a.Freqs), len(a.LongFreqs))
	case a.Dynamic != nil && (a.LongFrom <= 0 || a.Dims <= 2):
		b.Failf("rope: dynamic frequencies need a length to start from and more than 2 turned elements, have %d and %d", a.LongFrom, a.Dims)
	}
	return b.add(Node{Op: Rope, In: []Value{x}, State: NoState, Attr: a}, Tokens, Dim(b.Cols(x)))
}

// Attention stores k and v in state and attends to what it holds.
func (b *Builder) Attention(q, k, v Value, state int, a AttentionAttr) Value {
	return b.AttentionSinks(q, k, v, nil, state, a)
}

// AttentionSinks is Attention with sinks [Heads], or nil: a logit for each query
// head that takes part in every softmax of the head and has no value, so that a
// token may attend to nothing. It is not scaled or capped. (Xiao et al., "Efficient
// Streaming Language Models with Attention Sinks", 2023; learned for each head in
// OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025.)
func (b *Builder) AttentionSinks(q, k, v Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	if a.Heads <= 0 || a.KVHeads <= 0 || a.Heads%a.KVHeads != 0 {
		b.Failf("attention: %d query heads cannot share %d key/value heads", a.Heads, a.KVHeads)
	}
	if b.Cols(q) != a.Heads*a.HeadDim || b.Cols(k) != a.KVHeads*a.HeadDim || b.Cols(v) != b.Cols(k) {
		b.Failf("attention %v does not fit q of %d, k of %d and v of %d columns", a, b.Cols(q), b.Cols(k), b.Cols(v))
	}
	if s := b.p.States[state]; s.KVHeads != a.KVHeads || s.HeadDim != a.HeadDim || s.ValueDim != a.HeadDim || s.Window != a.Window {
		b.Failf("attention %v does not fit state %v", a, s)
	}
	if !(a.Softcap >= 0 && a.Softcap <= math.MaxFloat32) { // NaN fails this too
		b.Failf("attention: a softcap of %v bounds nothing: want a positive number, or 0 for none", a.Softcap)
	}
	if sinks != nil {
		b.vector(sinks, a.Heads)
	}
	return b.add(Node{Op: Attention, In: []Value{q, k, v}, Weight: sinks, State: state, Attr: a}, Tokens, Dim(b.Cols(q)))
}

// Bidirectional attends to all tokens of a sequence, which is in the step as a whole.
func (b *Builder) Bidirectional(q, k, v Value, a AttentionAttr) Value {
	if a.Heads <= 0 || a.KVHeads <= 0 || a.Heads%a.KVHeads != 0 || a.Softcap != 0 {
		b.Failf("bidirectional: %d query heads cannot share %d key/value heads with a softcap of %v", a.Heads, a.KVHeads, a.Softcap)
	}
	if b.Cols(q) != a.Heads*a.HeadDim || b.Cols(k) != a.KVHeads*a.HeadDim || b.Cols(v) != b.Cols(k) || b.Rows(q) != Tokens {
		b.Failf("bidirectional %v does not fit q of %d, k of %d and v of %d columns", a, b.Cols(q), b.Cols(k), b.Cols(v))
	}
	b.p.Whole = true
	return b.add(Node{Op: Bidirectional, In: []Value{q, k, v}, State: NoState, Attr: a}, Tokens, Dim(b.Cols(q)))
}

// GLU is act(gate) * up.
func (b *Builder) GLU(gate, up Value, act Activation) Value {
	return b.GLUWith(gate, up, GLUAttr{Act: act})
}

// GLUWith is a GLU with all its parameters.
func (b *Builder) GLUWith(gate, up Value, a GLUAttr) Value {
	if b.Cols(gate) != 1 {
		b.same("glu", gate, up)
	} else if b.Rows(gate) != b.Rows(up) {
		b.Failf("glu: a gate of %v rows for %v", b.Rows(gate), b.Rows(up))
	}
	b.glu(a)
	return b.add(Node{Op: GLU, In: []Value{gate, up}, State: NoState, Attr: a}, b.Rows(up), Dim(b.Cols(up)))
}

func (b *Builder) glu(a GLUAttr) {
	if a.Act >= numActivations {
		b.Failf("glu: there is no %v", a.Act)
	}
	if !(a.Limit >= 0 && a.Limit <= math.MaxFloat32 && math.Abs(a.Shift) <= math.MaxFloat32) {
		b.Failf("glu: a limit of %v and a shift of %v: want a positive number, or 0 for none", a.Limit, a.Shift)
	}
}

// Activate is act(x).
func (b *Builder) Activate(x Value, act Activation) Value {
	if act >= numActivations {
		b.Failf("map: there is no %v", act)
	}
	return b.apply(x, MapAttr{Func: Activate, Act: act})
}

// Scale is x * by; x itself where by is 1.
func (b *Builder) Scale(x Value, by float64) Value {
	if !(math.Abs(by) <= math.MaxFloat32) {
		b.Failf("map: cannot scale by %v", by)
	}
	if by == 1 {
		return x
	}
	return b.apply(x, MapAttr{Func: Scale, By: by})
}

// Softcap is by * tanh(x/by); x itself where by is 0.
func (b *Builder) Softcap(x Value, by float64) Value {
	if !(by >= 0 && by <= math.MaxFloat32) {
		b.Failf("map: a softcap of %v bounds nothing: want a positive number, or 0 for none", by)
	}
	if by == 0 {
		return x
	}
	return b.apply(x, MapAttr{Func: Softcap, By: by})
}

func (b *Builder) apply(x Value, a MapAttr) Value {
	return b.add(Node{Op: Map, In: []Value{x}, State: NoState, Attr: a}, b.Rows(x), Dim(b.Cols(x)))
}

// Add is x + y.
func (b *Builder) Add(x, y Value) Value {
	b.same("add", x, y)
	return b.add(Node{Op: Add, In: []Value{x, y}, State: NoState}, b.Rows(x), Dim(b.Cols(x)))
}

func (b *Builder) same(what string, x, y Value) {
	if b.p.Shapes[x] != b.p.Shapes[y] {
		b.Failf("%s: shapes %v and %v differ", what, b.p.Shapes[x], b.p.Shapes[y])
	}
}

// Pick keeps the rows of the residual stream x [T, d] that the step wants. A
// program has one.
func (b *Builder) Pick(x Value) Value { return b.pick(x, nil) }

// PickMean is Pick with the mean of all tokens of a wanted row's sequence, which is in
// the step as a whole, in place of the row.
func (b *Builder) PickMean(x Value) Value {
	b.p.Whole = true
	return b.pick(x, PickAttr{Mean: true})
}

func (b *Builder) pick(x Value, attr any) Value {
	if b.Rows(x) != Tokens || b.p.Residual >= 0 {
		b.Failf("pick: want one, of a row per token")
	}
	b.p.Residual = x
	return b.add(Node{Op: Pick, In: []Value{x}, State: NoState, Attr: attr}, Rows, Dim(b.Cols(x)))
}

// Output ends the program: hidden [R, d] is what the head reads, logits
// [R, vocab] what it gives.
func (b *Builder) Output(hidden, logits Value) {
	if b.Rows(hidden) != Rows || b.Rows(logits) != Rows {
		b.Failf("output: hidden and logits want a row per wanted token, have %v and %v", b.Rows(hidden), b.Rows(logits))
	}
	b.p.Hidden, b.p.Logits = hidden, logits
}
