package fuse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// A Stage is what a backend runs as one: a node, or several fused nodes.
type Stage struct {
	Nodes []*plan.Node // one operation, or several products of one input
	Maps  []*plan.Node // by product: nil, or a map of its result
	GLU   *plan.Node   // nil, or the GLU of the first and the second product
	Add   *plan.Node   // nil, or the addition of the only node's result and another value
	Then  []*plan.Node // elementwise operations on the only node's result, in order
	Norm  *plan.Node   // nil, or an RMS norm of the output; the stage writes both
	Pick  *plan.Node   // nil, or the pick of the rows to normalize

	// For attention: the queries, keys and values. For a product by head: Q, its input.
	Q, K, V Head
}

// A Head says what a stage does to an input as it reads it.
type Head struct {
	In   plan.Value
	Norm *plan.Node // nil, or an RMS norm of each head; of latent attention, of the row
	Rope *plan.Node // nil, or the rope
}

func newStage(n *plan.Node) Stage {
	s := Stage{Nodes: []*plan.Node{n}, Maps: make([]*plan.Node, 1)}
	if n.Op == plan.Attention || n.Op == plan.HeadLinear {
		for i, h := range []*Head{&s.Q, &s.K, &s.V} {
			if i < len(n.In) {
				h.In = n.In[i]
			}
		}
	}
	return s
}

// Node returns the stage's first node, which names its operation.
func (s *Stage) Node() *plan.Node { return s.Nodes[0] }

// Product returns the result of node i, after its map.
func (s *Stage) Product(i int) plan.Value {
	if s.Maps[i] != nil {
		return s.Maps[i].Out
	}
	return s.Nodes[i].Out
}

// Out returns the value that the stage writes; of several products, the first.
func (s *Stage) Out() plan.Value {
	switch {
	case s.GLU != nil:
		return s.GLU.Out
	case s.Add != nil:
		return s.Add.Out
	case len(s.Then) > 0:
		return s.Then[len(s.Then)-1].Out
	}
	return s.Product(0)
}

// Residual returns the value that the stage adds to its product.
func (s *Stage) Residual() plan.Value { return other(s.Add, s.Product(0)) }

// Inputs returns the values that the stage reads: the inputs of its first node, then those that only
// its other nodes have, and the residual.
func (s *Stage) Inputs() []plan.Value {
	in := slices.Clone(s.Node().In)
	switch {
	case s.Pick != nil:
		in[0] = s.Pick.In[0]
	case s.Node().Op == plan.Attention || s.Node().Op == plan.HeadLinear:
		for i, h := range []Head{s.Q, s.K, s.V} {
			if i < len(in) {
				in[i] = h.In
			}
		}
	}
	for _, n := range s.Nodes[1:] {
		for _, v := range n.In {
			if !slices.Contains(in, v) {
				in = append(in, v)
			}
		}
	}
	if s.Add != nil {
		in = append(in, s.Residual())
	}
	v := s.Product(0)
	for _, m := range s.Then {
		if input, two := Operand(m, v); two {
			in = append(in, m.In[input])
		}
		v = m.Out
	}
	return in
}

// Operand returns the number of the input that m, an elementwise operation, has beside v. two is false
// if it has none.
func Operand(m *plan.Node, v plan.Value) (input int, two bool) {
	if len(m.In) > 1 && m.In[0] == v {
		input = 1
	}
	return input, len(m.In) > 1
}

// IO returns the values that the stage reads and writes, each once.
func (s *Stage) IO() plan.Stage {
	st := plan.Stage{Out: []plan.Value{s.Out()}}
	for _, v := range s.Inputs() {
		if !slices.Contains(st.In, v) {
			st.In = append(st.In, v)
		}
	}
	if s.Norm != nil {
		st.Out = append(st.Out, s.Norm.Out)
	}
	if s.GLU == nil {
		for i := range s.Nodes[1:] {
			st.Out = append(st.Out, s.Product(i+1))
		}
	}
	return st
}

// All returns the stage's nodes.
func (s *Stage) All() []*plan.Node {
	all := slices.Concat([]*plan.Node{s.Pick, s.Q.Norm, s.Q.Rope, s.K.Norm, s.K.Rope, s.V.Rope}, s.Nodes, s.Maps, []*plan.Node{s.GLU, s.Add, s.Norm}, s.Then)
	return slices.DeleteFunc(all, func(n *plan.Node) bool { return n == nil })
}

// String returns the stage's nodes by the names of their values.
func (s *Stage) String() string {
	var parts []string
	for _, n := range s.All() {
		parts = append(parts, fmt.Sprintf("%%%d %v", n.Out, n.Op))
	}
	return strings.Join(parts, ", ")
}
