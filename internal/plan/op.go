package plan

import (
	"fmt"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// An Op is one kind of operation, as large as the author of a kernel would want: attention is one
// operation, not seven. Each has its own file with its parameters, its shapes and the [Builder]
// method that adds it. x is [rows, cols] in float32 everywhere; T, S and R are as in [Dim].
type Op struct {
	Name   string
	Scope  Scope
	Weight Role // role of [Node.Weight]
}

// String returns the operation's name as a program prints it.
func (o *Op) String() string { return o.Name }

// A Scope says what a row of an operation's result depends on.
type Scope uint8

// The scopes. Those other than ByRow read a row per token.
const (
	ByRow      Scope = iota // on the same row of each input
	ByToken                 // also on the token's id or position
	BySequence              // on rows of the token's whole sequence, in this step and earlier ones
)

// A Role says how an operation reads a weight.
type Role uint8

// The roles.
const (
	Vector Role = iota // whole, as float32: a norm's weight, a bias
	Matrix             // multiplied with every row
	Table              // single rows, by index
)

// A Weight is a tensor that a node reads. A row of the input reads Used of Of such tensors: the
// chosen experts of a mixture, otherwise 1 of 1.
type Weight struct {
	*tensor.Tensor
	Role     Role
	Used, Of int
}

// Read returns how many of the w.Of tensors rows rows read at most.
func (w *Weight) Read(rows int) int { return min(w.Of, w.Used*rows) }

// A weighted attribute has weights of its own.
type weighted interface {
	weights() []Weight
	// replace returns the attribute with each weight w replaced by f(w).
	replace(f func(*tensor.Tensor) *tensor.Tensor) any
}

// Weights returns all weights that the node reads: its weight, its bias, then those of its
// attribute.
func (n *Node) Weights() []Weight {
	var all []Weight
	if n.Weight != nil {
		all = append(all, Weight{n.Weight, n.Op.Weight, 1, 1})
	}
	if n.Bias != nil {
		all = append(all, Weight{n.Bias, Vector, 1, 1})
	}
	if a, ok := n.Attr.(weighted); ok {
		all = append(all, a.weights()...)
	}
	return all
}

// Tensors returns the tensors of n.Weights.
func (n *Node) Tensors() []*tensor.Tensor {
	var all []*tensor.Tensor
	for _, w := range n.Weights() {
		all = append(all, w.Tensor)
	}
	return all
}

// Matrices returns the tensors of n.Weights that are not vectors.
func (n *Node) Matrices() []*tensor.Tensor {
	var all []*tensor.Tensor
	for _, w := range n.Weights() {
		if w.Role != Vector {
			all = append(all, w.Tensor)
		}
	}
	return all
}

// Replace replaces each weight w of the node by f(w).
func (n *Node) Replace(f func(*tensor.Tensor) *tensor.Tensor) {
	for _, w := range []**tensor.Tensor{&n.Weight, &n.Bias} {
		if *w != nil {
			*w = f(*w)
		}
	}
	if a, ok := n.Attr.(weighted); ok {
		n.Attr = a.replace(f)
	}
}

// A stateful attribute names a second state of its node.
type stateful interface {
	second() int // NoState: none
	// withSecond returns the attribute with another index of the state.
	withSecond(state int) any
}

// States returns the indices in [Program.States] of the states of the node.
func (n *Node) States() []int {
	var all []int
	if n.State != NoState {
		all = append(all, n.State)
	}
	if a, ok := n.Attr.(stateful); ok && a.second() != NoState {
		all = append(all, a.second())
	}
	return all
}

// ReplaceStates replaces the index of each state of the node by f(index).
func (n *Node) ReplaceStates(f func(state int) int) {
	if n.State != NoState {
		n.State = f(n.State)
	}
	if a, ok := n.Attr.(stateful); ok && a.second() != NoState {
		n.Attr = a.withSecond(f(a.second()))
	}
}

// Where returns the node's place in the model in words, for errors.
func (n *Node) Where() string { return Where(n) }

// Where returns the place in the model, in words, of nodes that a backend runs as one stage.
func Where(nodes ...*Node) string {
	var s strings.Builder
	for i, n := range nodes {
		switch {
		case i == 0:
			s.WriteString(n.Op.Name)
		case n.Op == nodes[i-1].Op && n.Weight != nil:
			s.WriteString(",")
		default:
			s.WriteString("; " + n.Op.Name)
		}
		if n.Weight != nil {
			s.WriteString(" " + n.Weight.Name)
		}
	}
	if nodes[0].Layer == NoLayer {
		return s.String()
	}
	return fmt.Sprintf("layer %d (%s)", nodes[0].Layer, s.String())
}

// String returns the node as a program prints it, without its shape.
func (n *Node) String() string {
	var b strings.Builder
	b.WriteString(n.Op.Name)
	for _, v := range n.In {
		fmt.Fprintf(&b, " %%%d", v)
	}
	seen := 0 // of a list of similar weights only the first is printed
	for _, w := range n.Weights() {
		if seen--; seen < 0 {
			fmt.Fprintf(&b, " %s:%v", w.Name, w.DType)
			seen = w.Of - 1
		}
	}
	if n.Attr != nil {
		if s := fmt.Sprint(n.Attr); s != "" {
			b.WriteString(" " + s)
		}
	}
	if n.State != NoState {
		fmt.Fprintf(&b, " @%d", n.State)
	}
	return b.String()
}
