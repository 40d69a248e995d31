package plan

import (
	"fmt"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// An Op is one kind of operation, as large as a kernel's author would want to own:
// attention is one operation, not seven. Each has a file of its own, with its
// parameters, its shapes and the [Builder] method that adds it; x is [rows, cols] in
// float32 everywhere, and T, S and R are as in [Dim].
type Op struct {
	Name   string
	Scope  Scope
	Weight Role // of [Node.Weight]
}

// String is the operation's name as a program prints it.
func (o *Op) String() string { return o.Name }

// A Scope says what a row of an operation's result is made of.
type Scope uint8

// The scopes. Those other than ByRow read a row per token.
const (
	ByRow      Scope = iota // the same row of each input
	ByToken                 // that, and which token it is: its id or its position
	BySequence              // rows of the token's whole sequence, of this step and those before
)

// A Role is how an operation reads a weight.
type Role uint8

// The roles.
const (
	Vector Role = iota // whole, as float32: of a norm, a bias
	Matrix             // multiplied with every row
	Table              // row by row, by number
)

// A Weight is a tensor that a node reads. A row of the input reads Used of Of such
// tensors: of a mixture those of the chosen experts, otherwise 1 of 1.
type Weight struct {
	*tensor.Tensor
	Role     Role
	Used, Of int
}

// Read is how many of w.Of such tensors so many rows read at most.
func (w *Weight) Read(rows int) int { return min(w.Of, w.Used*rows) }

// A weighted attribute has weights beside those of its node.
type weighted interface {
	weights() []Weight
	// replace returns the attribute with what f gives for each weight.
	replace(f func(*tensor.Tensor) *tensor.Tensor) any
}

// Weights are all that the node reads: its weight and its bias, then those of its
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

// Tensors are the tensors of n.Weights.
func (n *Node) Tensors() []*tensor.Tensor {
	var all []*tensor.Tensor
	for _, w := range n.Weights() {
		all = append(all, w.Tensor)
	}
	return all
}

// Matrices are the weights of the node that are no vectors.
func (n *Node) Matrices() []*tensor.Tensor {
	var all []*tensor.Tensor
	for _, w := range n.Weights() {
		if w.Role != Vector {
			all = append(all, w.Tensor)
		}
	}
	return all
}

// Replace puts what f gives for them in the place of the node's weights.
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

// Where says in words where in the model the node is, for errors.
func (n *Node) Where() string { return Where(n) }

// Where says in words where in the model nodes are that a backend does as one.
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

// String is the node as a program prints it, without its shape.
func (n *Node) String() string {
	var b strings.Builder
	b.WriteString(n.Op.Name)
	for _, v := range n.In {
		fmt.Fprintf(&b, " %%%d", v)
	}
	seen := 0 // of a list of like weights the first stands for all
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
