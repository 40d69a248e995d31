package mesh

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Part is what one device does of a program that several run together.
type Part struct {
	Program *plan.Program
	origin  map[*tensor.Tensor]*tensor.Tensor // the whole weight of each weight of Program
	heads   []plan.Range                      // by state of the whole program: its key/value heads; none if it has none of the state
	gives   bool                              // its hidden states are the input of the next part, see [Layers]
}

// Partition divides p into parts with the same nodes in the same order. Results have the bits of p.
//
// Most weights that a part has are some rows of the whole weight, so each sum is added as without
// parts, and [plan.Gather] joins columns where a node reads all of them. If sums is not nil, it
// reports for which weights the device can add the sums of parts that each have some columns, as many
// as the others, with the bits of one device. The output projections of attention and of feed-forward
// layers use that: the parts have the columns already, so one exchange of sums replaces two of
// columns.
//
//   - Products divide their rows, or their columns as above. Those of queries, keys and values are
//     divided by heads, and attention keeps the states of its own heads; with fewer key/value heads
//     than parts, several parts keep the same one.
//   - What stores keys and values for attention elsewhere, in a head, stores those of the part's heads.
//   - Experts divide the rows of all their weights, and gather the hidden rows inside of the node.
//   - What works on columns or heads apart (activations, gates, norms of heads, rotations) follows.
//   - All else is done by every part alike: embeddings, norms of rows, routers, products with few rows,
//     recurrent layers, sampling. So all parts choose the same tokens and tell each other nothing.
func Partition(p *plan.Program, parts int, sums func(w *tensor.Tensor) bool) ([]Part, error) {
	if parts < 1 {
		return nil, fmt.Errorf("mesh: %d parts of a program; want at least 1", parts)
	}
	d := &division{p: p, n: parts, sums: sums, wish: make([]plan.Cut, len(p.Shapes)), cuts: make([]plan.Cut, len(p.Shapes)), states: make([]plan.Cut, len(p.States)), stored: make([]plan.Cut, len(p.States))}
	d.wishes()
	for range parts {
		d.parts = append(d.parts, newWriter(p))
	}
	for i := range p.Nodes {
		if p.Head != nil && i == p.Head.First {
			d.beginHead()
		}
		if err := d.node(&p.Nodes[i]); err != nil {
			return nil, err
		}
	}
	return d.finish()
}

// A division is a program that is being divided.
type division struct {
	p      *plan.Program
	n      int
	sums   func(w *tensor.Tensor) bool
	wish   []plan.Cut // by value: the columns that nodes with heads and sums over columns want in each part; nil: any
	cuts   []plan.Cut // by value: the columns that each part has; nil: all
	states []plan.Cut // by state: the key/value heads that each part has; nil: the whole state
	stored []plan.Cut // by state: the key/value heads that the first attention that reads it wants in each part; nil: all
	parts  []*writer
}

// wishes finds the values that must be cut by heads: those of attention, and those from which they
// are computed by column, or which are computed with them. Inputs of products that can add sums are
// cut as these want it, if nothing else is wanted.
func (d *division) wishes() {
	for i := range d.p.Nodes {
		n := &d.p.Nodes[i]
		if q, ins := d.attention(n); q != nil {
			for j, v := range n.In {
				d.wish[v] = ins[j]
			}
			d.wish[n.Out] = q
			if n.State != plan.NoState && d.stored[n.State] == nil {
				a := n.Attr.(plan.AttentionAttr)
				_, d.stored[n.State] = attentionHeads(a.Heads, a.KVHeads, d.n)
			}
		}
	}
	for i := range d.p.Nodes {
		n := &d.p.Nodes[i]
		for j, c := range d.storing(n) {
			d.wish[n.In[j]] = c
		}
	}
	d.spread()
	for i := range d.p.Nodes {
		n := &d.p.Nodes[i]
		if c := d.summable(n); c != nil && d.wish[n.In[0]] == nil && d.wish[n.Out] == nil && d.gated(n.In[0]) {
			d.wish[n.In[0]] = c
		}
	}
	d.spread()
}

// summable returns the columns of the input of n of which the parts can add their sums; nil if n has
// no such sums.
func (d *division) summable(n *plan.Node) plan.Cut {
	if n.Op != plan.Linear || d.sums == nil || d.n == 1 || !d.sums(n.Weight) {
		return nil
	}
	cols := n.Weight.Cols()
	return even(cols, cols/d.n, d.n)
}

