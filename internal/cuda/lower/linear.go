package lower

import (
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// linear implements [plan.Linear]. A gate, an activation, a scale or an addition in its stage is
// applied before the product is written.
type linear struct{ ordinary }

// MaxProducts is the maximum number of products in one launch.
const MaxProducts = 6

// Rules returns which nodes the kernels fuse into one stage.
func Rules(lim *plan.Limits) fuse.Rules {
	floats := func(n *plan.Node) bool { return arithmetic(n.Weight, lim) == inFloats }
	whole := func(n *plan.Node) bool { return n.Summed() == nil }
	return fuse.Rules{
		Product: func(n *plan.Node) bool { return n.Op == plan.Linear },
		Together: func(n, m *plan.Node) bool {
			return n.Layer == m.Layer && (n.Weight.DType == m.Weight.DType || mixes(n, m, lim)) && whole(n) && whole(m)
		},
		Most: MaxProducts,
		Gate: func(gate, glu *plan.Node) bool { return !floats(gate) && !late(glu.Attr.(plan.GLUAttr)) },
		Map: func(n, m *plan.Node, products int) bool {
			if n.Op == plan.Conv {
				return true
			}
			a := m.Attr.(plan.MapAttr)
			return products == 1 && (a.Func == plan.Scale || a.Func == plan.Activate && !floats(n) && whole(n))
		},
		Add: func(n, m *plan.Node) bool {
			return (n.Op == plan.Linear || n.Op == plan.Experts) && !activates(m)
		},
		Norm: func(n, norm *plan.Node) bool {
			cols := norm.Attr.(plan.NormAttr).Group
			return !whole(n) && cols == n.Weight.Rows() && cols > 128 && cols <= reducedCols
		},
		Then:   applies,
		Beside: map[*plan.Op]int{plan.Conv: maxConvs},
		Heads:  func(n *plan.Node) bool { return n.Attr.(plan.AttentionAttr).HeadDim <= maxHeadDim },
		Latent: true,
		Turn:   true,
		Pick:   true,
	}
}

// activates reports whether m, a map or nil, is an activation.
func activates(m *plan.Node) bool { return m != nil && m.Attr.(plan.MapAttr).Func == plan.Activate }

func (linear) reads(s *fuse.Stage, i int, lim *plan.Limits) []kind {
	if i > 0 {
		return []kind{inFloats}
	}
	return []kind{arithmetic(s.Node().Weight, lim)}
}

func (linear) writes(s *fuse.Stage) bool {
	return s.GLU != nil || activates(s.Maps[0]) || s.Node().Summed() != nil
}

func (linear) check(n *plan.Node) error { return checkCut(n) }

func (linear) norms(s *fuse.Stage, i int, lim *plan.Limits) bool {
	return i == 0 && arithmetic(s.Node().Weight, lim) != inFloats
}

func (linear) scratch(p *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	return quantized(p, lim, n)
}

type productArgs struct {
	w, powers, y, bias driver.DevicePtr
	rows, stride       int32
}

type linearArgs struct {
	p                               [MaxProducts]productArgs
	units, colTiles, cols, inStride int32
	x, h16, residual                driver.DevicePtr
	residualStride                  int32
	scale, divided                  float32
	segments                        int32
	count                           driver.DevicePtr
	out                             device.Forms
	scales, norm, row               driver.DevicePtr
	eps                             float32
	unit                            unit
	late, _                         int32
}

// A unit describes a gated unit; see kernels/activation.cuh.
type unit struct {
	act          int32
	limit, shift float32
}

func unitOf(a plan.GLUAttr) unit {
	return unit{act: int32(a.Act), limit: float32(a.Limit), shift: float32(a.Shift)}
}

// A variant is a kernel of a product for at most the given number of input rows. All but those of one
// row process any number of rows in groups of that size; see [chooser]. cluster is the number of
// blocks of a cluster, or 0 if there are no clusters.
type variant struct {
	name    string
	rows    int
	cluster int
	kind    variantKind
}

type variantKind int

const (
	ofTiles   variantKind = iota // see kernels/linear.cuh
	ofEight                      // like ofTiles; on Hopper see kernels/staged.cuh
	ofSeveral                    // like ofTiles, for targets without wide kernels
	ofRow                        // like ofTiles, for one 16-bit row, which it keeps in shared memory
	ofSplit                      // see kernels/split.cuh
	ofFloats                     // see kernels/linear_floats.cuh
	ofWide                       // see kernels/wide.cuh
)

var (
	plainVariants = []variant{{name: "linear_1", rows: 1, kind: ofRow}, {name: "linear_8", rows: 8, kind: ofEight}, {name: "linear_16", rows: 16, kind: ofSeveral}, {name: "linear_32", rows: 32, kind: ofSeveral}}
	gatedVariants = []variant{{name: "gated_1", rows: 1, kind: ofRow}, {name: "gated_8", rows: 8, kind: ofEight}, {name: "gated_16", rows: 16, kind: ofSeveral}}
	floatVariants = []variant{{name: "linear_f32_1", rows: 1}, {name: "linear_f32", rows: 8}}
	splitVariant  = variant{name: "linear_f32_split", rows: 1, cluster: segments, kind: ofSplit}

	// Kernels with matrix instructions of four warps.
	plainWide = []variant{
		{name: "linear_1", rows: 1, kind: ofRow}, {name: "linear_8", rows: 8, kind: ofEight},
		{name: "wide_16", rows: 16, kind: ofWide}, {name: "wide_32", rows: 32, kind: ofWide}, {name: "wide_64", rows: 64, kind: ofWide}, {name: "wide_128", rows: 128, kind: ofWide},
	}
	gatedWide = []variant{
		{name: "gated_1", rows: 1, kind: ofRow}, {name: "gated_8", rows: 8, kind: ofEight},
		{name: "wide_gated_16", rows: 16, kind: ofWide}, {name: "wide_gated_32", rows: 32, kind: ofWide}, {name: "wide_gated_64", rows: 64, kind: ofWide}, {name: "wide_gated_128", rows: 128, kind: ofWide},
	}
)

// Threads of a block of a wide kernel, and the weight rows that it multiplies. A gated product has
// half as many rows of each matrix.
const (
	wideThreads = 384
	wideRows    = 128
)

// wideRoom returns how many blocks of a wide kernel, for the given number of input rows, fit on a
// multiprocessor, and the shared memory of each in bytes; see kernels/wide.cuh.
func wideRoom(t *weights.Tiling, rows int) (blocks, shared int) {
	const two = 112 << 10
	sums, tiles, chunk := 4*rows*(wideRows+4), wideRows/weights.TileRows*t.Bytes, 2*rows*64
	if rows <= 32 && sums+2*tiles+3*chunk+1024 <= two {
		return 2, two
	}
	return 1, 225 << 10
}

// arguments returns the arguments of the products of a stage, which are of one format, and whether
// they are gated.
func (linear) arguments(c *Compiler, s *fuse.Stage) (a linearArgs, gated bool) {
	n := s.Node()
	in, t := c.forms(n.In[0]), c.Weights.Matrices[n.Weight]
	form := arithmetic(n.Weight, c.Layout.lim)
	a = linearArgs{colTiles: int32(t.ColTiles), cols: in.Cols, inStride: in.Stride, x: in.F32, count: c.count(n.Out), scale: 1, divided: divided(in, form), segments: int32(segmentsOf(s))}
	gated = s.GLU != nil || activates(s.Maps[0])
	for i, m := range s.Nodes {
		mt := c.Weights.Matrices[m.Weight]
		a.p[i] = productArgs{w: c.weight(m.Weight), powers: c.powers(m.Weight), bias: c.weight(m.Bias), rows: int32(mt.Rows)}
		a.units += int32(mt.RowTiles)
		if !gated {
			out := m.Out
			if len(s.Nodes) == 1 {
				out = s.Out()
			}
			f := c.forms(out)
			a.p[i].y, a.p[i].stride = f.F32, f.Stride
		}
	}
	switch form {
	case inBF16:
		a.h16 = in.Bf16
	case inF16:
		a.h16 = in.F16
	}
	if s.Add != nil {
		r := c.forms(s.Residual())
		a.residual, a.residualStride = r.F32, r.Stride
	}
	if m := s.Maps[0]; m != nil && !gated {
		a.scale = float32(m.Attr.(plan.MapAttr).By)
	}
	if gated {
		a.out = c.forms(s.Out())
		if s.GLU != nil {
			a.unit = unitOf(s.GLU.Attr.(plan.GLUAttr))
		} else {
			a.unit.act = int32(s.Maps[0].Attr.(plan.MapAttr).Act)
		}
		a.units = int32((t.RowTiles + 1) / 2)
	}
	return a, gated
}

// setLate sets whether the kernel begins without waiting for the previous one.
func (a *linearArgs) setLate(late bool) {
	if late {
		a.late = 1
	}
}

// normalize lets the kernel for a single row normalize it, if a norm is left to the stage.
func (a *linearArgs) normalize(c *Compiler, s *fuse.Stage) (normed bool) {
	norm := c.Layout.norm(s)
	if norm == nil {
		return false
	}
	m, x := norm.Node(), c.forms(norm.Inputs()[0])
	a.x, a.inStride, a.norm, a.eps = x.F32, x.Stride, c.weight(m.Weight), float32(m.Attr.(plan.NormAttr).Eps)
	if norm.Pick != nil {
		a.row = c.Step.rows
	}
	return true
}

func (o linear) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	if parts := byFormat(s); len(parts) > 1 {
		return o.mixed(c, parts)
	}
	return o.products(c, s, false)
}

