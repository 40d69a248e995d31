package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Replay does the operations of a program as the reference does, one at a time and on
// inputs that may be set, and says of each element how far a sound executor of the same
// inputs may be from it. It has states of its own, which it keeps as a step's operations
// make them of the inputs that they were given. Weights are read where they are.
//
// Its methods are called by one goroutine at a time.
type Replay struct {
	e     *executable
	spare map[int][][]float32 // by length: memory of values that were dropped
	saved map[*byte][]byte    // pages as they are here, by where the batch saves them to
}

// NewReplay is a replay of p within lim, on so many threads (see [Threads]).
func NewReplay(p *plan.Program, lim plan.Limits, threads int) (*Replay, error) {
	if err := checkCache(p, lim.Cache); err != nil {
		return nil, err
	}
	if _, err := lim.StateBytes(p); err != nil {
		return nil, err
	}
	b := Reference()
	b.threads = Threads(threads)
	e := &executable{
		backend: b, p: p, lim: lim, tier: b.tier, desks: make([]desk, b.threads), bounds: make([][]float32, len(p.Shapes)),
		copies: map[*tensor.Tensor]*tensor.Tensor{},
		code: &code{
			scratch: &plan.Scratch{}, buffers: make([][]float32, len(p.Shapes)),
			quantized: make([]bool, len(p.Shapes)), unread: make([]bool, len(p.Shapes)),
		},
	}
	for v := range p.Shapes { // each value for itself, as nobody knows which are read when
		e.code.scratch.Buffer = append(e.code.scratch.Buffer, v)
	}
	if err := e.makePools(); err != nil {
		return nil, err
	}
	// Rows of a table are wanted in any order.
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if w := n.Weight; (n.Op == plan.Embed || n.Op == plan.Position) && w.Source != nil && e.copies[w] == nil {
			made := &tensor.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape, Data: make([]byte, w.Size())}
			if err := tensor.Guard(func() error { return w.ReadRows(made.Data, 0, w.Rows()) }); err != nil {
				return nil, fmt.Errorf("cpu: %s: %w", w.Name, err)
			}
			e.copies[w] = made
		}
	}
	e.workers = newWorkers(b.threads)
	return &Replay{e: e, spare: map[int][][]float32{}, saved: map[*byte][]byte{}}, nil
}

// Begin begins a step with its operations on pages. b is valid, and is not changed
// before the next step; tokens are those of b with those of earlier rows filled in.
func (r *Replay) Begin(b *plan.Batch, tokens []int32) error {
	e := r.e
	for v := range e.code.buffers {
		r.Drop(plan.Value(v))
	}
	if e.batch == nil || len(e.batch.Tokens) != len(b.Tokens) || len(e.batch.Rows) != len(b.Rows) {
		clear(r.spare)
	}
	known := *b
	known.Tokens, known.From = slices.Clone(tokens), nil
	e.batch = &known
	e.resolve(&known)
	e.overflow = fill(e.overflow, b.Seqs(), -1)
	return r.do(func() error {
		for _, op := range b.States {
			r.apply(op)
		}
		e.reachSlots()
		return nil
	})
}

// apply does an operation on pages. A device lays out what it saves as it likes, so
// there is another page here for each; what was not saved is zeros.
func (r *Replay) apply(op plan.StateOp) {
	at := unsafe.SliceData(op.Host)
	if len(r.saved[at]) != len(op.Host) {
		r.saved[at] = make([]byte, len(op.Host))
	}
	op.Host = r.saved[at]
	r.e.apply(&op)
}

// Run does the operation of a node of the program on what was set of its inputs or
// computed by Run.
func (r *Replay) Run(n *plan.Node) error {
	e := r.e
	for _, v := range n.In {
		if e.code.buffers[v] == nil {
			return fmt.Errorf("cpu: %s: there is no value %%%d", n.Where(), v)
		}
	}
	r.make(n.Out)
	e.bounds[n.Out] = r.take(n.Out)
	return r.do(func() error {
		kernels, err := e.backend.lowerings[n.Op](e, n)
		if err == nil {
			e.do(kernels)
			if bounder := bounders[n.Op]; bounder != nil {
				var row func(r int)
				if row, err = bounder(e, n); err == nil {
					e.do(e.rows(n, 1, row))
				}
			}
		}
		if err != nil {
			return fmt.Errorf("cpu: %s: %w", n.Where(), err)
		}
		return nil
	})
}

// Set gives v the value x [rows, columns], which is copied and is exact.
func (r *Replay) Set(v plan.Value, x []float32) {
	r.Drop(v)
	r.make(v)
	k := int(r.e.p.Shapes[v][1])
	for i := range r.Rows(v) {
		copy(r.e.row(v, i), x[i*k:])
	}
}

// Rows is the number of rows that v has in the step.
func (r *Replay) Rows(v plan.Value) int { return r.e.size(v) }

// Row is row i of v, which was set or computed, and how far a sound executor may be from
// each element; nil where it was set. They are valid while v is.
func (r *Replay) Row(v plan.Value, i int) (x, bound []float32) { return r.e.row(v, i), r.e.bound(v, i) }

// Drop says that v is not needed any longer.
func (r *Replay) Drop(v plan.Value) {
	for _, list := range [][][]float32{r.e.code.buffers, r.e.bounds} {
		if list[v] != nil {
			r.spare[len(list[v])] = append(r.spare[len(list[v])], list[v])
			list[v] = nil
		}
	}
}

func (r *Replay) make(v plan.Value) {
	if r.e.code.buffers[v] == nil {
		r.e.code.buffers[v] = r.take(v)
	}
}

// take is memory for v, or for its bounds.
func (r *Replay) take(v plan.Value) []float32 {
	n := max(1, r.e.size(v)) * rowStride(int(r.e.p.Shapes[v][1]))
	if list := r.spare[n]; len(list) > 0 {
		r.spare[n] = list[:len(list)-1]
		return list[len(list)-1]
	}
	return make([]float32, n)
}

// An errand is a task that somebody waits for.
type errand struct {
	do   func() error
	done chan error
}

// run implements [task].
func (t *errand) run() {
	var err error
	defer func() {
		if r := recover(); r != nil {
			if err = fmt.Errorf("cpu: internal error: %v", r); tensor.Fault(r) != nil {
				err = fmt.Errorf("cpu: %w", tensor.Fault(r))
			}
		}
		t.done <- err
	}()
	err = t.do()
}

// do has the workers run f.
func (r *Replay) do(f func() error) error {
	t := &errand{f, make(chan error, 1)}
	r.e.workers.post(t)
	return <-t.done
}

// Close frees everything. Nothing may be called after it.
func (r *Replay) Close() error { return r.e.Close() }
