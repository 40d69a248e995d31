package cpu

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A stage is what is done as one: a node, or several that a pass has joined.
//
// The passes join what reads or writes the same memory: products of one input
// share its record, the product of a gate and of an addition is not written out
// before the gate and the addition are done. They change no bit of a result.
type stage struct {
	nodes []*plan.Node // the products, where there are several: of one input
	maps  []*plan.Node // by product: nil, or what is made of it
	glu   *plan.Node   // nil, or of the first product and the second
	add   *plan.Node   // nil, or of the product and something else
}

// single are stages of one node each.
func single(p *plan.Program) []stage {
	all := make([]stage, len(p.Nodes))
	for i := range p.Nodes {
		all[i] = stage{nodes: []*plan.Node{&p.Nodes[i]}, maps: make([]*plan.Node, 1)}
	}
	return all
}

// join makes stages of products, the nodes for which product holds.
func join(p *plan.Program, product func(n *plan.Node) bool) []stage {
	uses := make([]int, len(p.Shapes))
	for i := range p.Nodes {
		for _, v := range p.Nodes[i].In {
			uses[v]++
		}
	}
	for _, v := range []plan.Value{p.Residual, p.Hidden, p.Logits} {
		if v >= 0 {
			uses[v]++
		}
	}
	done := make([]bool, len(p.Nodes))
	ready := make([]bool, len(p.Shapes)) // values of the stages so far
	var all []stage
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if done[i] {
			continue
		}
		s := stage{nodes: []*plan.Node{n}, maps: make([]*plan.Node, 1)}
		if product(n) {
			for j := i + 1; j < len(p.Nodes); j++ {
				if m := &p.Nodes[j]; !done[j] && product(m) && m.In[0] == n.In[0] {
					s.nodes, s.maps, done[j] = append(s.nodes, m), append(s.maps, nil), true
				}
			}
			s.follow(p, i, done, uses, ready)
		}
		for _, v := range s.io().Out {
			ready[v] = true
		}
		all = append(all, s)
	}
	return all
}

// follow takes in what comes after the products of node i.
func (s *stage) follow(p *plan.Program, i int, done []bool, uses []int, ready []bool) {
	for j := i + 1; j < len(p.Nodes); j++ {
		m := &p.Nodes[j]
		switch {
		case done[j]:
		case m.Op == plan.Map:
			for k := range s.nodes {
				if s.maps[k] == nil && s.writes(m.In[0], k, uses) {
					s.maps[k], done[j] = m, true
				}
			}
		case elementwiseGLU(p, m) && len(s.nodes) == 2 && s.maps[0] == nil && s.maps[1] == nil && s.writes(m.In[0], 0, uses) && s.writes(m.In[1], 1, uses):
			s.glu, done[j] = m, true
			return
		case m.Op == plan.Add && len(s.nodes) == 1:
			for side, v := range m.In {
				if s.writes(v, 0, uses) && ready[m.In[1-side]] {
					s.add, done[j] = m, true
					return
				}
			}
		}
	}
}

// elementwiseGLU reports whether n is a GLU whose gate has the columns of what it gates.
func elementwiseGLU(p *plan.Program, n *plan.Node) bool {
	return n.Op == plan.GLU && p.Shapes[n.In[0]] == p.Shapes[n.In[1]]
}

// out is what comes of product i.
func (s *stage) out(i int) plan.Value {
	if s.maps[i] != nil {
		return s.maps[i].Out
	}
	return s.nodes[i].Out
}

// writes reports whether v is what comes of product i, and used once.
func (s *stage) writes(v plan.Value, i int, uses []int) bool {
	return s.out(i) == v && uses[v] == 1
}

// io are the values that the stage reads and writes.
func (s *stage) io() plan.Stage {
	var st plan.Stage
	for i, n := range s.nodes {
		for _, v := range n.In {
			if !slices.Contains(st.In, v) {
				st.In = append(st.In, v)
			}
		}
		st.Out = append(st.Out, s.out(i))
	}
	switch {
	case s.glu != nil:
		st.Out = []plan.Value{s.glu.Out}
	case s.add != nil:
		st.In = append(st.In, s.residual())
		st.Out = []plan.Value{s.add.Out}
	}
	return st
}

// all are the stage's nodes.
func (s *stage) all() []*plan.Node {
	nodes := slices.Clone(s.nodes)
	for _, n := range append(slices.Clone(s.maps), s.glu, s.add) {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// residual is what the stage adds its product to.
func (s *stage) residual() plan.Value {
	if s.add.In[0] == s.out(0) {
		return s.add.In[1]
	}
	return s.add.In[0]
}
