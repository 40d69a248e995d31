package cuda

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A stage is what one or two launches do: a node, or several that are joined.
//
// Joining changes no bit of a result. A layer's products of one input and one format are
// one launch; the product of a gate, of an activation, of a scale and of an addition is not
// written out before these are done; heads are normalised and turned where keys and values
// are stored; the rows that are wanted are picked where they are normalised.
type stage struct {
	nodes []*plan.Node // of one kind; the products, where there are several
	glu   *plan.Node   // nil, or of the first product and the second; or the activation of the only one
	scale *plan.Node   // nil, or of the product
	add   *plan.Node   // nil, or of the product, its scale, or the experts and something else
	pick  *plan.Node   // nil, or what the norm reads
	q, k  head         // of attention: what is done before
}

// A head is what happens to queries or keys between their product and attention.
type head struct {
	in   plan.Value
	norm *plan.Node // nil, or an RMS norm of each head
	rope *plan.Node // nil, or the rope
}

// single are stages of one node each.
func single(p *plan.Program) []stage {
	all := make([]stage, len(p.Nodes))
	for i := range p.Nodes {
		all[i] = stage{nodes: []*plan.Node{&p.Nodes[i]}}
		all[i].heads()
	}
	return all
}

// heads sets what attention reads where nothing is joined to it.
func (s *stage) heads() {
	if n := s.nodes[0]; n.Op == plan.Attention {
		s.q, s.k = head{in: n.In[0]}, head{in: n.In[1]}
	}
}

// A joiner makes stages of a program.
type joiner struct {
	p      *plan.Program
	lim    *plan.Limits
	uses   []int        // by value
	by     []*plan.Node // by value: the node that writes it
	taken  map[*plan.Node]bool
	ready  []bool // values of the stages so far
	stages []stage
}

func join(p *plan.Program, lim *plan.Limits) []stage {
	j := &joiner{
		p: p, lim: lim, uses: make([]int, len(p.Shapes)), by: make([]*plan.Node, len(p.Shapes)),
		taken: map[*plan.Node]bool{}, ready: make([]bool, len(p.Shapes)),
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		j.by[n.Out] = n
		for _, v := range n.In {
			j.uses[v]++
		}
	}
	for _, v := range []plan.Value{p.Residual, p.Hidden, p.Logits} {
		if v >= 0 {
			j.uses[v]++
		}
	}
	j.absorb()
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if j.taken[n] {
			continue
		}
		s := stage{nodes: []*plan.Node{n}}
		switch n.Op {
		case plan.Linear:
			j.products(&s, i)
		case plan.Experts:
			j.addition(&s, i, n.Out)
		case plan.Attention:
			s.q, s.k = j.chain(n.In[0], n), j.chain(n.In[1], n)
		case plan.RMSNorm, plan.LayerNorm:
			if pick := j.by[n.In[0]]; pick != nil && pick.Op == plan.Pick && j.taken[pick] {
				s.pick = pick
			}
		}
		for _, v := range s.io().Out {
			j.ready[v] = true
		}
		j.stages = append(j.stages, s)
	}
	return j.stages
}

// absorb takes the nodes that stages after them will do.
func (j *joiner) absorb() {
	for i := range j.p.Nodes {
		n := &j.p.Nodes[i]
		switch n.Op {
		case plan.Attention:
			for _, v := range n.In[:2] {
				h := j.chain(v, n)
				for _, m := range []*plan.Node{h.norm, h.rope} {
					if m != nil {
						j.taken[m] = true
					}
				}
			}
		case plan.RMSNorm, plan.LayerNorm:
			if pick := j.by[n.In[0]]; pick != nil && pick.Op == plan.Pick && !picksMean(pick) && j.uses[pick.Out] == 1 {
				j.taken[pick] = true
			}
		}
	}
}

// chain follows v, an input of attention, back to what it is made of. A value that
// is read elsewhere too is left as it is.
func (j *joiner) chain(v plan.Value, attention *plan.Node) head {
	h := head{in: v}
	a := attention.Attr.(plan.AttentionAttr)
	if n := j.by[h.in]; n != nil && n.Op == plan.Rope && j.uses[h.in] == 1 && n.Attr.(plan.RopeAttr).HeadDim == a.HeadDim {
		h.rope, h.in = n, n.In[0]
	}
	if n := j.by[h.in]; n != nil && n.Op == plan.RMSNorm && j.uses[h.in] == 1 && n.Attr.(plan.NormAttr).Group == a.HeadDim && h.rope != nil {
		h.norm, h.in = n, n.In[0]
	}
	if j.uses[h.in] != 1 { // it is turned where it lies
		return head{in: v}
	}
	return h
}

