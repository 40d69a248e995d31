package cpu

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A code is a program cut into stages, with their scratch memory.
type code struct {
	stages    []fuse.Stage
	head      int // the first stage of the program's head
	scratch   *plan.Scratch
	quantized []bool     // by value: written to a record, for products
	unread    []bool     // by value: only its record is read
	kernels   [][]kernel // by stage

	buffers   [][]float32 // by buffer of scratch
	records   [][]byte    // by buffer; nil if none of its values has a record
	rotations map[string]*rotations
}

// inRecords reports whether a weight is multiplied with records instead of float32.
func (b *Backend) inRecords(w *tensor.Tensor, lim *plan.Limits) bool {
	return b.products && lim.Activations == tensor.Q8_0 && blockFormats[w.DType] != nil
}

// product reports whether a node multiplies records and can be fused with others.
func (b *Backend) product(n *plan.Node, lim *plan.Limits) bool {
	return operationOf(n).joins() && b.inRecords(n.Weight, lim)
}

// rules returns the rules for fusing: any number of products of one input, and operations on their
// results.
func (b *Backend) rules(lim *plan.Limits) fuse.Rules {
	product := func(n *plan.Node) bool { return b.product(n, lim) }
	return fuse.Rules{
		Product:  product,
		Together: func(_, _ *plan.Node) bool { return true },
		Gate:     func(_, _ *plan.Node) bool { return true },
		Map:      func(_, _ *plan.Node, _ int) bool { return true },
		Add:      func(n, _ *plan.Node) bool { return product(n) },
	}
}

// reads reports in which forms a node reads its first input.
func (b *Backend) reads(n *plan.Node, lim *plan.Limits) (records, floats bool) {
	all := operationOf(n).multiplies(n)
	for _, w := range all {
		in := b.inRecords(w, lim)
		records, floats = records || in, floats || !in
	}
	return records, floats || len(all) == 0
}

// layout cuts p into stages and places its values, without allocating memory. If apart, every node
// is a stage of its own and every value is written as float32, as values to observe must be.
func (b *Backend) layout(p *plan.Program, lim *plan.Limits, apart bool) *code {
	c := &code{quantized: make([]bool, len(p.Shapes))}
	if c.stages = fuse.Single(p); b.passes && !apart {
		c.stages = b.rules(lim).Stages(p)
	}
	c.head = fuse.HeadOf(p, c.stages)
	io := make([]plan.Stage, len(c.stages))
	for i := range c.stages {
		io[i] = c.stages[i].IO()
	}
	c.scratch = plan.PlanScratch(p, io)
	for i := range p.Nodes {
		if records, _ := b.reads(&p.Nodes[i], lim); records {
			c.quantized[p.Nodes[i].In[0]] = true
		}
	}
	c.unread = slices.Clone(c.quantized)
	for i := range p.Nodes {
		_, floats := b.reads(&p.Nodes[i], lim)
		for j, v := range p.Nodes[i].In {
			c.unread[v] = c.unread[v] && j == 0 && !floats
		}
	}
	for _, v := range p.Kept() {
		c.unread[v] = false
	}
	if apart || lim.Observed {
		clear(c.unread)
	}
	return c
}

// recordWidths returns the number of values of a record in each buffer; 0 for none.
func (c *code) recordWidths(p *plan.Program) []int {
	widths := make([]int, len(c.scratch.Widths))
	for v, q := range c.quantized {
		if b := c.scratch.Buffer[v]; q && b >= 0 {
			widths[b] = max(widths[b], int(p.Shapes[v][1]))
		}
	}
	return widths
}

// bytes returns the size of what allocate allocates.
func (c *code) bytes(p *plan.Program, lim *plan.Limits) int {
	n := c.scratch.Bytes(lim, rowStride)
	for b, w := range c.recordWidths(p) {
		n += lim.Size(c.scratch.Dims[b]) * recordStride(w)
	}
	return n
}

func (c *code) allocate(p *plan.Program, lim *plan.Limits) {
	for i, w := range c.scratch.Widths {
		c.buffers = append(c.buffers, make([]float32, rowStride(w)*lim.Size(c.scratch.Dims[i])))
	}
	for b, w := range c.recordWidths(p) {
		c.records = append(c.records, make([]byte, lim.Size(c.scratch.Dims[b])*recordStride(w)))
	}
}

// lower makes the kernels of e's code.
func (b *Backend) lower(e *executable) error {
	c := e.code
	for i := range c.stages {
		if i == c.head {
			c.rotations = nil // those of the steps of the head
		}
		s := &c.stages[i]
		n := s.Node()
		o := operationOf(n)
		ks, err := b.kernels(o, e, s)
		if err != nil {
			return fmt.Errorf("cpu: %s: %w", n.Where(), err)
		}
		if len(s.Nodes) == 1 && c.quantized[n.Out] && !b.product(n, &e.lim) && o.pieces(n)%recordBlock != 0 {
			ks = append(ks, e.rows(n, 1, func(r int) { e.quantize(n.Out, r, 0, int(e.p.Shapes[n.Out][1])) })...)
		}
		c.kernels = append(c.kernels, ks)
	}
	c.lookAhead(c.kernels[:c.head])
	c.lookAhead(c.kernels[c.head:])
	return nil
}

// part returns the range of stages of a step with that [plan.Batch.Head].
func (c *code) part(head bool) (lo, hi int) {
	if head {
		return c.head, len(c.stages)
	}
	return 0, c.head
}

// kernels returns the kernels of a stage, or of its node if b is the reference.
func (b *Backend) kernels(o operation, e *executable, s *fuse.Stage) ([]kernel, error) {
	if b.reference {
		return o.reference(e, s.Node())
	}
	return o.kernels(e, s)
}

// lookAhead makes workers that are done with a kernel that reads much memory prefetch for the next
// such kernel. After the last one that is the first of the next step.
func (c *code) lookAhead(kernels [][]kernel) {
	var reading []*kernel
	for _, ks := range kernels {
		for i := range ks {
			if ks[i].ahead != nil {
				reading = append(reading, &ks[i])
			}
		}
	}
	for i, k := range reading {
		k.then = reading[(i+1)%len(reading)].ahead
	}
}

// rowStride returns the distance between rows of k elements: an odd number of cache lines, so that
// the same elements of many rows do not compete for the same sets of the cache.
func rowStride(k int) int { return ((k+15)/16 | 1) * 16 }

// row returns row r of value v.
func (e *executable) row(v plan.Value, r int) []float32 {
	k := int(e.p.Shapes[v][1])
	return e.code.buffers[e.code.scratch.Buffer[v]][r*rowStride(k):][:k:k]
}

// record returns the record of row r of value v, followed by those of later rows.
func (e *executable) record(v plan.Value, r int) []byte {
	return e.code.records[e.code.scratch.Buffer[v]][r*recordStride(int(e.p.Shapes[v][1])):]
}

// wrote says that elements lo to hi of row r of value v have been written.
func (e *executable) wrote(v plan.Value, r, lo, hi int) {
	if e.code.quantized[v] && lo%recordBlock == 0 && hi%recordBlock == 0 {
		e.quantize(v, r, lo, hi)
	}
}

func (e *executable) quantize(v plan.Value, r, lo, hi int) {
	e.quantizePiece(v, r, lo, e.row(v, r)[lo:hi])
}

// quantizePiece writes x, which begins at element lo of row r of value v, to the record.
func (e *executable) quantizePiece(v plan.Value, r, lo int, x []float32) {
	e.tier.vector.quantize(e.record(v, r)[recordBytes(lo):recordBytes(lo+len(x))], x, 0, len(x))
}