// gated reports whether v is the result of a GLU of two products of the same input.
func (d *division) gated(v plan.Value) bool {
	by := func(v plan.Value) *plan.Node {
		i := slices.IndexFunc(d.p.Nodes, func(n plan.Node) bool { return n.Out == v })
		return &d.p.Nodes[i]
	}
	glu := by(v)
	if glu.Op != plan.GLU {
		return false
	}
	for _, in := range glu.In {
		if n := by(in); n.Op != plan.Linear || n.In[0] != by(glu.In[0]).In[0] {
			return false
		}
	}
	return true
}

// spread gives the wishes for values to those that are computed from the same columns.
func (d *division) spread() {
	for more := true; more; {
		more = false
		for i := range d.p.Nodes {
			n := &d.p.Nodes[i]
			if unitOf(d.p, n) == 0 {
				continue
			}
			all := append(d.columnwise(n), n.Out)
			from := slices.IndexFunc(all, func(v plan.Value) bool { return d.wish[v] != nil })
			for _, v := range all {
				if from >= 0 && d.wish[v] == nil {
					d.wish[v], _ = scaled(d.wish[all[from]], d.cols(v), d.cols(all[from]))
					more = more || d.wish[v] != nil
				}
			}
		}
	}
}

// cols returns the number of columns of v in the whole program.
func (d *division) cols(v plan.Value) int { return int(d.p.Shapes[v][1]) }

// columnwise returns the inputs of n of which it reads some columns for some columns of its result.
// An input of one column is read for all.
func (d *division) columnwise(n *plan.Node) []plan.Value {
	var all []plan.Value
	for _, v := range n.In {
		if d.cols(v) > 1 {
			all = append(all, v)
		}
	}
	return all
}

// attention returns the cuts of an attention node's result and of its inputs; nil if it is another
// node or cannot be divided.
func (d *division) attention(n *plan.Node) (out plan.Cut, in []plan.Cut) {
	a, ok := n.Attr.(plan.AttentionAttr)
	if !ok || n.Op != plan.Attention && n.Op != plan.Bidirectional {
		return nil, nil
	}
	q, kv := attentionHeads(a.Heads, a.KVHeads, d.n)
	if q == nil || a.KVHeads > 1 && (a.Top > 0 || a.Rate > 0) {
		return nil, nil // the states of chosen rows are whole, and pages hold both
	}
	out, _ = scaled(q, a.Values(), 1)
	for i, v := range n.In {
		switch c := d.cols(v); {
		case i == 0:
			in = append(in, scaledBy(q, a.HeadDim))
		case v == n.Chosen():
			in = append(in, entire(c, d.n))
		default:
			in = append(in, scaledBy(kv, c/a.KVHeads))
		}
	}
	return out, in
}

func scaledBy(c plan.Cut, by int) plan.Cut {
	to, _ := scaled(c, by, 1)
	return to
}

// has reports whether the parts have v cut by c, or all of it if c is all.
func (d *division) has(v plan.Value, c plan.Cut) bool {
	return slices.Equal(d.cut(v), c)
}

// cut returns the columns of v that each part has.
func (d *division) cut(v plan.Value) plan.Cut {
	if d.cuts[v] == nil {
		return entire(d.cols(v), d.n)
	}
	return d.cuts[v]
}

// node adds n to all parts.
func (d *division) node(n *plan.Node) error {
	switch {
	case n.Op == plan.Linear:
		return d.linear(n)
	case n.Op == plan.Experts:
		return d.experts(n)
	case n.Op == plan.Attention || n.Op == plan.Bidirectional:
		return d.attend(n)
	case n.Op == plan.Store:
		return d.store(n)
	case unitOf(d.p, n) > 0:
		return d.elementwise(n)
	}
	d.whole(n)
	return nil
}

// whole adds a node that every part does alike.
func (d *division) whole(n *plan.Node) {
	for _, v := range n.In {
		d.gather(v, n.Layer)
	}
	for _, w := range d.parts {
		w.add(*n, w.all(n.In), entire(d.cols(n.Out), 1)[0])
	}
}

// gather makes v whole in every part.
func (d *division) gather(v plan.Value, layer int) {
	for _, w := range d.parts {
		if c := d.cuts[v]; c != nil && w.full[v] < 0 {
			n := plan.Node{Op: plan.Gather, State: plan.NoState, Attr: plan.GatherAttr{Columns: c}, Layer: layer, Out: v}
			own := w.own[v]
			w.add(n, []plan.Value{own}, plan.Range{Hi: d.cols(v)})
			w.full[v], w.own[v] = w.own[v], own
		}
	}
}

