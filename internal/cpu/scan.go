package cpu

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// scan is the selective scan, each column by itself.
type scan struct{ ordinary }

// scanBlock is the number of columns that a work item scans together. Rows of exponents have that
// many for each of exponentRows state values.
const scanBlock = 64

const (
	// exponentRow is the most exponents in a row. Zeros follow, so that the largest is 0 and the
	// kernel of attention's weights computes exp(x) for negative x.
	exponentRow = contextSegment
	// exponentStride is the distance of two rows.
	exponentStride = scoreStride
)

// A scanDesk is the scratch memory of one worker for scans.
type scanDesk struct {
	h         []float32 // [N, scanBlock]
	exponents []float32 // [rows, exponentStride]
	top       []float32 // [rows], for the kernel
	total     []float32
	step, in  [scanBlock]float32 // s, s*x
	y         [scanBlock]float32
	magnitude [exponentStride]float32
}

// exponentRows returns the number of rows of exponents for n state values.
func exponentRows(n int) int { return (n*scanBlock + exponentRow - 1) / exponentRow }

var scanWork = &space{
	bytes: func(b *Backend, p *plan.Program, _ *plan.Limits) int {
		n := largestScan(p)
		const fixed = 4 * (3*scanBlock + exponentStride)
		return b.threads * (4*(n*scanBlock+exponentRows(n)*(exponentStride+2)) + fixed)
	},
	make: func(e *executable) any {
		n := largestScan(e.p)
		rows := exponentRows(n)
		desks := make([]scanDesk, len(e.desks))
		for i := range desks {
			desks[i].h, desks[i].exponents = make([]float32, n*scanBlock), make([]float32, rows*exponentStride)
			desks[i].top, desks[i].total = make([]float32, rows), make([]float32, rows)
		}
		return desks
	},
}

// largestScan returns the most state values of a column in p.
func largestScan(p *plan.Program) int {
	n := 0
	for i := range p.Nodes {
		if p.Nodes[i].Op == plan.Scan {
			n = max(n, p.Nodes[i].Weight.Cols())
		}
	}
	return n
}

func (scan) pieces(*plan.Node) int { return scanBlock }

func (scan) spaces() []*space { return []*space{scanWork} }

func (scan) moved(e *executable, n *plan.Node) int {
	return 2 * 4 * e.batch.Seqs() * e.p.States[n.State].Size
}

// decays returns the weights of a scan after checking them.
func (scan) decays(n *plan.Node) (a, skip []float32, err error) {
	a, skip, err = weightAndBias(n)
	for i, v := range a {
		if v > 0 {
			return nil, nil, fmt.Errorf("%s[%d] is %v, want a number that is not positive", n.Weight.Name, i, v)
		}
	}
	return a, skip, err
}

func (o scan) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	a, skip, err := o.decays(n)
	if err != nil {
		return nil, err
	}
	d, states := n.Weight.Rows(), n.Weight.Cols()
	blocks := (d + scanBlock - 1) / scanBlock
	decay := make([]float32, blocks*states*scanBlock) // [blocks, states, scanBlock]
	for c := range d {
		for i := range states {
			decay[(c/scanBlock*states+i)*scanBlock+c%scanBlock] = a[c*states+i]
		}
	}
	desks := e.space(scanWork).([]scanDesk)
	return []kernel{{
		size: func() int { return e.batch.Seqs() * blocks },
		run: func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				seq, at := i/blocks, i%blocks
				desks[worker].scan(e, n, seq, at*scanBlock, decay[at*states*scanBlock:][:states*scanBlock], skip)
			}
		},
	}}, nil
}