// products returns the launches of the products of a stage, which are of one format. If they follow
// others of the same input, late lets them begin without waiting for these where blocks of both have
// room on a multiprocessor.
func (o linear) products(c *Compiler, s *fuse.Stage, late bool) ([]Launch, error) {
	n := s.Node()
	t := c.Weights.Matrices[n.Weight]
	form := arithmetic(n.Weight, c.Layout.lim)
	a, gated := o.arguments(c, s)
	variants, kernels, wide := variantsOf(c.Hopper, gated), weights.Family(t.Format), weights.WideFamily(t.Format)
	if form == inFloats {
		variants, kernels = floatVariants, weights.FloatFamily(t.Format)
	}
	var before []Launch
	float8 := c.Layout.float8(s)
	if float8 {
		variants, kernels, wide = plainFloat8, weights.Float8Family(t.Format), weights.Float8Family(t.Format)
		if gated {
			variants = gatedFloat8
		}
		q, err := c.quantize(s, &a)
		if err != nil {
			return nil, err
		}
		before = append(before, q)
	}
	var after []Launch
	if n.Summed() != nil {
		var err error
		if after, err = c.reduce(s, &a); err != nil {
			return nil, err
		}
	}
	one := a // for a single row
	normed := one.normalize(c, s)
	late = late && len(before) == 0

	ofFloat32 := form == inFloats && t.Format == tensor.F32
	if ofFloat32 {
		first := floatVariants[0]
		if c.splits(n.Weight, &a) {
			first = splitVariant
		}
		variants = c.floatVariants(first)
	}
	// A block of fewer warps leaves room for others.
	share := segments / int(a.segments)
	rows, units, blocks := c.rows(n.Out), int(a.units), c.blocksOf(int(a.units), 1, share)
	alone := blocks // of a single row
	if gated && smallUnits(&t) {
		alone = min(t.RowTiles, share*productBlocks*c.Multiprocessors)
	}
	pairs := 0 // of tiles of rows
	for _, m := range s.Nodes {
		pairs += (c.Weights.Matrices[m.Weight].RowTiles + 1) / 2
	}
	chosen := &chooser{c: c, variants: variants, normed: normed, tiling: &t, units: wideUnits(s, gated), segments: int(a.segments)}
	if !float8 {
		chosen.shares = sharesCopies(t.Format)
		chosen.product, chosen.tabled = productOf(s, c.Layout.lim)
	}
	var by []Launch
	name := kernels
	for i, v := range variants {
		own, family := a, kernels
		if i == 0 {
			own = one
		}
		threads, shared := 32*int(a.segments), c.sharedOf(&v, &t)
		cluster := v.cluster
		if !c.Hopper {
			cluster = 0
		}
		grid := func(sh *Shape) (driver.Dim3, driver.Dim3) {
			if v.rows == 1 && cluster == 0 {
				return driver.Dim3{X: alone, Y: 1}, driver.Dim3{}
			}
			return driver.Dim3{X: max(1, cluster) * units, Y: (sh.Size(rows) + v.rows - 1) / v.rows}, driver.Dim3{X: cluster}
		}
		switch v.kind {
		case ofEight:
			if !c.Hopper {
				break
			}
			x := blocks
			if !gated {
				x, own.units = c.blocksOf(pairs, 1, share), int32(pairs)
			}
			shared /= share
			own.setLate(late)
			grid = func(sh *Shape) (driver.Dim3, driver.Dim3) {
				return driver.Dim3{X: x, Y: (sh.Size(rows) + v.rows - 1) / v.rows}, driver.Dim3{}
			}
		case ofSeveral:
			family = weights.SeveralFamily(t.Format)
		case ofFloats:
			grid = func(sh *Shape) (driver.Dim3, driver.Dim3) {
				b := floatBlocks[v.rows]
				x, y := b.grid(units, v.rows, sh.Size(rows))
				return driver.Dim3{X: x, Y: y}, driver.Dim3{}
			}
		case ofWide:
			threads, family = wideThreads, wide
			own.units = int32(chosen.units)
			own.setLate(late && v.rows <= 32)
			grid = func(sh *Shape) (driver.Dim3, driver.Dim3) {
				_, cluster, _ := chosen.choose(sh.Size(rows))
				return c.wideGrid(&t, chosen.units, chosen.parts(&v, sh.Size(rows)), v.rows, cluster), cluster.dim()
			}
		}
		l, err := c.launchClusters(family, v.name, rows, device.Arguments(&own), threads, shared, grid)
		if err != nil {
			return nil, err
		}
		by = append(by, l)
		if i > 0 {
			name += ","
		}
		name += " " + v.name
	}
	l := oneOf(name, by, func(sh *Shape) int {
		if ofFloat32 {
			return c.chooseFloats(variants, units, sh.Size(rows))
		}
		i, _, _ := chosen.choose(sh.Size(rows))
		return i
	})
	if form != inFloats {
		l.choices = func(most int) string { return kernels + " " + chosen.describe(most) }
	}
	return slices.Concat(before, []Launch{l}, after), nil
}

