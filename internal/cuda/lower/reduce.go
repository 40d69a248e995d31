package lower

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Sums reports whether parts that each have some columns of w, as many as the others, can add their
// sums with the bits of one device: each has a subtree of the tree of segments.
func Sums(w *tensor.Tensor, parts int, lim *plan.Limits) bool {
	t := weights.TilingOf(w, lim)
	cols, _ := weights.TileOf(t.Format)
	return parts <= segments && segments%parts == 0 && lim.Activations != tensor.F8_E4M3 && arithmetic(w, lim) != inFloats &&
		t.Rows%4 == 0 && t.Cols == t.ColTiles*cols && t.ColTiles%parts == 0
}

// segmentsOf returns the number of segments of the columns of a stage of products.
func segmentsOf(s *fuse.Stage) int {
	if parts := len(s.Node().Summed()); parts > 0 {
		return segments / parts
	}
	return segments
}

// Threads of a team that adds a row of sums, and the columns that it adds; see kernels/reduce.cu. The
// team also writes the norm of a row that has no more columns.
const (
	reduceThreads = 512
	reducedCols   = 8192
)

type reduceArgs struct {
	out, normed    device.Forms
	outs, norms    driver.DevicePtr
	meeting        meeting
	count          driver.DevicePtr
	matrix         matrix
	divided, scale float32
	residual       driver.DevicePtr
	residualStride int32
	stride         int32
	norm           driver.DevicePtr
	eps            float32
	own            int32
}

// Team is the number of blocks that have a row if rows are few, on devices with clusters.
const Team = 8

// onlyReduced reports whether v is read by sums alone, as their residual, so that each part needs the
// rows that it adds.
func (l *Layout) onlyReduced(v plan.Value) bool {
	read := false
	for i := range l.Stages {
		s := &l.Stages[i]
		for k, in := range s.Inputs() {
			if in != v {
				continue
			}
			if s.Node().Summed() == nil || k < len(s.Node().In) {
				return false
			}
			read = true
		}
	}
	return read && !slices.Contains(l.p.Kept(), v)
}

// A matrix is what turns sums into values; see kernels/value.cuh.
type matrix struct{ powers, bias driver.DevicePtr }

// reduce returns the launches that add the sums of all parts. They take from a what turns sums into
// values, and a is left to compute the part's sums.
func (c *Compiler) reduce(s *fuse.Stage, a *linearArgs) ([]Launch, error) {
	n := s.Node()
	m, outs, err := c.meeting(n)
	if err != nil {
		return nil, err
	}
	p, out := &a.p[0], c.forms(s.Out())
	r := reduceArgs{
		out: out, outs: outs, meeting: m, count: a.count, matrix: matrix{p.powers, p.bias}, divided: a.divided, scale: a.scale,
		residual: a.residual, residualStride: a.residualStride, stride: out.Stride,
	}
	if norm := s.Norm; norm != nil {
		r.normed, r.norms, r.norm, r.eps = c.forms(norm.Out), outs+driver.DevicePtr(formsBytes*int(m.parts)), c.weight(norm.Weight), float32(norm.Attr.(plan.NormAttr).Eps)
	}
	p.y, p.stride = c.ScratchAt+driver.DevicePtr(c.Room.exchange.sums), out.Stride
	p.powers, p.bias, a.residual, a.divided, a.scale = 0, 0, 0, 1, 1

	if c.Layout.onlyReduced(s.Out()) {
		r.own = 1
	}
	parts, of := int(m.parts), c.rows(n.Out)
	rows := func(sh *Shape) int { return sh.Size(of) }
	// give returns a launch in teams of that many blocks.
	give := func(name string, m meeting, team int, teams func(sh *Shape) int) (Launch, error) {
		r := r
		r.meeting = m
		cluster := 0
		if team > 1 {
			cluster = team
		}
		return c.launchShared("reduce", fmt.Sprintf("%s_%d", name, parts), of, device.Arguments(&r), reduceThreads/team, 0, cluster, func(sh *Shape) driver.Dim3 {
			return driver.Dim3{X: team * max(1, teams(sh)), Y: (int(out.Stride) + reducedCols - 1) / reducedCols}
		})
	}
	team := 1
	if c.Hopper {
		team = c.Peers.Team
	}
	few := func(m meeting) (Launch, error) {
		return give("few", m, team, func(sh *Shape) int { return min(rows(sh), int(m.rows)) })
	}
	var many []Launch
	if !c.Peers.Apart {
		share := func(sh *Shape) int { return min(exchangeBlocks, (rows(sh)+parts-1)/parts) }
		some, err := give("many", m, team, share)
		if err != nil {
			return nil, err
		}
		most, err := give("many", m, 1, share)
		if err != nil {
			return nil, err
		}
		many = append(many, oneOf("reduce", []Launch{some, most}, func(sh *Shape) int {
			if share(sh) < c.Multiprocessors {
				return 0
			}
			return 1
		}))
	}
	all, err := c.byPackets("reduce", m, parts*int(out.Stride)/4, rows, few, many)
	if err != nil {
		return nil, err
	}
	row := 4 * int(out.Cols) * (parts + 1)
	for _, v := range s.IO().Out {
		row += c.written(v)
	}
	all[0].Moves = func(b *plan.Batch) int { return b.Size(of) * row }
	return all, nil
}
