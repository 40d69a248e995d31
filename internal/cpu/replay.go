package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Replay runs the operations of a program on the reference, one at a time, on inputs that may be
// set. It computes for each element how far a correct executor with the same inputs may be from it.
// It has its own states, which it updates like a step, from the inputs of the operations. Weights
// are not copied.
//
// Its methods must be called by one goroutine at a time.
type Replay struct {
	e     *executable
	spare map[int][][]float32 // by length: memory of dropped values
	saved map[*byte][]byte    // saved pages, by the batch's host memory
}

// NewReplay returns a replay of p within lim on that many threads (see [Threads]).
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
	for v := range p.Shapes { // each value has its own buffer, as any may be read later
		e.code.scratch.Buffer = append(e.code.scratch.Buffer, v)
	}
	if err := e.makePools(); err != nil {
		return nil, err
	}
	// Rows of a table may be read in any order.
	for i := range p.Nodes {
		for _, w := range p.Nodes[i].Weights() {
			if w.Role != plan.Table || w.Source == nil || e.copies[w.Tensor] != nil {
				continue
			}
			made := &tensor.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape, Data: make([]byte, w.Size())}
			if err := tensor.Guard(func() error { return w.ReadRows(made.Data, 0, w.Rows()) }); err != nil {
				return nil, fmt.Errorf("cpu: %s: %w", w.Name, err)
			}
			e.copies[w.Tensor] = made
		}
	}
	e.workers = newWorkers(b.threads)
	return &Replay{e: e, spare: map[int][][]float32{}, saved: map[*byte][]byte{}}, nil
}

// Begin begins a step and runs its operations on pages. b must be valid, and must not change before
// the next step. tokens are those of b, with sampled tokens filled in.
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

// apply runs an operation on pages. A device saves pages in its own layout, so the replay keeps its
// own copy of each. Pages that were not saved are zeros.
func (r *Replay) apply(op plan.StateOp) {
	at := unsafe.SliceData(op.Host)
	if len(r.saved[at]) != len(op.Host) {
		r.saved[at] = make([]byte, len(op.Host))
	}
	op.Host = r.saved[at]
	r.e.apply(&op)
}

// Run runs a node of the program on inputs that were set or computed by Run.
func (r *Replay) Run(n *plan.Node) error {
	e := r.e
	for _, v := range n.In {
		if e.code.buffers[v] == nil {
			return fmt.Errorf("cpu: %s: value %%%d was neither set nor computed", n.Where(), v)
		}
	}
	r.make(n.Out)
	e.bounds[n.Out] = r.take(n.Out)
	return r.do(func() error {
		o := operationOf(n)
		kernels, err := o.reference(e, n)
		if err == nil {
			e.do(kernels)
			var row func(r int)
			if row, err = o.bound(e, n); row != nil {
				e.do(e.rows(n, 1, row))
			}
		}
		if err != nil {
			return fmt.Errorf("cpu: %s: %w", n.Where(), err)
		}
		return nil
	})
}

// Set sets v to a copy of x [rows, columns], which counts as exact.
func (r *Replay) Set(v plan.Value, x []float32) {
	r.Drop(v)
	r.make(v)
	k := int(r.e.p.Shapes[v][1])
	for i := range r.Rows(v) {
		copy(r.e.row(v, i), x[i*k:])
	}
}

// Rows returns the number of rows of v in the step.
func (r *Replay) Rows(v plan.Value) int { return r.e.size(v) }

// Row returns row i of v, and how far a correct executor may be from each element, or nil if v was
// set. Both are valid until v is dropped.
func (r *Replay) Row(v plan.Value, i int) (x, bound []float32) { return r.e.row(v, i), r.e.bound(v, i) }

// Drop frees v.
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

// take returns memory for v or for its bounds.
func (r *Replay) take(v plan.Value) []float32 {
	n := max(1, r.e.size(v)) * rowStride(int(r.e.p.Shapes[v][1]))
	if list := r.spare[n]; len(list) > 0 {
		r.spare[n] = list[:len(list)-1]
		return list[len(list)-1]
	}
	return make([]float32, n)
}

// A replayTask is a task that a goroutine waits for.
type replayTask struct {
	do   func() error
	done chan error
}

// run implements [task].
func (t *replayTask) run() {
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

// do runs f on worker 0 and waits for it.
func (r *Replay) do(f func() error) error {
	t := &replayTask{f, make(chan error, 1)}
	r.e.workers.post(t)
	return <-t.done
}

// Close frees all memory. The Replay must not be used afterwards.
func (r *Replay) Close() error { return r.e.Close() }
