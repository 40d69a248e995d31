// Package fuse cuts programs into stages, each of which a backend runs as one. The package knows
// which operations can be fused; a backend says by [Rules] which of them it supports.
//
// Fusing changes no bit of a result. Products of one input share a stage. A gated unit, a map or an
// addition is applied to a product before it is written. Heads are normalized and rotated as their
// keys are stored. Rows are picked as they are normalized.
package fuse

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// Rules say what a backend can fuse. A nil function means never.
type Rules struct {
	// Product reports whether n is a product that can be fused with other operations.
	Product func(n *plan.Node) bool
	// Together reports whether m, a product of the same input, can be in n's stage.
	Together func(n, m *plan.Node) bool
	// Most is the largest number of products in a stage; 0: no limit.
	Most int
	// Gate reports whether the stage of gate, a product, can apply glu to it and another one.
	Gate func(gate, glu *plan.Node) bool
	// Map reports whether the stage of n, with that many products or operations beside, can apply m to
	// n's result.
	Map func(n, m *plan.Node, products int) bool
	// Add reports whether the stage of n, with the map m unless it is nil, can add another value.
	Add func(n, m *plan.Node) bool

	// Then reports whether the stage of n, no product, can also apply m, an elementwise operation, to
	// what n and the given number of such operations before have computed.
	Then func(n, m *plan.Node, before int) bool

	// Norm reports whether the stage of n, a product, can also write norm, an RMS norm of the rows
	// that it writes.
	Norm func(n, norm *plan.Node) bool

	// Beside has the operations of which a stage can have several of a layer, whose inputs may differ,
	// and how many.
	Beside map[*plan.Op]int

	// Heads reports whether n, attention, can normalize and rotate queries and keys.
	Heads func(n *plan.Node) bool

	// Latent: latent attention can normalize the row that it keeps of a token, and rotate the rest of
	// the key.
	Latent bool
	Turn   bool // products by head can rotate the columns that they keep

	Pick bool // norms can pick the rows that they normalize
}

// Single returns one stage for each node.
func Single(p *plan.Program) []Stage {
	all := make([]Stage, len(p.Nodes))
	for i := range p.Nodes {
		all[i] = newStage(&p.Nodes[i])
	}
	return all
}

// HeadOf returns the index of the first stage of p's head, or the number of stages if p has none.
func HeadOf(p *plan.Program, stages []Stage) int {
	if p.Head == nil {
		return len(stages)
	}
	first := p.Nodes[p.Head.First].Out
	return slices.IndexFunc(stages, func(s Stage) bool { return s.Node().Out >= first })
}

// A joiner cuts a program into stages.
type joiner struct {
	Rules
	p     *plan.Program
	uses  []int        // by value: number of readers
	by    []*plan.Node // by value: the node that writes it
	taken map[*plan.Node]bool
	ready []bool // by value: written by a stage so far
}

// Stages returns the stages of p in an order in which they can run.
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
	inputs := make([]Stage, len(p.Nodes)) // by node: its stage with the nodes of its inputs
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
		switch {
		case r.Product != nil && r.Product(n):
			j.products(&s, i)
		case r.Beside[n.Op] > 0:
			j.beside(&s, i)
		default:
			j.addition(&s, i)
			j.then(&s, i)
		}
		for _, v := range s.IO().Out {
			j.ready[v] = true
		}
		stages = append(stages, s)
	}
	return stages
}

// absorb adds the nodes that compute the inputs of s to s.
func (j *joiner) absorb(s *Stage) {
	switch n := s.Nodes[0]; n.Op {
	case plan.Attention:
		switch a := n.Attr.(plan.AttentionAttr); {
		case len(n.In) < 2:
		case a.Latent && j.Latent && a.KVHeads == 1:
			s.K = j.latent(s.K.In)
			if a.Values() < a.HeadDim {
				s.V = j.turned(s.V.In, a.HeadDim-a.Values(), 0)
			}
			j.take(s.K, s.V)
		case !a.Latent && j.Heads != nil && j.Heads(n):
			s.Q, s.K = j.head(s.Q.In, n), j.head(s.K.In, n)
		}
	case plan.HeadLinear:
		if a := n.Attr.(plan.HeadLinearAttr); j.Turn && a.Kept > 0 {
			s.Q = j.turned(s.Q.In, a.In()+a.Kept, a.In())
			j.take(s.Q)
		}
	case plan.RMSNorm, plan.LayerNorm:
		pick := j.by[n.In[0]]
		if j.Pick && pick != nil && pick.Op == plan.Pick && !pick.Attr.(plan.PickAttr).Mean && j.uses[pick.Out] == 1 {
			s.Pick = pick
			j.taken[pick] = true
		}
	}
}

// head traces v, an input of attention, back through the rope and the norm. A value that other
// nodes read too stays as it is.
func (j *joiner) head(v plan.Value, attention *plan.Node) Head {
	dim := attention.Attr.(plan.AttentionAttr).HeadDim
	h := j.turned(v, dim, 0)
	if n := j.by[h.In]; n != nil && n.Op == plan.RMSNorm && j.uses[h.In] == 1 && n.Attr.(plan.NormAttr).Group == dim && n.Weight.Elems() == dim && h.Rope != nil {
		h.Norm, h.In = n, n.In[0]
	}
	if j.uses[h.In] != 1 { // the value before the rope is needed as well
		return Head{In: v}
	}
	j.take(h)
	return h
}