// result notes how the parts have a node's result. A cut that gives everything to everyone is none.
func (d *division) result(v plan.Value, c plan.Cut) {
	if !slices.Equal(c, entire(d.cols(v), d.n)) {
		d.cuts[v] = c
		for _, w := range d.parts {
			w.full[v] = -1
		}
	}
}

// cutUnit is the number of rows of weights that products are cut by: a tile on a GPU.
const cutUnit = 16

// linear divides the rows of a product. A product with few rows for its columns is not worth an
// exchange, unless its result is wanted in parts.
func (d *division) linear(n *plan.Node) error {
	rows, c := n.Weight.Rows(), d.wish[n.Out]
	if own := d.summable(n); own != nil && c == nil && d.has(n.In[0], own) {
		d.sum(n, own)
		return nil
	}
	if c == nil && rows*8 > n.Weight.Cols() {
		c = even(rows, cutUnit, d.n)
	}
	if c == nil {
		d.whole(n)
		return nil
	}
	if err := divisible(n.Bias, c); err != nil {
		return err
	}
	d.gather(n.In[0], n.Layer)
	for i, w := range d.parts {
		m := *n
		m.Weight, m.Bias = w.take(n.Weight, c[i]), w.take(n.Bias, c[i])
		w.add(m, w.all(n.In), c[i])
	}
	d.result(n.Out, c)
	return nil
}

// sum adds a product of which each part has some columns.
func (d *division) sum(n *plan.Node, c plan.Cut) {
	for i, w := range d.parts {
		m := *n
		m.Weight, m.Attr = w.takeColumns(n.Weight, c[i]), plan.LinearAttr{Columns: c}
		w.add(m, []plan.Value{w.own[n.In[0]]}, plan.Range{Hi: d.cols(n.Out)})
	}
}

// hiddenUnit is the number of hidden rows that experts are cut by: a tile of the processor, and a
// block of rounded activations.
const hiddenUnit = 32

// experts divides the rows of all experts' weights.
func (d *division) experts(n *plan.Node) error {
	a := n.Attr.(plan.ExpertsAttr)
	hidden, out := even(a.Gate[0].Rows(), hiddenUnit, d.n), even(d.cols(n.Out), hiddenUnit, d.n)
	if hidden == nil || out == nil || a.Identity > 0 {
		d.whole(n)
		return nil
	}
	for _, v := range n.In {
		d.gather(v, n.Layer)
	}
	for i, w := range d.parts {
		m, b := *n, a
		b.Hidden = hidden
		for _, list := range []struct {
			of *[]*tensor.Tensor
			plan.Cut
		}{{&b.Gate, hidden}, {&b.Up, hidden}, {&b.Down, out}, {&b.GateBias, hidden}, {&b.UpBias, hidden}, {&b.DownBias, out}} {
			*list.of = slices.Clone(*list.of)
			for j, t := range *list.of {
				if err := divisible(t, list.Cut); err != nil {
					return err
				}
				(*list.of)[j] = w.take(t, list.Cut[i])
			}
		}
		m.Attr = b
		w.add(m, w.all(n.In), out[i])
	}
	d.result(n.Out, out)
	return nil
}

// attend divides the heads of attention, if its inputs are divided by them. A state is divided as
// the first node that uses it.
func (d *division) attend(n *plan.Node) error {
	a := n.Attr.(plan.AttentionAttr)
	out, in := d.attention(n)
	for i, v := range n.In {
		if out != nil && !d.has(v, in[i]) {
			if !slices.Equal(in[i], entire(d.cols(v), d.n)) {
				out = nil
				break
			}
			d.gather(v, n.Layer)
		}
	}
	q, kv := attentionHeads(a.Heads, a.KVHeads, d.n)
	if out == nil {
		kv = entire(a.KVHeads, d.n)
	}
	if n.State != plan.NoState {
		if err := d.keep(n, kv); err != nil {
			return err
		}
	}
	if out == nil {
		d.whole(n)
		return nil
	}
	if err := divisible(n.Weight, q); err != nil {
		return err
	}
	for i, w := range d.parts {
		m, b := *n, a
		b.Heads, b.KVHeads = q[i].Len(), kv[i].Len()
		m.Attr, m.Weight = b, w.take(n.Weight, q[i])
		ins := slices.Clone(w.own[:0:0])
		for j, v := range n.In {
			if slices.Equal(in[j], entire(d.cols(v), d.n)) {
				ins = append(ins, w.full[v])
			} else {
				ins = append(ins, w.own[v])
			}
		}
		w.add(m, ins, out[i])
	}
	d.result(n.Out, out)
	return nil
}

