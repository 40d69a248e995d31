package cpu

import (
	"errors"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// An operation is how the processor does one operation of plans. Each has a file of its
// own.
type operation interface {
	// kernels are those of a stage, in order. What does not change from step to step is
	// done here.
	kernels(e *executable, s *fuse.Stage) ([]kernel, error)
	// reference are the kernels that say what a node means. They share with the others only
	// what has one meaning: where states lie, and how a weight is dequantised.
	reference(e *executable, n *plan.Node) ([]kernel, error)
	// bound writes the bounds of row r of what the reference has made of a node. It is nil
	// where the reference writes them itself.
	bound(e *executable, n *plan.Node) (row func(r int), err error)

	// joins reports whether a stage can have several nodes, and what fuse joins to them, if
	// their weights are multiplied with records.
	joins() bool
	// multiplies are the weights that a node multiplies its first input with. Where there
	// are none it reads that as float32.
	multiplies(n *plan.Node) []*tensor.Tensor
	// pieces is the number of elements of a row that are written together, 0 for all of them.
	pieces(n *plan.Node) int
	// desk is what each worker needs for a node, beside what every product needs.
	desk(n *plan.Node, lim *plan.Limits) deskSize
	// spaces are what a program's nodes work in together.
	spaces() []*space

	// rows is how many rows of an input the step that ran has read.
	rows(e *executable, n *plan.Node, input plan.Value) int
	// read is how many of w.Of such weights the step that ran has read.
	read(e *executable, n *plan.Node, w *plan.Weight) int
	// moved are the bytes of states that the step that ran has read and written.
	moved(e *executable, n *plan.Node) int
}

// ordinary is an operation that reads all of its inputs as float32, writes whole rows and
// works nowhere else.
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

// operations are all that the processor can do.
var operations = map[*plan.Op]operation{
	plan.Embed:         embed{},
	plan.Position:      position{},
	plan.Linear:        linear{},
	plan.RMSNorm:       rmsNorm{},
	plan.LayerNorm:     layerNorm{},
	plan.Rope:          rope{},
	plan.Attention:     attention{},
	plan.Bidirectional: bidirectional{},
	plan.GLU:           glu{},
	plan.Map:           mapping{},
	plan.Experts:       experts{},
	plan.Conv:          conv{},
	plan.Add:           add{},
	plan.Pick:          pick{},
}

// operationOf is how n is done.
func operationOf(n *plan.Node) operation {
	if o := operations[n.Op]; o != nil {
		return o
	}
	return unknown{}
}

// unknown is an operation that the processor cannot do.
type unknown struct{ ordinary }

var errUnknown = errors.New("no kernel for this operation")

func (unknown) kernels(*executable, *fuse.Stage) ([]kernel, error)  { return nil, errUnknown }
func (unknown) reference(*executable, *plan.Node) ([]kernel, error) { return nil, errUnknown }

// A space is memory that the nodes of a program work in, one after another. Several
// operations may work in the same.
type space struct {
	bytes func(b *Backend, p *plan.Program, lim *plan.Limits) int // that make takes
	make  func(e *executable) any
}

// space is e's memory of one kind, which is made when it is first asked for.
func (e *executable) space(s *space) any {
	if e.spaces[s] == nil {
		if e.spaces == nil {
			e.spaces = map[*space]any{}
		}
		e.spaces[s] = s.make(e)
	}
	return e.spaces[s]
}

// spaceBytes is what all spaces of p take.
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

// A kernel is work on the items 0 <= i < size() of the step that an executable is
// running, shared by its workers. All of it is done before the next kernel begins.
type kernel struct {
	size  func() int               // items in this step
	grain int                      // items that are taken together; 0 means 1
	run   func(worker, lo, hi int) // items lo to hi

	// ahead asks memory for what a worker will read first, where that is much.
	// It is called while the kernels before this one are at work.
	ahead func(worker int)
	then  func(worker int) // the ahead of a kernel to come, or nil
}

// one is work that is not shared.
func one(run func()) kernel {
	return kernel{size: func() int { return 1 }, run: func(_, _, _ int) { run() }}
}

// rows is work on the rows of n's output.
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

// floats is a small weight, such as a norm or a bias, as float32.
func floats(w *tensor.Tensor) ([]float32, error) {
	if w == nil {
		return nil, nil
	}
	return w.Float32s()
}

// weightAndBias are the small weights of n as float32; bias is nil if n has none.
func weightAndBias(n *plan.Node) (w, bias []float32, err error) {
	if w, err = floats(n.Weight); err != nil {
		return nil, nil, err
	}
	bias, err = floats(n.Bias)
	return w, bias, err
}
