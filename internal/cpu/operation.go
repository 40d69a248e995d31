package cpu

import (
	"errors"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// An operation implements one operation of plans. Each has its own file.
type operation interface {
	// kernels returns the kernels of a stage, in order. Whatever does not change from step to step
	// is computed here.
	kernels(e *executable, s *fuse.Stage) ([]kernel, error)
	// reference returns the kernels that define a node. They share code with the others only for
	// the places of states and the dequantization of weights.
	reference(e *executable, n *plan.Node) ([]kernel, error)
	// bound returns a function that writes the bounds of row r of the reference's result. It is nil
	// if the reference writes them itself.
	bound(e *executable, n *plan.Node) (row func(r int), err error)

	// joins reports whether other nodes can be fused with it if its weights are multiplied with
	// records.
	joins() bool
	// multiplies returns the weights that a node multiplies with its first input. If there are
	// none, the node reads the input as float32.
	multiplies(n *plan.Node) []*tensor.Tensor
	// pieces returns the number of elements of a row that are written together; 0 for the whole
	// row.
	pieces(n *plan.Node) int
	// desk returns the scratch memory that each worker needs for a node, besides that of every
	// product.
	desk(n *plan.Node, lim *plan.Limits) deskSize
	// spaces returns the scratch memory that a program's nodes share.
	spaces() []*space

	// rows returns how many rows of an input the last step has read.
	rows(e *executable, n *plan.Node, input plan.Value) int
	// read returns how many of w.Of weights the last step has read.
	read(e *executable, n *plan.Node, w *plan.Weight) int
	// moved returns how many bytes of states the last step has read and written.
	moved(e *executable, n *plan.Node) int
}

// ordinary is embedded by operations that read all inputs as float32, write whole rows and need no
// scratch memory.
type ordinary struct{}

func (ordinary) bound(*executable, *plan.Node) (func(r int), error) { return nil, nil }
func (ordinary) joins() bool                                        { return false }
func (ordinary) multiplies(*plan.Node) []*tensor.Tensor             { return nil }
func (ordinary) pieces(*plan.Node) int                              { return 0 }
func (ordinary) desk(*plan.Node, *plan.Limits) deskSize             { return deskSize{} }
func (ordinary) spaces() []*space                                   { return nil }
func (ordinary) moved(*executable, *plan.Node) int                  { return 0 }

func (ordinary) rows(e *executable, _ *plan.Node, input plan.Value) int { return e.size(input) }

func (ordinary) read(e *executable, n *plan.Node, w *plan.Weight) int { return w.Read(e.size(n.Out)) }

// operations maps each supported operation to its implementation.
var operations = map[*plan.Op]operation{
	plan.Input:         input{},
	plan.Embed:         embed{},
	plan.Position:      position{},
	plan.Linear:        linear{},
	plan.HeadLinear:    headLinear{},
	plan.RMSNorm:       rmsNorm{},
	plan.LayerNorm:     layerNorm{},
	plan.Rope:          rope{},
	plan.Temper:        temper{},
	plan.Attention:     attention{},
	plan.Select:        selection{},
	plan.Compress:      compress{},
	plan.Store:         store{},
	plan.Recall:        recall{},
	plan.Connect:       connect{},
	plan.Bidirectional: bidirectional{},
	plan.GLU:           glu{},
	plan.Map:           mapping{},
	plan.Mul:           mul{},
	plan.Mix:           mix{},
	plan.Rescale:       rescale{},
	plan.Sparsify:      sparsify{},
	plan.Spread:        spread{},
	plan.Experts:       experts{},
	plan.Conv:          conv{},
	plan.Scan:          scan{},
	plan.LRU:           lru{},
	plan.StateSpace:    stateSpace{},
	plan.Delta:         delta{},
	plan.Add:           add{},
	plan.Concat:        concat{},
	plan.Pick:          pick{},
	plan.Gather:        gather{},
}

// operationOf returns the implementation of n.
func operationOf(n *plan.Node) operation {
	if o := operations[n.Op]; o != nil {
		return o
	}
	return unknown{}
}

// unknown is an operation that the processor does not support.
type unknown struct{ ordinary }

var errUnknown = errors.New("no kernel for this operation")

func (unknown) kernels(*executable, *fuse.Stage) ([]kernel, error)  { return nil, errUnknown }
func (unknown) reference(*executable, *plan.Node) ([]kernel, error) { return nil, errUnknown }

// A space is scratch memory that the nodes of a program use one after another. Several operations
// may share it.
type space struct {
	bytes func(b *Backend, p *plan.Program, lim *plan.Limits) int // size of the memory from make
	make  func(e *executable) any
}

// space returns e's memory of one kind, which it allocates on the first call.
func (e *executable) space(s *space) any {
	if e.spaces[s] == nil {
		if e.spaces == nil {
			e.spaces = map[*space]any{}
		}
		e.spaces[s] = s.make(e)
	}
	return e.spaces[s]
}

// spaceBytes returns the size of all spaces of p.
func (b *Backend) spaceBytes(p *plan.Program, lim *plan.Limits) int {
	seen, total := map[*space]bool{}, 0
	for i := range p.Nodes {
		for _, s := range operationOf(&p.Nodes[i]).spaces() {
			if !seen[s] {
				seen[s] = true
				total += s.bytes(b, p, lim)
			}
		}
	}
	return total
}

// A kernel is work on the items 0 <= i < size() of the running step, shared by the workers. All
// items are done before the next kernel begins.
type kernel struct {
	size  func() int               // items in this step
	grain int                      // number of items taken together; 0 means 1
	run   func(worker, lo, hi int) // items lo to hi

	// ahead prefetches what a worker reads first, if that is much. It is called during earlier
	// kernels.
	ahead func(worker int)
	then  func(worker int) // ahead of a later kernel, or nil
}

// one returns a kernel for work that is not shared.
func one(run func()) kernel {
	return kernel{size: func() int { return 1 }, run: func(_, _, _ int) { run() }}
}

// rows returns a kernel for the rows of n's output.
func (e *executable) rows(n *plan.Node, grain int, row func(r int)) []kernel {
	return []kernel{{
		size:  func() int { return e.size(n.Out) },
		grain: grain,
		run: func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				row(r)
			}
		},
	}}
}

// floats returns a small weight, such as a norm or a bias, as float32.
func floats(w *tensor.Tensor) ([]float32, error) {
	if w == nil {
		return nil, nil
	}
	return w.Float32s()
}

// weightAndBias returns the small weights of n as float32; bias is nil if n has none.
func weightAndBias(n *plan.Node) (w, bias []float32, err error) {
	if w, err = floats(n.Weight); err != nil {
		return nil, nil, err
	}
	bias, err = floats(n.Bias)
	return w, bias, err
}
