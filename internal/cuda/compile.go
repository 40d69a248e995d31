package cuda

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A compiler makes launches of the stages of a layout. Addresses may be 0, where only
// the launches' names are wanted; then there is no device either.
type compiler struct {
	l        *layout
	weights  *weightPlan
	rotation *rotation // nil where nothing streams
	pools    []pool
	room     *room
	kernel   func(family, name string) (*driver.Function, error)
	hopper   bool // the kernels are those for capability 9.0
	early    bool // they may begin before those before them have ended

	weightsAt, scratchAt driver.DevicePtr
	expertImages         []driver.DevicePtr // by mixture, in the host's memory; nil where they stay on the device
	step                 stepAddresses

	multiprocessors int
	shared          map[*driver.Function]int // of the functions of every program
}

// compile makes the launches of every stage, those that come before all stages first.
func (c *compiler) compile() (before []launch, stages [][]launch, err error) {
	if before, err = c.angles(); err != nil {
		return nil, nil, err
	}
	for i := range c.l.stages {
		s := &c.l.stages[i]
		ls, err := c.stage(s)
		if err == nil && !c.l.writesForms(s) {
			for _, v := range s.io().Out {
				more, convertErr := c.convert(v)
				ls, err = append(ls, more...), convertErr
			}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("cuda: %s: %w", s.nodes[0].Where(), err)
		}
		where, single, moves := plan.Where(s.all()...), "", c.moved(s)
		if norm := c.l.norm(s); norm != nil {
			single = plan.Where(append(norm.all(), s.all()...)...)
		}
		for k := range ls {
			l := &ls[k]
			l.stage, l.last, l.place = s, k == len(ls)-1, s.nodes[0].Layer-plan.NoLayer
			l.where, l.single = where, single
			if l.moves == nil {
				l.moves = moves
			}
		}
		stages = append(stages, ls)
	}
	c.stream(stages)
	return before, stages, nil
}

func (c *compiler) stage(s *stage) ([]launch, error) {
	switch n := s.nodes[0]; n.Op {
	case plan.Embed, plan.Position:
		return c.embed(n)
	case plan.Linear:
		return c.products(s)
	case plan.RMSNorm, plan.LayerNorm:
		return c.norm(s)
	case plan.Rope:
		return c.rope(n)
	case plan.Attention:
		return c.attention(s)
	case plan.Bidirectional:
		return c.bidirectional(n)
	case plan.GLU:
		return c.gate(n)
	case plan.Map:
		return c.apply(n)
	case plan.Experts:
		return c.experts(s)
	case plan.Add:
		return c.add(n)
	case plan.Pick:
		return c.pick(n)
	}
	return nil, fmt.Errorf("there is no kernel for this operation")
}

// launch is one kernel with fixed arguments.
func (c *compiler) launch(family, name string, rows plan.Dim, a *driver.Args, threads int, grid func(sh *shape) driver.Dim3) (launch, error) {
	return c.launchShared(family, name, rows, a, threads, 0, 0, grid)
}

// launchShared is launch with shared memory beside what the kernel declares, and with
// clusters of so many blocks, 0 for none.
func (c *compiler) launchShared(family, name string, rows plan.Dim, a *driver.Args, threads, shared, cluster int, grid func(sh *shape) driver.Dim3) (launch, error) {
	f, err := c.kernel(family, name)
	if err != nil {
		return launch{}, err
	}
	if f != nil && shared > 0 {
		if err := f.SetMaxDynamicShared(max(shared, c.shared[f])); err != nil {
			return launch{}, err
		}
		c.shared[f] = max(shared, c.shared[f])
	}
	return launch{name: family + " " + name, rows: rows, begin: func(s *driver.Stream, sh *shape) error {
		config := driver.LaunchConfig{Grid: grid(sh), Block: driver.Dim3{X: threads}, Shared: shared, Programmatic: c.early}
		if cluster > 0 {
			config.Cluster = driver.Dim3{X: cluster}
		}
		return f.Launch(s, config, a)
	}}, nil
}

// one is a stage of one launch.
func (c *compiler) one(family, name string, rows plan.Dim, a *driver.Args, threads int, grid func(sh *shape) driver.Dim3) ([]launch, error) {
	l, err := c.launch(family, name, rows, a, threads, grid)
	if err != nil {
		return nil, err
	}
	return []launch{l}, nil
}

func (c *compiler) rows(v plan.Value) plan.Dim { return c.l.p.Shapes[v][0] }

// count is where the number of a value's rows is.
func (c *compiler) count(v plan.Value) driver.DevicePtr {
	if c.rows(v) == plan.Rows {
		return c.step.counts + countRows
	}
	return c.step.counts + countTokens
}

func (c *compiler) forms(v plan.Value) forms { return c.l.forms(c.scratchAt, v) }

