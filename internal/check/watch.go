package check

import (
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A watch compares the values that a device writes with what the reference computes from the
// device's own values, so that a fault in one operation does not appear in later ones. For values
// that the device does not show, the reference uses its own.
type watch struct {
	program   *plan.Program
	reference Reference
	seen      func(nodes []*plan.Node, drift float64)
	by        []int // by value: the node that computes it
	readers   []int // by value: how many nodes read it

	// The current step.
	batch   *plan.Batch
	done    []bool        // by node: the reference has run it
	own     []bool        // by value: it is the reference's own
	left    []int         // by value: number of nodes still to read it
	err     error         // of the reference
	drifted []*DriftError // by sequence: its first error
}

func newWatch(p *plan.Program, r Reference, seen func(nodes []*plan.Node, drift float64)) *watch {
	w := &watch{
		program: p, reference: r, seen: seen, by: make([]int, len(p.Shapes)), readers: make([]int, len(p.Shapes)),
		done: make([]bool, len(p.Nodes)), own: make([]bool, len(p.Shapes)),
	}
	for i := range p.Nodes {
		w.by[p.Nodes[i].Out] = i
		for _, v := range p.Nodes[i].In {
			w.readers[v]++
		}
	}
	return w
}

// begin begins a step.
func (w *watch) begin(b *plan.Batch, tokens []int32) error {
	w.batch, w.err = b, nil
	clear(w.done)
	clear(w.own)
	w.left = append(w.left[:0], w.readers...)
	w.drifted = make([]*DriftError, b.Seqs())
	return w.reference.Begin(b, tokens)
}

// observe compares x, the device's value of v. If operations have already read the reference's own
// value, x is ignored.
func (w *watch) observe(v plan.Value, x []float32) {
	if w.err != nil || w.done[w.by[v]] {
		return
	}
	var nodes []*plan.Node
	if w.err = w.run(w.by[v], &nodes); w.err != nil {
		return
	}
	w.compare(v, x, nodes)
	w.reference.Set(v, x)
	w.own[v] = false
	w.dropRead(v)
}

// run runs node i on the reference, after those of its inputs that were not observed. It appends to
// nodes, in order, all nodes that contributed to the value since the last observed values.
func (w *watch) run(i int, nodes *[]*plan.Node) error {
	n := &w.program.Nodes[i]
	w.done[i] = true
	for _, v := range n.In {
		from := w.by[v]
		switch {
		case !w.done[from]:
			if err := w.run(from, nodes); err != nil {
				return err
			}
		case w.own[v]:
			w.trace(from, nodes)
		}
	}
	if err := w.reference.Run(n); err != nil {
		return err
	}
	w.own[n.Out] = true
	*nodes = append(*nodes, n)
	for j, v := range n.In {
		if !slices.Contains(n.In[:j], v) {
			w.left[v] -= count(n.In, v)
			w.dropRead(v)
		}
	}
	return nil
}

// trace appends to nodes node i, which the reference has run, after the nodes of its inputs that
// were not observed.
func (w *watch) trace(i int, nodes *[]*plan.Node) {
	n := &w.program.Nodes[i]
	if slices.Contains(*nodes, n) {
		return
	}
	for _, v := range n.In {
		if w.own[v] {
			w.trace(w.by[v], nodes)
		}
	}
	*nodes = append(*nodes, n)
}

func count(list []plan.Value, v plan.Value) (n int) {
	for _, x := range list {
		if x == v {
			n++
		}
	}
	return n
}

// dropRead drops v after its last reader has run.
func (w *watch) dropRead(v plan.Value) {
	if w.left[v] == 0 {
		w.reference.Drop(v)
	}
}

// compare records, for each sequence, the first element beyond its bound.
func (w *watch) compare(v plan.Value, x []float32, nodes []*plan.Node) {
	columns, worst := int(w.program.Shapes[v][1]), 0.0
	for r := range w.reference.Rows(v) {
		want, bound := w.reference.Row(v, r)
		for c, got := range x[r*columns:][:columns] {
			if got == want[c] {
				continue
			}
			drift := math.Abs(float64(got)-float64(want[c])) / float64(bound[c])
			if math.IsNaN(float64(bound[c])) || drift <= 1 {
				worst = max(worst, drift)
				continue
			}
			if math.IsNaN(drift) {
				drift = math.Inf(1)
			}
			worst = max(worst, drift)
			token := r
			if w.program.Shapes[v][0] == plan.Rows {
				token = int(w.batch.Rows[r].Token)
			}
			if seq := sequenceOf(w.batch, token); w.drifted[seq] == nil {
				w.drifted[seq] = &DriftError{
					Nodes: nodes, Position: int(w.batch.Positions[token]), Row: r, Column: c,
					Value: got, Reference: want[c], Bound: bound[c],
				}
			}
			break
		}
	}
	if w.seen != nil {
		w.seen(nodes, worst)
	}
}

// finish runs the remaining nodes on the reference, so that its states are complete.
func (w *watch) finish() error {
	for i := range w.program.Nodes {
		if w.err == nil && !w.done[i] && w.program.Runs(i, w.batch.Head) {
			var nodes []*plan.Node
			w.err = w.run(i, &nodes)
			w.dropRead(w.program.Nodes[i].Out)
		}
	}
	return w.err
}