// wideUnits returns the number of units of weight rows in a stage's products; see kernels/wide.cuh.
func wideUnits(s *fuse.Stage, gated bool) (n int) {
	if gated {
		return unitsOf(s.Node().Weight.Rows(), true)
	}
	for _, m := range s.Nodes {
		n += unitsOf(m.Weight.Rows(), false)
	}
	return n
}

// unitsOf returns the number of units in the given number of weight rows.
func unitsOf(rows int, gated bool) int {
	unit := wideRows
	if gated {
		unit /= 2
	}
	return (rows + unit - 1) / unit
}

// stagedBytes is the shared memory for eight rows of the input; see kernels/staged.cuh.
const stagedBytes = 64 << 10

// sharedOf returns the additional shared memory in bytes of a block of a product.
func (c *Compiler) sharedOf(v *variant, t *weights.Tiling) int {
	switch v.kind {
	case ofEight:
		if c.Hopper {
			return stagedBytes
		}
	case ofRow:
		cols, _ := weights.TileOf(t.Format)
		return 2 * t.ColTiles * cols
	case ofFloats:
		return floatBlocks[v.rows].shared
	case ofWide:
		_, shared := wideRoom(t, v.rows)
		return shared
	}
	return 0
}

// segments is the number of parts into which the columns of a product are divided.
const segments = 8

