package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// headLinear implements [plan.HeadLinear]: a mixture of experts whose matrices are those of the heads,
// and all of which every token chooses.
type headLinear struct{ ordinary }

// mixtureOf returns n as a mixture.
func (headLinear) mixtureOf(n *plan.Node) plan.ExpertsAttr {
	a := n.Attr.(plan.HeadLinearAttr)
	return plan.ExpertsAttr{Route: plan.RouteAttr{Used: len(a.Weight)}, Gate: a.Weight}
}

func (headLinear) check(n *plan.Node) error {
	return experts{}.check(&plan.Node{Attr: headLinear{}.mixtureOf(n)})
}

// scratch returns the sizes of what is chosen, slots, tokens, active experts, parts, sizes, rows and
// products; see [expertRoom].
func (o headLinear) scratch(p *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	m, a := o.mixtureOf(n), n.Attr.(plan.HeadLinearAttr)
	tokens, heads := lim.Size(p.Shapes[n.Out][0]), len(a.Weight)
	rows, reached := slotRows(&m, tokens)
	in, out := rowStride(a.In()), rowStride(a.Out())
	entries := 4 * tokens * heads
	return []int{entries, entries, 4 * rows, ActiveBytes * heads, partBytes * (heads + rows/16), 12, max(4*rows*in, 2*reached*in), 4 * rows * out}
}

type spreadArgs struct {
	chosen, slots, tokens, active, parts, sizes driver.DevicePtr
	used, rows                                  int32
	count                                       driver.DevicePtr
}

type collectArgs struct {
	y, x                                             driver.DevicePtr
	yStride, xStride, in, made, kept, cols, heads, _ int32
	slots, count                                     driver.DevicePtr
	out                                              device.Forms
	by                                               rotationArgs
}

func (o headLinear) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	a, r := n.Attr.(plan.HeadLinearAttr), c.scratch(n)
	m := &mixture{Compiler: c, attr: o.mixtureOf(n), rows: c.rows(n.Out)}
	m.e = expertRoom{chosen: r[0], slots: r[1], tokens: r[2], active: r[3], parts: r[4], sizes: r[5], out: r[6]}
	heads, x, out := len(a.Weight), c.forms(s.Q.In), c.forms(n.Out)
	spread, err := m.byPart(func(rows int32) (Launch, error) {
		return c.launch("expertforms", "spread", m.rows, device.Arguments(&spreadArgs{
			chosen: m.e.chosen, slots: m.e.slots, tokens: m.e.tokens, active: m.e.active, parts: m.e.parts, sizes: m.e.sizes,
			used: int32(heads), rows: rows, count: c.count(n.Out),
		}), 256, func(sh *Shape) driver.Dim3 { return driver.Dim3{X: (sh.Size(m.rows)*heads + 255) / 256} })
	})
	if err != nil {
		return nil, err
	}
	spread.Moves = m.rowsMove(4)
	deal, rows, err := m.deal(n, x, a.In(), a.In()+a.Kept, arithmetic(a.Weight[0], c.Layout.lim))
	if err != nil {
		return nil, err
	}
	w, err := m.expertWeights(a.Weight, nil)
	if err != nil {
		return nil, err
	}
	made := int32(rowStride(a.Out()))
	product, err := m.product(a.Weight[0], rows, false, &ExpertArgs{P: [2]expertProductArgs{w}, stride: made, y: r[7]}, false)
	if err != nil {
		return nil, err
	}
	collect, err := c.byColumns("expertforms", "collect", m.rows, device.Arguments(&collectArgs{
		y: r[7], x: x.F32, yStride: made, xStride: x.Stride, in: int32(a.In()), made: int32(a.Out()), kept: int32(a.Kept), cols: out.Cols, heads: int32(heads),
		slots: m.e.slots, count: c.count(n.Out), out: out, by: c.rotation(s.Q.Rope),
	}), out.Stride, nil)
	if err != nil {
		return nil, err
	}
	written := c.written(n.Out)
	collect.Moves = func(b *plan.Batch) int { return b.Size(m.rows) * (heads*4*(a.Out()+a.Kept) + written) }
	all := append(append([]Launch{spread, deal}, product...), collect)
	one, ok, err := o.one(m, s, w)
	if err != nil || !ok {
		return all, err
	}
	return singly(one, all), nil
}

type headArgs struct {
	p                               expertProductArgs
	rows, units, colTiles, in, kept int32
	divided                         float32
	x, count                        driver.DevicePtr
	out                             device.Forms
	by                              rotationArgs
}

// one returns the launch for a single row, if there is a kernel for it.
func (headLinear) one(m *mixture, s *fuse.Stage, w expertProductArgs) (l Launch, ok bool, err error) {
	n, a := s.Node(), s.Node().Attr.(plan.HeadLinearAttr)
	t := m.Weights.Matrices[a.Weight[0]]
	form := arithmetic(a.Weight[0], m.Layout.lim)
	if form == inFloats || a.Out()%weights.TileRows != 0 || a.Kept%weights.TileRows != 0 || a.In()%4 != 0 {
		return Launch{}, false, nil
	}
	x, out := m.forms(s.Q.In), m.forms(n.Out)
	args := headArgs{
		p: w, rows: int32(a.Out()), units: int32(t.RowTiles), colTiles: int32(t.ColTiles), in: int32(a.In()), kept: int32(a.Kept),
		divided: divided(device.Forms{By: half(0)}, form), x: x.F32, count: m.count(n.Out), out: out, by: m.rotation(s.Q.Rope),
	}
	variant := expertVariants[0]
	blocks, heads := m.blocksOf(t.RowTiles, len(a.Weight), 1), len(a.Weight)
	l, err = m.launchShared("experts_"+weights.Suffix(t.Format), "head_1", m.rows, device.Arguments(&args), 256, m.sharedOf(&variant, &t), 0, func(*Shape) driver.Dim3 {
		return driver.Dim3{X: blocks, Y: heads}
	})
	l.Moves = m.moves(a.Weight[0], x.Cols, false)
	return l, true, err
}
