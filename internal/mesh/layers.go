package mesh

import (
	"errors"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Layers divides p into parts that run one after the other, one for each share, each of which has some
// of the layers. The bytes of weights of a part are its share of all, as nearly as can be. Results have
// the bits of p.
//
// A part but the last returns what the next one reads as the hidden states of all tokens, and the
// next one reads them as [plan.Input]. A state belongs to one part, and a head to the last one. A
// program with fewer layers than parts is cut between any of its nodes.
func Layers(p *plan.Program, shares []float64) ([]Part, error) {
	parts := len(shares)
	switch {
	case parts < 1:
		return nil, fmt.Errorf("mesh: %d parts of a program; want at least 1", parts)
	case p.Inputs > 0 && parts > 1:
		return nil, fmt.Errorf("mesh: a program with inputs in %d parts: %w", parts, errors.ErrUnsupported)
	}
	f := newFlow(p)
	cuts := f.cuts(p.Layers() >= parts)
	if len(cuts) < parts-1 {
		return nil, fmt.Errorf("mesh: a model of %d layers that can be cut in %d places, in %d parts; use fewer devices: %w", p.Layers(), len(cuts), parts, errors.ErrUnsupported)
	}
	bounds := append([]int{0}, append(balanced(f.bytes(), cuts, shares), len(p.Nodes))...)
	var all []Part
	for i := range parts {
		all = append(all, f.part(bounds[i], bounds[i+1]))
	}
	return all, nil
}

// A flow says between which nodes of a program the values and states go on.
type flow struct {
	p    *plan.Program
	by   []int // by value: the node that writes it
	last []int // by value: the last node that reads it; the number of nodes if it is an output
}

func newFlow(p *plan.Program) *flow {
	f := &flow{p: p, by: make([]int, len(p.Shapes)), last: make([]int, len(p.Shapes))}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		f.by[n.Out], f.last[n.Out] = i, i
		for _, v := range n.In {
			f.last[v] = i
		}
	}
	for _, v := range []plan.Value{p.Hidden, p.Logits} {
		if v >= 0 {
			f.last[v] = len(p.Nodes)
		}
	}
	return f
}

// across returns the values that nodes before node cut write and others read, in ascending order.
func (f *flow) across(cut int) (all []plan.Value) {
	for i := range cut {
		if v := f.p.Nodes[i].Out; f.last[v] >= cut {
			all = append(all, v)
		}
	}
	return all
}

// cuts returns the nodes before which p can be cut, in ascending order: what goes on has a row for
// each token, and no state is used on both sides. If layers is true, layers stay whole.
func (f *flow) cuts(layers bool) (all []int) {
	first, last := map[int]int{}, map[int]int{} // by state: the nodes that use it
	for i := range f.p.Nodes {
		for _, s := range f.p.Nodes[i].States() {
			if _, seen := first[s]; !seen {
				first[s] = i
			}
			last[s] = i
		}
	}
	end := len(f.p.Nodes)
	if f.p.Head != nil {
		end = f.p.Head.First
	}
	for cut := 1; cut < end; cut++ {
		if layers && f.p.Nodes[cut-1].Layer == f.p.Nodes[cut].Layer {
			continue
		}
		values := f.across(cut)
		narrow := !slices.ContainsFunc(values, func(v plan.Value) bool {
			s := f.p.Shapes[v]
			return s[0] != plan.Tokens || s[1] < 1
		})
		within := true
		for s := range first {
			within = within && (last[s] < cut || first[s] >= cut)
		}
		if narrow && within && len(values) > 0 {
			all = append(all, cut)
		}
	}
	return all
}

// bytes returns the bytes of the weights of each node that no node before it has.
func (f *flow) bytes() []int {
	all, seen := make([]int, len(f.p.Nodes)), map[*tensor.Tensor]bool{}
	for i := range f.p.Nodes {
		for _, w := range f.p.Nodes[i].Tensors() {
			if !seen[w] {
				seen[w] = true
				all[i] += w.Size()
			}
		}
	}
	return all
}

