package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// A Layout is a program divided into stages, with the locations of its values.
type Layout struct {
	p       *plan.Program
	lim     *plan.Limits
	Stages  []fuse.Stage
	head    int                        // the first stage of the program's head
	Normed  map[plan.Value]*fuse.Stage // norms that products of a single row compute themselves, by output
	scratch *plan.Scratch
	wanted  [][kinds]bool // by value: the forms that some stage reads
	routes  []bool        // by value: it chooses experts
	by      []float32     // by value: see device.Forms
	offsets []formOffsets // by buffer
	Bytes   int           // size of all buffers
}

// formOffsets holds the offset of each form of a buffer, or -1 if the buffer lacks the form.
type formOffsets struct{ f32, bf16, f16 int }

// rowStride returns the number of elements from one row to the next.
func rowStride(cols int) int { return weights.Align(cols) }

// chunked rounds rows up to whole chunks, the units of 16-bit forms; see kernels/forms.cuh.
func chunked(rows int) int { return (rows + 127) &^ 127 }

// NewLayout divides p into stages and places its values. If apart is true, every node is a stage of
// its own and every value is also written as float32, so that it can be observed.
func NewLayout(p *plan.Program, lim *plan.Limits, apart bool) *Layout {
	l := &Layout{p: p, lim: lim, wanted: make([][kinds]bool, len(p.Shapes)), by: make([]float32, len(p.Shapes)), routes: make([]bool, len(p.Shapes))}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		l.by[n.Out] = half(operations[n.Op].most(n))
		switch n.Op {
		case plan.Experts:
			l.routes[n.In[1]] = true
		case plan.Gather:
			l.by[n.Out] = l.by[n.In[0]]
		}
	}
	if apart {
		l.Stages = fuse.Single(p)
	} else {
		l.Stages = Rules(lim).Stages(p)
		l.Normed = fuse.Norms(p, l.Stages, maxNormed, func(s *fuse.Stage, i int) bool { return !l.float8(s) && operationOf(s).norms(s, i, lim) })
	}
	l.head = fuse.HeadOf(p, l.Stages)
	io := make([]plan.Stage, len(l.Stages))
	for i := range l.Stages {
		s := &l.Stages[i]
		io[i] = s.IO()
		if norm := l.norm(s); norm != nil {
			io[i].In = append(io[i].In, norm.Inputs()...)
		}
	}
	l.scratch = plan.PlanScratch(p, early(l.Stages, io, l.head))
	for i := range l.Stages {
		s := &l.Stages[i]
		for j, v := range s.Inputs() {
			for _, k := range l.reads(s, j) {
				l.wanted[v][k] = true
			}
		}
		for _, v := range io[i].Out {
			if apart || lim.Observed || !operationOf(s).writes(s) {
				l.wanted[v][inFloats] = true
			}
		}
	}
	for _, v := range p.Kept() {
		l.wanted[v][inFloats] = true
	}
	l.place()
	return l
}

// Part returns the range of stages of a step with that [plan.Batch.Head].
func (l *Layout) Part(head bool) (from, to int) {
	if head {
		return l.head, len(l.Stages)
	}
	return 0, l.head
}

// maxNormed is the largest number of columns of a row that products normalize themselves.
const maxNormed = 8192

// norm returns the norm that stage s computes itself if its input is a single row, or nil.
func (l *Layout) norm(s *fuse.Stage) *fuse.Stage {
	if in := s.Inputs(); len(in) > 0 {
		return l.Normed[in[0]]
	}
	return nil
}

// reads returns the forms in which s reads input i.
func (l *Layout) reads(s *fuse.Stage, i int) []kind {
	if i == 0 && l.float8(s) {
		return []kind{inF16} // quantize reads it
	}
	return operationOf(s).reads(s, i, l.lim)
}

// place assigns an offset to every form of every buffer.
func (l *Layout) place() {
	type need struct {
		stride int
		forms  [kinds]bool
	}
	needs := make([]need, len(l.scratch.Widths))
	for v, b := range l.scratch.Buffer {
		if b < 0 {
			continue
		}
		needs[b].stride = max(needs[b].stride, rowStride(int(l.p.Shapes[v][1])))
		for k, w := range l.wanted[v] {
			needs[b].forms[k] = needs[b].forms[k] || w
		}
	}
	take := func(wanted bool, bytes int) int {
		if !wanted {
			return -1
		}
		at := l.Bytes
		l.Bytes += weights.Align(bytes)
		return at
	}
	for b, n := range needs {
		rows := l.lim.Size(l.scratch.Dims[b])
		halves := 2 * n.stride * chunked(rows)
		l.offsets = append(l.offsets, formOffsets{
			f32: take(n.forms[inFloats], 4*n.stride*rows), bf16: take(n.forms[inBF16], halves), f16: take(n.forms[inF16], halves),
		})
	}
}

// Forms returns the addresses of the forms of v that some stage reads, with the buffers at base.
func (l *Layout) Forms(base driver.DevicePtr, v plan.Value) device.Forms {
	cols := int(l.p.Shapes[v][1])
	f := device.Forms{Stride: int32(rowStride(cols)), Cols: int32(cols), By: l.by[v]}
	o, w := l.offsets[l.scratch.Buffer[v]], l.wanted[v]
	at := func(k kind, offset int) driver.DevicePtr {
		if !w[k] {
			return 0
		}
		return base + driver.DevicePtr(offset)
	}
	f.F32, f.Bf16, f.F16 = at(inFloats, o.f32), at(inBF16, o.bf16), at(inF16, o.f16)
	return f
}