// weight is where a weight lies; 0 for none.
func (c *compiler) weight(t *tensor.Tensor) driver.DevicePtr {
	if t == nil {
		return 0
	}
	return c.weightsAt + driver.DevicePtr(c.weights.at[t])
}

type embedArgs struct {
	w, tokens, from, sampled, ids, failed, sequence, count, y driver.DevicePtr

	stride, cols, colTiles, _ int32
}

func (c *compiler) embed(n *plan.Node) ([]launch, error) {
	f, t := c.forms(n.Out), c.weights.matrices[n.Weight]
	a := embedArgs{w: c.weight(n.Weight), tokens: c.step.positions, count: c.count(n.Out), y: f.f32, stride: f.stride, cols: f.cols, colTiles: int32(t.colTiles)}
	if attr, ok := n.Attr.(plan.PositionAttr); ok && attr.Axis > 0 {
		a.tokens = c.step.axes[attr.Axis-1]
	}
	if n.Op == plan.Embed {
		a.tokens, a.from, a.sampled, a.ids, a.failed, a.sequence = c.step.tokens, c.step.from, c.step.sampled, c.step.ids, c.step.failed, c.step.sequence
	}
	return c.one(family(t.format), "embed", plan.Tokens, arguments(&a), 128, func(sh *shape) driver.Dim3 {
		return driver.Dim3{X: (t.colTiles + 3) / 4, Y: sh.tokens}
	})
}

type productArgs struct {
	w, y, bias   driver.DevicePtr
	rows, stride int32
}

type linearArgs struct {
	p                               [maxProducts]productArgs
	units, colTiles, cols, inStride int32
	x, q8, meta, h16, residual      driver.DevicePtr
	residualStride                  int32
	scale                           float32
	count                           driver.DevicePtr
	out                             forms
	norm, row                       driver.DevicePtr
	eps                             float32
	unit                            unit
}

// A unit is a gated one, see kernels/activation.cuh.
type unit struct {
	act          int32
	limit, shift float32
}

func unitOf(a plan.GLUAttr) unit {
	return unit{act: int32(a.Act), limit: float32(a.Limit), shift: float32(a.Shift)}
}

// A variant is a kernel of a product: for so many rows of the input at most, the last of
// several for any number in groups of so many.
type variant struct {
	name string
	rows int
}

var (
	plainVariants = []variant{{"linear_1", 1}, {"linear_8", 8}, {"linear_16", 16}, {"linear_32", 32}}
	gatedVariants = []variant{{"gated_1", 1}, {"gated_8", 8}, {"gated_16", 16}}
	floatVariants = []variant{{"linear_f32_1", 1}, {"linear_f32", 8}}
	splitVariants = []variant{{"linear_f32_split", 1}, {"linear_f32", 8}}
)

func (c *compiler) products(s *stage) ([]launch, error) {
	n := s.nodes[0]
	in, t := c.forms(n.In[0]), c.weights.matrices[n.Weight]
	a := linearArgs{colTiles: int32(t.colTiles), cols: in.cols, inStride: in.stride, x: in.f32, q8: in.q8, meta: in.meta, count: c.count(n.Out), scale: 1}
	for i, m := range s.nodes {
		mt := c.weights.matrices[m.Weight]
		a.p[i] = productArgs{w: c.weight(m.Weight), bias: c.weight(m.Bias), rows: int32(mt.rows)}
		a.units += int32(mt.rowTiles)
		if s.glu == nil {
			out := m.Out
			if len(s.nodes) == 1 {
				out = s.out()
			}
			f := c.forms(out)
			a.p[i].y, a.p[i].stride = f.f32, f.stride
		}
	}
	variants, kernels := plainVariants, family(t.format)
	switch arithmetic(n, c.l.lim) {
	case inFloats:
		variants, kernels = floatVariants, floatFamily(t.format)
	case inBF16:
		a.h16 = in.bf16
	case inF16:
		a.h16 = in.f16
	}
	if s.add != nil {
		r := c.forms(s.residual())
		a.residual, a.residualStride = r.f32, r.stride
	}
	if s.scale != nil {
		a.scale = float32(s.scale.Attr.(plan.MapAttr).By)
	}
	if s.glu != nil {
		variants, a.out = gatedVariants, c.forms(s.glu.Out)
		switch attr := s.glu.Attr.(type) {
		case plan.GLUAttr:
			a.unit = unitOf(attr)
		case plan.MapAttr:
			a.unit.act = int32(attr.Act)
		}
		a.units = int32((t.rowTiles + 1) / 2)
	}
	args := arguments(&a)
	one := args // of a single row
	norm := c.l.norm(s)
	if norm != nil {
		m, x := norm.nodes[0], c.forms(norm.inputs()[0])
		a.x, a.inStride, a.norm, a.eps = x.f32, x.stride, c.weight(m.Weight), float32(m.Attr.(plan.NormAttr).Eps)
		if norm.pick != nil {
			a.row = c.step.rows
		}
		one = arguments(&a)
	}

	if c.splits(n, &a) {
		variants = splitVariants
	}
	rows, blocks := c.rows(n.Out), c.blocks(int(a.units))
	var by []launch
	name := kernels
	for i, v := range variants {
		given, shared := args, 0
		if i == 0 {
			if given = one; norm != nil {
				shared = 2 * int(in.stride) // the row in 16 bits, or in less
			}
		}
		cluster := 0
		if c.hopper && v.name == splitVariants[0].name {
			cluster = segments
		}
		l, err := c.launchShared(kernels, v.name, rows, given, 256, shared, cluster, func(sh *shape) driver.Dim3 {
			if cluster > 0 {
				return driver.Dim3{X: cluster * int(a.units), Y: 1}
			}
			if v.rows > 1 {
				return driver.Dim3{X: int(a.units), Y: (sh.size(rows) + v.rows - 1) / v.rows}
			}
			return driver.Dim3{X: blocks, Y: 1}
		})
		if err != nil {
			return nil, err
		}
		by = append(by, l)
		if i > 0 {
			name += ","
		}
		name += " " + v.name
	}
	return []launch{oneOf(name, by, func(sh *shape) int {
		for i, v := range variants {
			if sh.size(rows) <= v.rows {
				return i
			}
		}
		return len(variants) - 1
	})}, nil
}

