// Package fuse cuts programs into stages: what a backend does as one. It knows which
// operations can be done together; a backend says by [Rules] which of them it can.
//
// Fusing changes no bit of a result. The products of one input are one stage; the
// product of a gate, of a map and of an addition is not written before these are done;
// heads are normalised and turned as their keys are stored; rows are picked as
// they are normalised.
package fuse

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// Rules are what a backend can do as one. A nil function stands for never.
type Rules struct {
	// Product reports whether n is a product that its stage can do more with.
	Product func(n *plan.Node) bool
	// Together reports whether m, a product of the same input, can be in the stage of n.
	Together func(n, m *plan.Node) bool
	// Most is how many products a stage has, 0: any number.
	Most int
	// Gate reports whether the stage of two products can be a gated unit of them.
	Gate func(gate, up *plan.Node) bool
	// Map reports whether the stage of n, which has so many products, can apply m to it.
	Map func(n, m *plan.Node, products int) bool
	// Add reports whether the stage of n, to which m is applied unless that is nil, can
	// add another value.
	Add func(n, m *plan.Node) bool

	Heads bool // attention can normalise and turn queries and keys
	Pick  bool // norms can pick the rows that they normalise
}

// Single are stages of one node each.
func Single(p *plan.Program) []Stage {
	all := make([]Stage, len(p.Nodes))
	for i := range p.Nodes {
		all[i] = newStage(&p.Nodes[i])
	}
	return all
}

// A joiner makes stages of a program.
type joiner struct {
	Rules
	p     *plan.Program
	uses  []int        // by value
	by    []*plan.Node // by value: the node that writes it
	taken map[*plan.Node]bool
	ready []bool // by value: a stage so far writes it
}

// Stages are the stages of p, in an order in which they can be done.
func (r Rules) Stages(p *plan.Program) []Stage {
	j := &joiner{
		Rules: r, p: p, uses: make([]int, len(p.Shapes)), by: make([]*plan.Node, len(p.Shapes)),
		taken: map[*plan.Node]bool{}, ready: make([]bool, len(p.Shapes)),
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		j.by[n.Out] = n
		for _, v := range n.In {
			j.uses[v]++
		}
	}
	for _, v := range p.Kept() {
		j.uses[v]++
	}
	inputs := make([]Stage, len(p.Nodes)) // by node: what is done as its inputs are read
	for i := range p.Nodes {
		inputs[i] = newStage(&p.Nodes[i])
		j.absorb(&inputs[i])
	}
	var stages []Stage
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if j.taken[n] {
			continue
		}
		s := inputs[i]
		if r.Product != nil && r.Product(n) {
			j.products(&s, i)
		} else {
			j.addition(&s, i)
		}
		for _, v := range s.IO().Out {
			j.ready[v] = true
		}
		stages = append(stages, s)
	}
	return stages
}

// absorb takes the nodes that make the inputs of s.
func (j *joiner) absorb(s *Stage) {
	switch n := s.Nodes[0]; n.Op {
	case plan.Attention:
		if j.Heads {
			s.Q, s.K = j.head(s.Q.In, n), j.head(s.K.In, n)
		}
	case plan.RMSNorm, plan.LayerNorm:
		pick := j.by[n.In[0]]
		if j.Pick && pick != nil && pick.Op == plan.Pick && !pick.Attr.(plan.PickAttr).Mean && j.uses[pick.Out] == 1 {
			s.Pick = pick
			j.taken[pick] = true
		}
	}
}

// head follows v, an input of attention, back to what it is made of. A value that is read
// elsewhere too is left as it is.
func (j *joiner) head(v plan.Value, attention *plan.Node) Head {
	h, dim := Head{In: v}, attention.Attr.(plan.AttentionAttr).HeadDim
	if n := j.by[h.In]; n != nil && n.Op == plan.Rope && j.uses[h.In] == 1 && n.Attr.(plan.RopeAttr).HeadDim == dim {
		h.Rope, h.In = n, n.In[0]
	}
	if n := j.by[h.In]; n != nil && n.Op == plan.RMSNorm && j.uses[h.In] == 1 && n.Attr.(plan.NormAttr).Group == dim && h.Rope != nil {
		h.Norm, h.In = n, n.In[0]
	}
	if j.uses[h.In] != 1 { // it is turned where it lies
		return Head{In: v}
	}
	for _, n := range []*plan.Node{h.Norm, h.Rope} {
		if n != nil {
			j.taken[n] = true
		}
	}
	return h
}