// scan computes the columns from first on of all rows of a sequence.
func (k *scanDesk) scan(e *executable, n *plan.Node, seq, first int, decay, skip []float32) {
	d := int(e.p.Shapes[n.Out][1])
	states, width := len(decay)/scanBlock, min(scanBlock, d-first)
	rows := exponentRows(states)
	before, after := e.slots(n.State, int32(seq))
	h := k.h[:states*scanBlock]
	clear(h)
	for i := range states {
		copy(h[i*scanBlock:][:width], before[i*d+first:])
	}
	clear(k.step[:])
	clear(k.in[:])
	v, f := e.tier.vector, e.tier.attention
	for r := int(e.batch.Start[seq]); r < int(e.batch.Start[seq+1]); r++ {
		x, y := e.row(n.In[0], r)[first:][:width], e.row(n.Out, r)[first:][:width]
		in, out := e.row(n.In[2], r), e.row(n.In[3], r)
		softplusOf(f, k.step[:width], e.row(n.In[1], r)[first:], k.magnitude[:])
		v.scale(k.in[:width], k.step[:width], x, 1)
		clear(k.exponents)
		for i := range states {
			at := i*scanBlock/exponentRow*exponentStride + i*scanBlock%exponentRow
			v.scale(k.exponents[at:][:scanBlock], decay[i*scanBlock:][:scanBlock], k.step[:], 1)
		}
		f.softWeights(k.exponents, exponentStride, rows, k.top, k.total)
		clear(k.y[:])
		for i := range states {
			at, row := i*scanBlock/exponentRow*exponentStride+i*scanBlock%exponentRow, h[i*scanBlock:][:scanBlock]
			v.scale(row, row, k.exponents[at:][:scanBlock], 1)
			f.blend(row, k.in[:], 1, in[i])
			f.blend(k.y[:], row, 1, out[i])
		}
		v.center(y, x, skip[first:][:width], k.y[:width], 0, 1)
		e.wrote(n.Out, r, first, first+width)
	}
	for i := range states {
		copy(after[i*d+first:][:width], h[i*scanBlock:])
	}
}

// reference rounds the state to float32 after each token, as the state is kept in. It also writes
// bounds: the error of a state value is that of the one before it, which decays, and those of what
// was added. The state before the step is exact: it is equal in both runs.
func (o scan) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a, skip, err := o.decays(n)
	if err != nil {
		return nil, err
	}
	d, states := n.Weight.Rows(), n.Weight.Cols()
	return []kernel{{size: func() int { return e.batch.Seqs() * d }, grain: 16, run: func(_, lo, hi int) {
		h, off := make([]float32, states), make([]float64, states)
		for i := lo; i < hi; i++ {
			seq, c := i/d, i%d
			before, after := e.slots(n.State, int32(seq))
			for j := range h {
				h[j], off[j] = before[j*d+c], 0
			}
			for r := int(e.batch.Start[seq]); r < int(e.batch.Start[seq+1]); r++ {
				x, raw := float64(e.row(n.In[0], r)[c]), float64(e.row(n.In[1], r)[c])
				step, stepOff := softplus(raw), at(e.bound(n.In[1], r), c) // the slope of softplus is at most 1
				xOff := at(e.bound(n.In[0], r), c)
				y, bound := 0.0, math.Abs(float64(skip[c]))*(xOff+roundings*math.Abs(x))
				for j := range h {
					in, out := float64(e.row(n.In[2], r)[j]), float64(e.row(n.In[3], r)[j])
					inOff, outOff := at(e.bound(n.In[2], r), j), at(e.bound(n.In[3], r), j)
					decay, added := math.Exp(step*float64(a[c*states+j])), step*x*in
					was := math.Abs(float64(h[j]))
					off[j] = decay*off[j] + decay*was*math.Abs(float64(a[c*states+j]))*(stepOff+roundings*step) + roundings*(decay*was+math.Abs(added)) +
						stepOff*math.Abs(x*in) + step*xOff*math.Abs(in) + step*math.Abs(x)*inOff
					h[j] = float32(decay*float64(h[j]) + added)
					y += float64(h[j]) * out
					bound += math.Abs(out)*(off[j]+roundings*math.Abs(float64(h[j]))) + outOff*math.Abs(float64(h[j]))
				}
				e.row(n.Out, r)[c] = float32(y + float64(skip[c])*x)
				if to := e.bound(n.Out, r); to != nil {
					to[c] = float32(bound)
				}
			}
			for j := range h {
				after[j*d+c] = h[j]
			}
		}
	}}}, nil
}