// balanced chooses a cut less than there are shares, so that the part with the most bytes for its share
// has as few as possible.
func balanced(bytes, cuts []int, shares []float64) []int {
	parts := len(shares)
	sums := []int{0}
	for _, n := range bytes {
		sums = append(sums, sums[len(sums)-1]+n)
	}
	ends := append(slices.Clone(cuts), len(bytes))
	// most[k][i] is the fewest bytes for its share of the largest of k+1 parts that end at ends[i];
	// from[k][i] is the end of the part before the last of them.
	most, from := make([][]float64, parts), make([][]int, parts)
	for k := range parts {
		most[k], from[k] = make([]float64, len(ends)), make([]int, len(ends))
		for i, end := range ends {
			most[k][i] = float64(sums[end]) / shares[k]
			for j := k - 1; k > 0 && j < i; j++ {
				if n := max(most[k-1][j], float64(sums[end]-sums[ends[j]])/shares[k]); j == k-1 || n < most[k][i] {
					most[k][i], from[k][i] = n, j
				}
			}
		}
	}
	chosen := make([]int, parts-1)
	for k, i := parts-1, len(ends)-1; k > 0; k-- {
		i = from[k][i]
		chosen[k-1] = ends[i]
	}
	return chosen
}

// part returns the part with nodes from to to.
func (f *flow) part(from, to int) Part {
	p := *f.p
	p.Nodes, p.Shapes, p.States, p.Head, p.Residual, p.Hidden, p.Logits = nil, nil, nil, nil, -1, -1, -1
	part := Part{Program: &p, origin: map[*tensor.Tensor]*tensor.Tensor{}, heads: make([]plan.Range, len(f.p.States))}
	values := make([]plan.Value, len(f.p.Shapes)) // by value of the whole program: that of the part
	add := func(n plan.Node, shape [2]plan.Dim) plan.Value {
		n.Out = plan.Value(len(p.Shapes))
		p.Nodes, p.Shapes = append(p.Nodes, n), append(p.Shapes, shape)
		return n.Out
	}
	for v := range values {
		values[v] = -1
	}
	if from > 0 {
		for _, v := range f.across(from) {
			a := plan.InputAttr{First: p.Inputs, Columns: int(f.p.Shapes[v][1]), Of: &f.p.Nodes[f.by[v]]}
			p.Inputs += a.Columns
			values[v] = add(plan.Node{Op: plan.Input, State: plan.NoState, Attr: a, Layer: plan.NoLayer}, f.p.Shapes[v])
		}
	}
	states := map[int]int{}
	first := 0 // node of the head
	for i := from; i < to; i++ {
		n := f.p.Nodes[i]
		if f.p.Head != nil && i == f.p.Head.First {
			first = len(p.Nodes)
		}
		for _, w := range n.Tensors() {
			part.origin[w] = w
		}
		ins := make([]plan.Value, len(n.In))
		for j, v := range n.In {
			ins[j] = values[v]
		}
		n.In = ins
		n.ReplaceStates(func(s int) int {
			at, seen := states[s]
			if !seen {
				at = len(p.States)
				states[s], p.States = at, append(p.States, f.p.States[s])
				part.heads[s] = plan.Range{Hi: max(1, f.p.States[s].KVHeads)}
			}
			return at
		})
		whole := n.Out
		values[whole] = add(n, f.p.Shapes[whole])
	}
	if to == len(f.p.Nodes) {
		outputs := map[*plan.Value]plan.Value{&p.Residual: f.p.Residual, &p.Hidden: f.p.Hidden, &p.Logits: f.p.Logits}
		if h := f.p.Head; h != nil {
			p.Head = &plan.Head{First: first, Residual: -1}
			outputs[&p.Head.Residual], outputs[&p.Head.Hidden], outputs[&p.Head.Logits] = h.Residual, h.Hidden, h.Logits
		}
		for of, v := range outputs {
			if v >= 0 {
				*of = values[v]
			}
		}
		return part
	}
	part.gives = true
	next := f.across(to)
	all := values[next[0]]
	p.Residual = all
	for _, v := range next[1:] {
		all = add(plan.Node{Op: plan.Concat, In: []plan.Value{all, values[v]}, State: plan.NoState, Layer: plan.NoLayer}, [2]plan.Dim{plan.Tokens, p.Shapes[all][1] + f.p.Shapes[v][1]})
	}
	all = add(plan.Node{Op: plan.Pick, In: []plan.Value{all}, State: plan.NoState, Attr: plan.PickAttr{}, Layer: plan.NoLayer}, [2]plan.Dim{plan.Rows, p.Shapes[all][1]})
	p.Hidden, p.Logits = all, all
	return part
}
