package fuse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// A Stage is what a backend does as one: a node, or several that are joined.
type Stage struct {
	Nodes []*plan.Node // of one operation; products of one input, if there are several
	Maps  []*plan.Node // by product: nil, or the map that is applied to it
	GLU   *plan.Node   // nil, or of the first product and the second
	Add   *plan.Node   // nil, or of what the only node makes and another value
	Pick  *plan.Node   // nil, or the pick whose rows are normalised
	Q, K  Head         // of attention
}

// A Head is what attention does to queries or keys as it reads them.
type Head struct {
	In   plan.Value
	Norm *plan.Node // nil, or an RMS norm of each head
	Rope *plan.Node // nil, or the rope
}

func newStage(n *plan.Node) Stage {
	s := Stage{Nodes: []*plan.Node{n}, Maps: make([]*plan.Node, 1)}
	if n.Op == plan.Attention {
		s.Q, s.K = Head{In: n.In[0]}, Head{In: n.In[1]}
	}
	return s
}

// Node is the first of the stage's nodes, which says what it does.
func (s *Stage) Node() *plan.Node { return s.Nodes[0] }

// Product is what node i makes, its map applied.
func (s *Stage) Product(i int) plan.Value {
	if s.Maps[i] != nil {
		return s.Maps[i].Out
	}
	return s.Nodes[i].Out
}

// Out is what the stage writes: of several products, what comes of the first.
func (s *Stage) Out() plan.Value {
	switch {
	case s.GLU != nil:
		return s.GLU.Out
	case s.Add != nil:
		return s.Add.Out
	}
	return s.Product(0)
}

// Residual is what the stage adds to its product.
func (s *Stage) Residual() plan.Value { return other(s.Add, s.Product(0)) }

// Inputs are the values that the stage reads, those of its first node before what it adds.
func (s *Stage) Inputs() []plan.Value {
	in := slices.Clone(s.Node().In)
	switch {
	case s.Pick != nil:
		in[0] = s.Pick.In[0]
	case s.Node().Op == plan.Attention:
		in[0], in[1] = s.Q.In, s.K.In
	}
	if s.Add != nil {
		in = append(in, s.Residual())
	}
	return in
}

// IO are the values that the stage reads and writes, each once.
func (s *Stage) IO() plan.Stage {
	st := plan.Stage{Out: []plan.Value{s.Out()}}
	for _, v := range s.Inputs() {
		if !slices.Contains(st.In, v) {
			st.In = append(st.In, v)
		}
	}
	if s.GLU == nil {
		for i := range s.Nodes[1:] {
			st.Out = append(st.Out, s.Product(i+1))
		}
	}
	return st
}

// All are the stage's nodes.
func (s *Stage) All() []*plan.Node {
	all := slices.Concat([]*plan.Node{s.Pick, s.Q.Norm, s.Q.Rope, s.K.Norm, s.K.Rope}, s.Nodes, s.Maps, []*plan.Node{s.GLU, s.Add})
	return slices.DeleteFunc(all, func(n *plan.Node) bool { return n == nil })
}

// String names the stage's nodes by their values.
func (s *Stage) String() string {
	var parts []string
	for _, n := range s.All() {
		parts = append(parts, fmt.Sprintf("%%%d %v", n.Out, n.Op))
	}
	return strings.Join(parts, ", ")
}