// keep notes the heads of its state that n has in each part.
func (d *division) keep(n *plan.Node, kv plan.Cut) error {
	if had := d.states[n.State]; had != nil && !slices.Equal(had, kv) {
		return fmt.Errorf("mesh: %s: the layers that share state %s cannot be divided alike into %d parts; use --split layers or fewer devices", n.Where(), d.p.States[n.State].Name, d.n)
	}
	d.states[n.State] = kv
	return nil
}

// storing returns the cuts of the inputs of n if it stores keys and values that attention reads by
// heads, or nil.
func (d *division) storing(n *plan.Node) (in []plan.Cut) {
	if n.Op != plan.Store || d.stored[n.State] == nil {
		return nil
	}
	for _, v := range n.In {
		in = append(in, scaledBy(d.stored[n.State], d.cols(v)/d.p.States[n.State].KVHeads))
	}
	return in
}

// store divides keys and values that are stored by heads, if attention reads them so.
func (d *division) store(n *plan.Node) error {
	in := d.storing(n)
	fits := in != nil
	for i, v := range n.In {
		fits = fits && d.has(v, in[i])
	}
	if !fits {
		d.whole(n)
		return d.keep(n, entire(d.p.States[n.State].KVHeads, d.n))
	}
	for _, w := range d.parts {
		ins := make([]plan.Value, len(n.In))
		for i, v := range n.In {
			ins[i] = w.own[v]
		}
		w.add(*n, ins, plan.Range{})
	}
	return d.keep(n, d.stored[n.State])
}

// elementwise adds a node that works on columns apart, on the columns that each part has if those of
// its inputs fit together.
func (d *division) elementwise(n *plan.Node) error {
	ins, unit := d.columnwise(n), unitOf(d.p, n)
	var c plan.Cut
	for i, v := range ins {
		own, ok := scaled(d.cuts[v], d.cols(n.Out), d.cols(v))
		if d.cuts[v] == nil || !ok || !aligned(own, unit) || i > 0 && !slices.Equal(own, c) {
			d.whole(n)
			return nil
		}
		c = own
	}
	if c == nil {
		d.whole(n)
		return nil
	}
	for _, v := range n.In {
		if d.cols(v) == 1 {
			d.gather(v, n.Layer)
		}
	}
	sliced := n.Weight != nil && n.Weight.Elems() == d.cols(n.Out)
	if sliced {
		for _, w := range []*tensor.Tensor{n.Weight, n.Bias} {
			if err := divisible(w, c); err != nil {
				return err
			}
		}
	}
	for i, w := range d.parts {
		m, ins := *n, slices.Clone(w.own[:0:0])
		for _, v := range n.In {
			if d.cols(v) == 1 {
				ins = append(ins, w.full[v])
			} else {
				ins = append(ins, w.own[v])
			}
		}
		if sliced {
			m.Weight, m.Bias = w.take(n.Weight, c[i]), w.take(n.Bias, c[i])
		}
		if a, ok := n.Attr.(plan.HeadLinearAttr); ok {
			a.Weight = a.Weight[c[i].Lo/unit : c[i].Hi/unit]
			for _, t := range a.Weight {
				w.origin[t] = t
			}
			m.Attr = a
		}
		w.add(m, ins, c[i])
	}
	d.result(n.Out, c)
	return nil
}

// unitOf returns how many columns of its result a node computes from the same share of the columns
// of its inputs alone: 1 for what works on elements, the width of a head for what works on heads, 0
// for a node that needs whole rows.
func unitOf(p *plan.Program, n *plan.Node) int {
	cols := int(p.Shapes[n.Out][1])
	if cols == 1 {
		return 0
	}
	switch n.Op {
	case plan.Add, plan.Mul, plan.Map, plan.Temper, plan.Pick:
		return 1
	case plan.GLU:
		if gate := int(p.Shapes[n.In[0]][1]); gate > 1 {
			return cols / gate
		}
		return 1
	case plan.Rope:
		return n.Attr.(plan.RopeAttr).HeadDim
	case plan.RMSNorm, plan.LayerNorm:
		if g := n.Attr.(plan.NormAttr).Group; g < cols {
			return g
		}
	case plan.HeadLinear:
		a := n.Attr.(plan.HeadLinearAttr)
		return a.Out() + a.Kept
	}
	return 0
}