// products gathers what node i, a product, can be done with.
func (j *joiner) products(s *stage, i int) {
	first := &j.p.Nodes[i]
	var same []*plan.Node
	for k := i + 1; k < len(j.p.Nodes); k++ {
		if m := &j.p.Nodes[k]; !j.taken[m] && m.Op == plan.Linear && m.Layer == first.Layer && m.In[0] == first.In[0] && m.Weight.DType == first.Weight.DType {
			same = append(same, m)
		}
	}
	if arithmetic(first, j.lim) != inFloats && len(same) == 1 && same[0].Weight.Rows() == first.Weight.Rows() {
		for k := i + 1; k < len(j.p.Nodes); k++ {
			m := &j.p.Nodes[k]
			if m.Op == plan.GLU && m.In[0] == first.Out && m.In[1] == same[0].Out && j.uses[first.Out] == 1 && j.uses[same[0].Out] == 1 {
				s.nodes, s.glu = append(s.nodes, same[0]), m
				j.taken[same[0]], j.taken[m] = true, true
				return
			}
		}
	}
	for _, m := range same {
		if len(s.nodes) == maxProducts {
			break
		}
		s.nodes = append(s.nodes, m)
		j.taken[m] = true
	}
	if len(s.nodes) > 1 {
		return
	}
	if m := j.reader(i, first.Out); m != nil && m.Op == plan.Map {
		switch m.Attr.(plan.MapAttr).Func {
		case plan.Activate:
			if arithmetic(first, j.lim) != inFloats {
				s.glu, j.taken[m] = m, true
			}
			return
		case plan.Scale:
			s.scale, j.taken[m] = m, true
		}
	}
	j.addition(s, i, s.product())
}

// reader is the only node that reads v, which node i or one joined to it writes; nil
// where there are several.
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

// addition joins the addition of v, which node i writes, and of what is there by then.
func (j *joiner) addition(s *stage, i int, v plan.Value) {
	if m := j.reader(i, v); m != nil && m.Op == plan.Add && j.ready[otherInput(m, v)] {
		s.add, j.taken[m] = m, true
	}
}

// picksMean reports whether n picks means rather than rows.
func picksMean(n *plan.Node) bool {
	a, ok := n.Attr.(plan.PickAttr)
	return ok && a.Mean
}

// maxProducts is how many products a launch takes.
const maxProducts = 4

// otherInput is what an addition adds to v.
func otherInput(add *plan.Node, v plan.Value) plan.Value {
	if add.In[0] == v {
		return add.In[1]
	}
	return add.In[0]
}

// product is what the stage's only node makes, scaled.
func (s *stage) product() plan.Value {
	if s.scale != nil {
		return s.scale.Out
	}
	return s.nodes[0].Out
}

// all are the stage's nodes.
func (s *stage) all() []*plan.Node {
	nodes := []*plan.Node{s.pick, s.q.norm, s.q.rope, s.k.norm, s.k.rope}
	nodes = append(append(nodes, s.nodes...), s.glu, s.scale, s.add)
	return slices.DeleteFunc(nodes, func(n *plan.Node) bool { return n == nil })
}

// residual is what the stage adds its product to.
func (s *stage) residual() plan.Value { return otherInput(s.add, s.product()) }

// out is what the stage writes, its only result unless it has several products.
func (s *stage) out() plan.Value {
	switch {
	case s.glu != nil:
		return s.glu.Out
	case s.add != nil:
		return s.add.Out
	}
	return s.product()
}

// inputs are the values that the stage reads.
func (s *stage) inputs() []plan.Value {
	n := s.nodes[0]
	switch {
	case n.Op == plan.Attention:
		return []plan.Value{s.q.in, s.k.in, n.In[2]}
	case s.pick != nil:
		return s.pick.In
	case s.add != nil:
		return append(slices.Clone(n.In), s.residual())
	}
	return n.In
}

// io are the values that the stage reads and writes.
func (s *stage) io() plan.Stage {
	st := plan.Stage{In: s.inputs(), Out: []plan.Value{s.out()}}
	if s.glu == nil && len(s.nodes) > 1 {
		for _, n := range s.nodes[1:] {
			st.Out = append(st.Out, n.Out)
		}
	}
	return st
}

// A kind is a form in which products read their input.
type kind uint8

const (
	inFloats kind = iota
	inBytes
	inBF16
	inF16
	kinds
)

// arithmetic is how a product is computed: by its weight's format and by what
// activations the limits ask for, never by the size of a step.
func arithmetic(n *plan.Node, lim *plan.Limits) kind { return arithmeticOf(n.Weight, lim) }

func arithmeticOf(w *tensor.Tensor, lim *plan.Limits) kind {
	switch d := laidAs(w.DType, lim); {
	case lim.Activations != tensor.Q8_0 || d == tensor.F32:
		return inFloats
	case d == tensor.BF16:
		return inBF16
	case d == tensor.F16:
		return inF16
	}
	return inBytes
}
