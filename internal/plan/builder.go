package plan

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// A Builder writes a program. Its methods check shapes and panic on a mismatch,
// so that architectures read as formulas; [Build] turns that panic into an
// error.
type Builder struct {
	p     Program
	layer int
	wrap  func(error) error // or nil
}

type buildError struct{ err error }

// Build runs f and returns the program that f has built, or the error with which f or one of the
// Builder's methods stopped.
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
	if _, _, logits := b.outputs(); *logits < 0 {
		b.Failf("the program has no output")
	}
	if b.p.Head != nil {
		b.prune()
	}
	return &b.p, nil
}

// Failf stops the build with an error; verbs are those of [fmt.Errorf].
func (b *Builder) Failf(format string, a ...any) { b.Fail(fmt.Errorf("plan: "+format, a...)) }

// Fail stops the build with err.
func (b *Builder) Fail(err error) {
	if b.wrap != nil {
		err = b.wrap(err)
	}
	panic(buildError{err})
}

// Wrap makes errors from now on those that wrap returns for them; nil leaves them as they are.
func (b *Builder) Wrap(wrap func(error) error) { b.wrap = wrap }

// Layer assigns the following nodes to layer i, or to none ([NoLayer]).
func (b *Builder) Layer(i int) { b.layer = i }

func (b *Builder) add(n Node, rows, cols Dim) Value {
	if n.Op.Scope != ByRow && len(n.In) > 0 && b.Rows(n.In[0]) != Tokens {
		b.Failf("%s: wants a row per token, has %v", n.Op.Name, b.Rows(n.In[0]))
	}
	n.Out, n.Layer = Value(len(b.p.Shapes)), b.layer
	b.p.Shapes = append(b.p.Shapes, [2]Dim{rows, cols})
	b.p.Nodes = append(b.p.Nodes, n)
	return n.Out
}

// Rows returns the number of rows of v.
func (b *Builder) Rows(v Value) Dim { return b.p.Shapes[v][0] }

// Cols returns the number of columns of v.
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

func (b *Builder) same(what string, x, y Value) {
	if b.p.Shapes[x] != b.p.Shapes[y] {
		b.Failf("%s: shapes %v and %v differ", what, b.p.Shapes[x], b.p.Shapes[y])
	}
}

// State declares a state and returns its index in [Program.States]. After [Builder.Head], a state
// that the first part has declared with the same name and numbers is the same state.
func (b *Builder) State(s State) int {
	if s.Every == 1 {
		s.Every = 0
	}
	g := s.group()
	s.Group = slices.Index(b.p.Groups, g)
	if s.Group < 0 {
		s.Group = len(b.p.Groups)
		b.p.Groups = append(b.p.Groups, g)
	}
	if !s.exists() {
		b.Failf("state %v does not exist", s)
	}
	if i := slices.Index(b.p.States, s); i >= 0 && b.p.Head != nil {
		return i
	}
	b.p.States = append(b.p.States, s)
	return len(b.p.States) - 1
}

// Output ends the program, or its part before or after [Builder.Head]. hidden [R, d] is the head's input, logits [R, vocab] its output.
func (b *Builder) Output(hidden, logits Value) {
	if b.Rows(hidden) != Rows || b.Rows(logits) != Rows {
		b.Failf("output: hidden and logits want a row per wanted token, have %v and %v", b.Rows(hidden), b.Rows(logits))
	}
	if b.p.Head != nil && b.Cols(logits) != b.Cols(b.p.Logits) {
		b.Failf("output: a head with %d logits for a vocabulary of %d", b.Cols(logits), b.Cols(b.p.Logits))
	}
	_, h, l := b.outputs()
	*h, *l = hidden, logits
}