// outputs makes the outputs whole of steps with that [plan.Batch.Head].
func (d *division) outputs(head bool) {
	residual, hidden, logits := d.p.Outputs(head)
	for _, v := range []plan.Value{residual, hidden, logits} {
		if v >= 0 {
			d.gather(v, plan.NoLayer)
		}
	}
}

// beginHead ends the first part of a program with a head.
func (d *division) beginHead() {
	d.outputs(false)
	for _, w := range d.parts {
		w.head = len(w.to.Nodes)
	}
}

// finish makes the outputs whole and returns the parts.
func (d *division) finish() ([]Part, error) {
	d.outputs(d.p.Head != nil)
	var all []Part
	for i, w := range d.parts {
		p, heads := w.program(), make([]plan.Range, len(d.p.States))
		for s, state := range p.States {
			heads[s] = plan.Range{Hi: state.KVHeads}
			if c := d.states[s]; c != nil {
				heads[s] = c[i]
				p.States[s].KVHeads = c[i].Len()
			}
		}
		all = append(all, Part{Program: p, origin: w.origin, heads: heads})
	}
	return all, nil
}

// A writer writes the program of one part.
type writer struct {
	of        *plan.Program
	to        plan.Program
	own, full []plan.Value // by value of the whole program: what the part has of it, and the whole; -1: none
	head      int          // the first node of the program's head
	pieces    map[piece]*tensor.Tensor
	origin    map[*tensor.Tensor]*tensor.Tensor
}

func newWriter(p *plan.Program) *writer {
	w := &writer{of: p, to: *p, pieces: map[piece]*tensor.Tensor{}, origin: map[*tensor.Tensor]*tensor.Tensor{}}
	w.to.Nodes, w.to.Shapes, w.to.States = nil, nil, slices.Clone(p.States)
	for range p.Shapes {
		w.own, w.full = append(w.own, -1), append(w.full, -1)
	}
	return w
}

// take returns some rows of a matrix or elements of a vector; nil if t is nil.
func (w *writer) take(t *tensor.Tensor, r plan.Range) *tensor.Tensor {
	if t == nil {
		return nil
	}
	if r == (plan.Range{Hi: t.Shape[0]}) {
		w.origin[t] = t
		return t
	}
	return w.piece(piece{t, r, false})
}

// takeColumns returns some columns of a matrix.
func (w *writer) takeColumns(t *tensor.Tensor, r plan.Range) *tensor.Tensor {
	return w.piece(piece{t, r, true})
}

func (w *writer) piece(at piece) *tensor.Tensor {
	if w.pieces[at] == nil {
		w.pieces[at] = at.take()
		w.origin[w.pieces[at]] = at.of
	}
	return w.pieces[at]
}

// all returns the whole values of in.
func (w *writer) all(in []plan.Value) []plan.Value {
	var vs []plan.Value
	for _, v := range in {
		vs = append(vs, w.full[v])
	}
	return vs
}

// add adds a node that computes columns c of its result.
func (w *writer) add(n plan.Node, in []plan.Value, c plan.Range) {
	for _, t := range n.Tensors() {
		if w.origin[t] == nil {
			w.origin[t] = t
		}
	}
	whole, out := n.Out, plan.Value(len(w.to.Shapes))
	n.In, n.Out = in, out
	w.to.Nodes = append(w.to.Nodes, n)
	w.to.Shapes = append(w.to.Shapes, [2]plan.Dim{w.of.Shapes[whole][0], plan.Dim(c.Len())})
	w.own[whole], w.full[whole] = out, out
}

// program returns the finished program.
func (w *writer) program() *plan.Program {
	p := w.to
	outputs := []*plan.Value{&p.Residual, &p.Hidden, &p.Logits}
	if p.Head != nil {
		h := *p.Head
		p.Head, h.First = &h, w.head
		outputs = append(outputs, &h.Residual, &h.Hidden, &h.Logits)
	}
	for _, v := range outputs {
		if *v >= 0 {
			*v = w.full[*v]
		}
	}
	return &p
}

// Weights returns the bytes of p's weights as they are stored.
func (p *Part) Weights() int {
	n := 0
	for w := range p.origin {
		n += w.Size()
	}
	return n
}