// maxSplitTiles is the maximum number of column tiles in a segment that one block processes.
const maxSplitTiles = 128

// splits reports whether the product of a single row uses one block for each segment, on devices
// with clusters. Otherwise few multiprocessors would read a small weight, for example a router's.
func (c *Compiler) splits(w *tensor.Tensor, a *linearArgs) bool {
	return w.DType == tensor.F32 && arithmetic(w, c.Layout.lim) == inFloats &&
		segments*int(a.units) <= productBlocks*c.Multiprocessors && int(a.colTiles) <= segments*maxSplitTiles
}

// smallUnits reports whether a unit of a gate has one tile of rows if the input is a single row; see
// gateTiles in kernels/pipeline.cuh.
func smallUnits(t *weights.Tiling) bool { return !t.Scaled() }

// productBlocks is the number of blocks of a product that fit on a multiprocessor.
const productBlocks = 2

// blocksOf returns how many blocks share the given units of work of each of several products at the
// same time: no more than run at a time, and as few as finish in the same time, so that all of them
// have equal work. share blocks run in the place of an ordinary one.
func (c *Compiler) blocksOf(units, products, share int) int {
	most := max(1, share*productBlocks*c.Multiprocessors)
	rounds := (units*products + most - 1) / most
	return (units + rounds - 1) / max(1, rounds)
}