// products joins what node i, a product, can be done with.
func (j *joiner) products(s *Stage, i int) {
	first := s.Nodes[0]
	for k := i + 1; k < len(j.p.Nodes); k++ {
		if m := &j.p.Nodes[k]; !j.taken[m] && j.Product(m) && m.In[0] == first.In[0] && j.Together(first, m) {
			s.Nodes, s.Maps = append(s.Nodes, m), append(s.Maps, nil)
		}
	}
	if len(s.Nodes) == 2 && j.gate(s, i) {
		return
	}
	if j.Most > 0 && len(s.Nodes) > j.Most {
		s.Nodes, s.Maps = s.Nodes[:j.Most], s.Maps[:j.Most]
	}
	for k, n := range s.Nodes {
		j.taken[n] = true
		if m := j.reader(i, n.Out); m != nil && m.Op == plan.Map && j.Map != nil && j.Map(n, m, len(s.Nodes)) {
			s.Maps[k], j.taken[m] = m, true
		}
	}
	if len(s.Nodes) == 1 {
		j.addition(s, i)
	}
}

// gate joins the gated unit of the two products of s, if that is what reads them.
func (j *joiner) gate(s *Stage, i int) bool {
	gate, up := s.Nodes[0], s.Nodes[1]
	m := j.reader(i, gate.Out)
	if m == nil || m.Op != plan.GLU || m.In[0] != gate.Out || m.In[1] != up.Out || j.uses[up.Out] != 1 ||
		j.p.Shapes[gate.Out] != j.p.Shapes[up.Out] || j.Gate == nil || !j.Gate(gate, up) {
		return false
	}
	s.GLU, j.taken[up], j.taken[m] = m, true, true
	return true
}

// addition joins the addition of what s, the stage of node i, writes and of a value that is
// there by then.
func (j *joiner) addition(s *Stage, i int) {
	if j.Add == nil || !j.Add(s.Nodes[0], s.Maps[0]) {
		return
	}
	v := s.Product(0)
	if m := j.reader(i, v); m != nil && m.Op == plan.Add && j.ready[other(m, v)] {
		s.Add, j.taken[m] = m, true
	}
}

// reader is the only node that reads v, which node i or one joined to it writes; nil
// if there are several, or another stage has it.
func (j *joiner) reader(i int, v plan.Value) *plan.Node {
	if j.uses[v] != 1 {
		return nil
	}
	for k := i + 1; k < len(j.p.Nodes); k++ {
		if m := &j.p.Nodes[k]; slices.Contains(m.In, v) && !j.taken[m] {
			return m
		}
	}
	return nil
}

// other is what an addition adds to v.
func other(add *plan.Node, v plan.Value) plan.Value {
	if add.In[0] == v {
		return add.In[1]
	}
	return add.In[0]
}

// Norms are the RMS norms of whole rows, of most columns at the longest, that nothing reads
// but stages that can normalise the input themselves: by what they write.
func Norms(p *plan.Program, stages []Stage, most int, can func(s *Stage, input int) bool) map[plan.Value]*Stage {
	others := map[plan.Value]bool{}
	for _, v := range p.Kept() {
		others[v] = true
	}
	for i := range stages {
		for j, v := range stages[i].Inputs() {
			others[v] = others[v] || !can(&stages[i], j)
		}
	}
	norms := map[plan.Value]*Stage{}
	for i := range stages {
		n := stages[i].Node()
		if n.Op != plan.RMSNorm || others[n.Out] {
			continue
		}
		cols := int(p.Shapes[n.Out][1])
		if n.Attr.(plan.NormAttr).Group == cols && cols%4 == 0 && cols > 128 && cols <= most {
			norms[n.Out] = &stages[i]
		}
	}
	return norms
}