// oneOf is one of several launches of the same rows.
func oneOf(name string, by []launch, which func(sh *shape) int) launch {
	return launch{
		name: name, rows: by[0].rows,
		runs:  func(sh *shape) string { return by[which(sh)].name },
		begin: func(st *driver.Stream, sh *shape) error { return by[which(sh)].begin(st, sh) },
	}
}

// unless is l but for steps of a shape for which idle holds.
func (l launch) unless(idle func(sh *shape) bool) launch {
	name := l.name
	l.runs = func(sh *shape) string {
		if idle(sh) {
			return ""
		}
		return name
	}
	return l
}

// segments is how many parts the columns of a product are cut into.
const segments = 8

// maxSplitTiles is how many tiles of columns a segment has at most where it is a block's.
const maxSplitTiles = 128

// splits reports whether a single row of a product has a block for each segment, where
// there are clusters: of a small weight, a router's for example, few multiprocessors would
// read it otherwise.
func (c *compiler) splits(n *plan.Node, a *linearArgs) bool {
	return n.Weight.DType == tensor.F32 && arithmetic(n, c.l.lim) == inFloats &&
		segments*int(a.units) <= productBlocks*c.multiprocessors && int(a.colTiles) <= segments*maxSplitTiles
}

// productBlocks is how many blocks of a product a multiprocessor holds.
const productBlocks = 2

// blocks is how many blocks share so many units of work: no more than run at a time,
// and as few as do not take longer, so that all of them have the same to do.
func (c *compiler) blocks(units int) int { return c.blocksOf(units, 1) }

// blocksOf is blocks where several such products are done at the same time.
func (c *compiler) blocksOf(units, products int) int {
	most := max(1, productBlocks*c.multiprocessors)
	rounds := (units*products + most - 1) / most
	return (units + rounds - 1) / max(1, rounds)
}

type normArgs struct {
	x                       driver.DevicePtr
	stride, cols            int32
	group, centered         int32
	eps                     float32
	width                   int32
	weight, bias, at, count driver.DevicePtr
	out                     forms
}

func (c *compiler) norm(s *stage) ([]launch, error) {
	n := s.nodes[0]
	attr := n.Attr.(plan.NormAttr)
	in := c.forms(s.inputs()[0])
	a := normArgs{
		x: in.f32, stride: in.stride, cols: in.cols, group: int32(attr.Group), eps: float32(attr.Eps), width: int32(n.Weight.Elems()),
		weight: c.weight(n.Weight), bias: c.weight(n.Bias), count: c.count(n.Out), out: c.forms(n.Out),
	}
	if n.Op == plan.LayerNorm {
		a.centered = 1
	}
	if s.pick != nil {
		a.at = c.step.rows
	}
	rows := c.rows(n.Out)
	l, err := c.launch("norm", "norm", rows, arguments(&a), 512, func(sh *shape) driver.Dim3 { return driver.Dim3{X: sh.size(rows)} })
	if err == nil && c.l.normed[n.Out] == s {
		l = l.unless(func(sh *shape) bool { return sh.size(rows) == 1 })
	}
	return []launch{l}, err
}

// elementGrid is that of the kernels for which a warp does 32 columns of a row.
func elementGrid(rows plan.Dim, stride int32) func(sh *shape) driver.Dim3 {
	return func(sh *shape) driver.Dim3 {
		return driver.Dim3{X: (int(stride)/32 + 7) / 8, Y: min(sh.size(rows), 65535)}
	}
}