// turned traces v back through a rope of heads of dim numbers that begins at number first.
func (j *joiner) turned(v plan.Value, dim, first int) Head {
	n := j.by[v]
	if n == nil || n.Op != plan.Rope || j.uses[v] != 1 {
		return Head{In: v}
	}
	if a := n.Attr.(plan.RopeAttr); a.HeadDim != dim || a.First != first {
		return Head{In: v}
	}
	return Head{Rope: n, In: n.In[0]}
}

// latent traces v, the row that latent attention keeps, back through an RMS norm of the whole row.
func (j *joiner) latent(v plan.Value) Head {
	if n := j.by[v]; n != nil && n.Op == plan.RMSNorm && j.uses[v] == 1 && n.Bias == nil && wholeRows(j.p, n) {
		return Head{Norm: n, In: n.In[0]}
	}
	return Head{In: v}
}

// take marks the nodes of heads as part of a stage.
func (j *joiner) take(heads ...Head) {
	for _, h := range heads {
		for _, n := range []*plan.Node{h.Norm, h.Rope} {
			if n != nil {
				j.taken[n] = true
			}
		}
	}
}

// beside adds to s, the stage of node i, the same operation of other inputs, and maps of the results.
func (j *joiner) beside(s *Stage, i int) {
	first := s.Nodes[0]
	for k := i + 1; k < len(j.p.Nodes) && len(s.Nodes) < j.Beside[first.Op]; k++ {
		m := &j.p.Nodes[k]
		if m.Op == first.Op && m.Layer == first.Layer && !j.taken[m] && !slices.ContainsFunc(m.In, func(v plan.Value) bool { return !j.ready[v] }) {
			s.Nodes, s.Maps = append(s.Nodes, m), append(s.Maps, nil)
		}
	}
	j.maps(s, i)
}

// maps marks the nodes of s, the stage of node i, as part of it, and adds the maps of their results.
func (j *joiner) maps(s *Stage, i int) {
	for k, n := range s.Nodes {
		j.taken[n] = true
		if m := j.reader(i, n.Out); m != nil && m.Op == plan.Map && j.Map != nil && j.Map(n, m, len(s.Nodes)) {
			s.Maps[k], j.taken[m] = m, true
		}
	}
}

// products adds to s what can be fused with node i, a product.
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
	j.maps(s, i)
	if len(s.Nodes) == 1 {
		j.addition(s, i)
		j.norm(s, i)
	}
}

// norm adds to s, the stage of node i, a norm of its output.
func (j *joiner) norm(s *Stage, i int) {
	for k := i + 1; k < len(j.p.Nodes) && j.Norm != nil; k++ {
		n := &j.p.Nodes[k]
		if n.Op == plan.RMSNorm && n.In[0] == s.Out() && !j.taken[n] && j.Norm(s.Nodes[0], n) {
			s.Norm, j.taken[n] = n, true
			return
		}
	}
}

// gate adds a GLU of the two products of s, if it is their only reader.
func (j *joiner) gate(s *Stage, i int) bool {
	gate, up := s.Nodes[0], s.Nodes[1]
	m := j.reader(i, gate.Out)
	if m == nil || m.Op != plan.GLU || gate.Weight.DType != up.Weight.DType || m.In[0] != gate.Out || m.In[1] != up.Out || j.uses[up.Out] != 1 ||
		j.p.Shapes[gate.Out] != j.p.Shapes[up.Out] || j.Gate == nil || !j.Gate(gate, m) {
		return false
	}
	s.GLU, j.taken[up], j.taken[m] = m, true, true
	return true
}

// addition adds to s, the stage of node i, the addition of its output and a value that earlier
// stages have written.
func (j *joiner) addition(s *Stage, i int) {
	if j.Add == nil || !j.Add(s.Nodes[0], s.Maps[0]) {
		return
	}
	v := s.Product(0)
	if m := j.reader(i, v); m != nil && m.Op == plan.Add && j.ready[other(m, v)] {
		s.Add, j.taken[m] = m, true
	}
}

// then fuses the elementwise operations that alone read the result of s.
func (j *joiner) then(s *Stage, i int) {
	for j.Then != nil && s.Add == nil {
		v := s.Out()
		m := j.reader(i, v)
		if m == nil || !j.elementwise(m, v) || !j.Then(s.Nodes[0], m, len(s.Then)) {
			return
		}
		s.Then, j.taken[m] = append(s.Then, m), true
	}
}

// elementwise reports whether each element of m's result depends on the same element of v, and of
// another value that is written before.
func (j *joiner) elementwise(m *plan.Node, v plan.Value) bool {
	switch m.Op {
	case plan.Map:
		return true
	case plan.Add:
		return j.ready[other(m, v)]
	case plan.GLU:
		return j.ready[other(m, v)] && j.p.Shapes[m.Out] == j.p.Shapes[v]
	}
	return false
}

// reader returns the only node that reads v, if it follows node i and is in no stage; otherwise
// nil.
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

// other returns the input of m that is not v.
func other(m *plan.Node, v plan.Value) plan.Value {
	input, _ := Operand(m, v)
	return m.In[input]
}

// Norms returns the RMS norms of whole rows of at most most columns whose readers can all normalize
// their input themselves, by their output.
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
		if n.Op != plan.RMSNorm || others[n.Out] || len(stages[i].Then) > 0 {
			continue
		}
		if wholeRows(p, n) && int(p.Shapes[n.Out][1]) <= most {
			norms[n.Out] = &stages[i]
		}
	}
	return norms
}

// wholeRows reports whether n, a norm, normalizes whole rows, with the order of sums of long rows: those
// of more than 128 columns, a multiple of 4.
func wholeRows(p *plan.Program, n *plan.Node) bool {
	cols := int(p.Shapes[n.Out][1])
	return n.Attr.(plan.NormAttr).Group == cols && cols%4 == 0 && cols > 128
}