type gateArgs struct {
	gate, up                             driver.DevicePtr
	gateStride, upStride, cols, gateCols int32
	unit                                 unit
	_                                    int32
	count                                driver.DevicePtr
	out                                  forms
}

func (c *compiler) gate(n *plan.Node) ([]launch, error) {
	g, u, out := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := gateArgs{gate: g.f32, up: u.f32, gateStride: g.stride, upStride: u.stride, cols: u.cols, gateCols: g.cols, unit: unitOf(n.Attr.(plan.GLUAttr)), count: c.count(n.Out), out: out}
	return c.one("elementwise", "gate", c.rows(n.Out), arguments(&a), 256, elementGrid(c.rows(n.Out), out.stride))
}

type mapArgs struct {
	x                        driver.DevicePtr
	stride, cols, which, act int32
	by                       float32
	_                        int32
	count                    driver.DevicePtr
	out                      forms
}

func (c *compiler) apply(n *plan.Node) ([]launch, error) {
	x, out, attr := c.forms(n.In[0]), c.forms(n.Out), n.Attr.(plan.MapAttr)
	a := mapArgs{x: x.f32, stride: x.stride, cols: x.cols, which: int32(attr.Func), act: int32(attr.Act), by: float32(attr.By), count: c.count(n.Out), out: out}
	return c.one("elementwise", "map", c.rows(n.Out), arguments(&a), 256, elementGrid(c.rows(n.Out), out.stride))
}

type addArgs struct {
	x, y                      driver.DevicePtr
	xStride, yStride, cols, _ int32
	count                     driver.DevicePtr
	out                       forms
}

func (c *compiler) add(n *plan.Node) ([]launch, error) {
	x, y, out := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := addArgs{x: x.f32, y: y.f32, xStride: x.stride, yStride: y.stride, cols: x.cols, count: c.count(n.Out), out: out}
	return c.one("elementwise", "add", c.rows(n.Out), arguments(&a), 256, elementGrid(c.rows(n.Out), out.stride))
}

type convertArgs struct {
	x            driver.DevicePtr
	stride, cols int32
	at, count    driver.DevicePtr
	out          forms
}

type meanArgs struct {
	x                             driver.DevicePtr
	stride, cols                  int32
	rows, sequence, starts, count driver.DevicePtr
	out                           forms
}

func (c *compiler) pick(n *plan.Node) ([]launch, error) {
	in, out := c.forms(n.In[0]), c.forms(n.Out)
	if picksMean(n) {
		a := meanArgs{x: in.f32, stride: in.stride, cols: in.cols, rows: c.step.rows, sequence: c.step.sequence, starts: c.step.starts, count: c.count(n.Out), out: out}
		return c.one("elementwise", "mean", plan.Rows, arguments(&a), 256, elementGrid(plan.Rows, out.stride))
	}
	a := convertArgs{x: in.f32, stride: in.stride, cols: in.cols, at: c.step.rows, count: c.count(n.Out), out: out}
	return c.one("elementwise", "convert", plan.Rows, arguments(&a), 256, elementGrid(plan.Rows, out.stride))
}

// convert writes the forms of a value that its stage has not written.
func (c *compiler) convert(v plan.Value) ([]launch, error) {
	if !slices.Contains(c.l.wanted[v][inBytes:], true) {
		return nil, nil
	}
	out := c.forms(v)
	a := convertArgs{x: out.f32, stride: out.stride, cols: out.cols, count: c.count(v), out: out}
	a.out.f32 = 0
	ls, err := c.one("elementwise", "convert", c.rows(v), arguments(&a), 256, elementGrid(c.rows(v), out.stride))
	if err == nil {
		ls[0].moves = func(b *plan.Batch) int { return b.Size(c.rows(v)) * c.written(v) }
	}
	return ls, err
}

type finiteArgs struct {
	x                    driver.DevicePtr
	stride, cols         int32
	count, sequence, bad driver.DevicePtr
}

// finite looks at the residual stream of every token: what goes wrong in a layer stays
// there.
func (c *compiler) finite() ([]launch, error) {
	if c.l.p.Residual < 0 {
		return nil, nil
	}
	in := c.forms(c.l.p.Residual)
	a := finiteArgs{x: in.f32, stride: in.stride, cols: in.cols, count: c.count(c.l.p.Residual), sequence: c.step.sequence, bad: c.step.bad}
	ls, err := c.one("elementwise", "finite", plan.Tokens, arguments(&a), 256, func(sh *shape) driver.Dim3 { return driver.Dim3{X: sh.tokens} })
	if err == nil {
		ls[0].where, ls[0].moves = "look at the residual", func(b *plan.Batch) int { return len(b.Tokens) * 4 * int(in.cols) }
	}
	return ls, err
}
