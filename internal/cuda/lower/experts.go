package lower

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// maxExperts is the maximum number of experts that the kernels choose from.
const maxExperts = 2048

// ActiveBytes is the size in bytes of the record of a chosen expert; see kernels/experts.cuh.
const ActiveBytes = 16

// partBytes is the size in bytes of the record of a part of an expert's slots; see
// kernels/experts.cuh.
const partBytes = 16

// MissingBytes is the size in bytes of the record of an expert to fetch; see
// kernels/expertcache.cu.
const MissingBytes = 8

// An expertRoom is the scratch memory of a mixture of experts. All mixtures of a program share it,
// one after another. A slot is a token paired with one of its experts.
type expertRoom struct {
	chosen, weights, slots driver.DevicePtr    // by token and rank
	tokens                 driver.DevicePtr    // by slot
	active, parts, sizes   driver.DevicePtr    // chosen experts; the parts of their slots; the numbers of chosen experts, slots and parts
	missing, missed        driver.DevicePtr    // chosen experts that the device lacks; their number
	apart                  [2]driver.DevicePtr // by slot: the products of gate and up, if separate launches compute them
	hidden                 driver.DevicePtr    // by slot: the gated values in the form that the down product reads
	out                    driver.DevicePtr    // by slot: the experts' outputs; earlier, the gathered input rows
	own                    driver.DevicePtr    // by slot: of the gated values, the columns of a part; see exchange
}

// slotRows returns the maximum number of slots for the given number of tokens (see
// kernels/experts.cuh), and the number of rows to allocate: copies of the last slots may read up to
// wideRows beyond them.
func slotRows(a *plan.ExpertsAttr, tokens int) (rows, reached int) {
	slots := tokens * a.Route.Used
	rows = slots + 7*min(slots, len(a.Gate))
	return rows, chunked(rows + wideRows)
}

// unjoined reports whether two launches compute the gate and up products instead of one.
func unjoined(a *plan.ExpertsAttr, lim *plan.Limits) bool {
	return late(a.GLU) || weights.LaidAs(a.Gate[0].DType, lim) != weights.LaidAs(a.Up[0].DType, lim)
}

// experts implements [plan.Experts].
type experts struct{ ordinary }

func (experts) check(n *plan.Node) error {
	if a := n.Attr.(plan.ExpertsAttr); len(a.Gate)+a.Identity > maxExperts {
		return fmt.Errorf("no kernel for %d experts, of which %d is the most", len(a.Gate)+a.Identity, maxExperts)
	}
	return checkCut(n)
}

func (experts) reads(s *fuse.Stage, i int, lim *plan.Limits) []kind {
	if i > 0 {
		return []kind{inFloats}
	}
	a := s.Node().Attr.(plan.ExpertsAttr)
	if a.Route.Before {
		return []kind{inFloats}
	}
	return []kind{arithmetic(a.Gate[0], lim), arithmetic(a.Up[0], lim)}
}

// scratch returns the sizes of the fields of [expertRoom], in order.
func (experts) scratch(p *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	a := n.Attr.(plan.ExpertsAttr)
	tokens := lim.Size(p.Shapes[n.Out][0])
	chosen := min(tokens*a.Route.Used, len(a.Gate))
	rows, reached := slotRows(&a, tokens)
	elems := rows * rowStride(a.Gate[0].Rows())
	hidden, joined, own := 2*reached*rowStride(width(&a)), 0, 0
	if arithmetic(a.Down[0], lim) == inFloats {
		hidden = 4 * rows * rowStride(width(&a))
	}
	if a.Hidden != nil {
		own = 4 * elems
	}
	if unjoined(&a, lim) {
		joined = 4 * elems
	}
	parts := partBytes * (chosen + rows/16)
	out := max(4*rows*rowStride(int(p.Shapes[n.Out][1])), 2*reached*rowStride(int(p.Shapes[n.In[0]][1])))
	entries := 4 * tokens * a.Route.Used
	return []int{entries, entries, entries, 4 * rows, ActiveBytes * chosen, parts, 12, MissingBytes * chosen, 4, joined, joined, hidden, out, own}
}

// roomOf returns the scratch memory of n.
func (m *mixture) roomOf(n *plan.Node) expertRoom {
	r := m.scratch(n)
	return expertRoom{
		chosen: r[0], weights: r[1], slots: r[2], tokens: r[3], active: r[4], parts: r[5], sizes: r[6], missing: r[7], missed: r[8],
		apart: [2]driver.DevicePtr{r[9], r[10]}, hidden: r[11], out: r[12], own: r[13],
	}
}

type routeArgs struct {
	logits, bias                 driver.DevicePtr
	stride, experts, used, score int32
	normalize, groups            int32
	groupsUsed, groupTop         int32
	scale                        float64
	count, chosen, weights       driver.DevicePtr
	slots, tokens, active, sizes driver.DevicePtr
}

type groupArgs struct {
	chosen                              driver.DevicePtr
	experts, used, rows, _              int32
	count, slots, tokens, active, parts driver.DevicePtr
	sizes                               driver.DevicePtr
}

type gatherArgs struct {
	x, to         driver.DevicePtr
	stride, _     int32
	tokens, sizes driver.DevicePtr
}

type expertProductArgs struct {
	W, powers, bias driver.DevicePtr
	Apart           int64
	biasApart, _    int32
}

// ExpertArgs are the arguments of the products of experts.
type ExpertArgs struct {
	P                           [2]expertProductArgs
	rows, units, colTiles, cols int32
	inStride, stride            int32
	x, h16                      driver.DevicePtr
	tokens, active, count       driver.DevicePtr
	parts, y                    driver.DevicePtr
	out                         device.Forms
	unit                        unit
	divided                     float32
}

type combineArgs struct {
	y                        driver.DevicePtr
	stride, cols             int32
	slots, weights, residual driver.DevicePtr
	residualStride, used     int32
	count                    driver.DevicePtr
	out                      device.Forms
}

// A mixture builds the launches of a mixture of experts.
type mixture struct {
	*Compiler
	attr plan.ExpertsAttr
	rows plan.Dim
	e    expertRoom
}

// mixture returns the mixture of n.
func (c *Compiler) mixture(n *plan.Node) *mixture {
	m := &mixture{Compiler: c, attr: n.Attr.(plan.ExpertsAttr), rows: c.rows(n.Out)}
	m.e = m.roomOf(n)
	return m
}

// width returns the number of hidden values of a slot, of all parts.
func width(a *plan.ExpertsAttr) int {
	if n := len(a.Hidden); n > 0 {
		return a.Hidden[n-1].Hi
	}
	return a.Gate[0].Rows()
}

// hidden returns the location of the gated values.
func (m *mixture) hidden() device.Forms {
	f := device.Forms{Stride: int32(rowStride(width(&m.attr))), Cols: int32(width(&m.attr)), By: half(0)}
	switch arithmetic(m.attr.Down[0], m.Layout.lim) {
	case inBF16:
		f.Bf16 = m.e.hidden
	case inF16:
		f.F16 = m.e.hidden
	default:
		f.F32 = m.e.hidden
	}
	return f
}

// slots returns the maximum number of slots in a step of shape sh.
func (m *mixture) slots(sh *Shape) int { return sh.Size(m.rows) * m.attr.Route.Used }

// launches routes tokens, groups them by expert, multiplies, and adds the results. If a step has a
// single token, the token forms a group for each of its experts.
func (experts) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	m := c.mixture(n)
	all, err := m.route(n)
	if err != nil {
		return nil, err
	}
	fetch, err := m.fetch()
	if err != nil {
		return nil, err
	}
	all = append(all, fetch...)
	hidden := m.hidden()
	of := hidden
	if m.attr.Hidden != nil {
		own := m.attr.Gate[0].Rows()
		of = device.Forms{F32: m.e.own, Stride: int32(rowStride(own)), Cols: int32(own)}
	}
	unit, err := m.units(n, of)
	if err != nil {
		return nil, err
	}
	all = append(all, unit...)
	if m.attr.Hidden != nil {
		joined, err := c.exchange(n, m.attr.Hidden, of, hidden, m.e.sizes+4, func(sh *Shape) int {
			rows, _ := slotRows(&m.attr, sh.Size(m.rows))
			return rows
		})
		if err != nil {
			return nil, err
		}
		all = append(all, joined...)
	}
	down, err := m.expertWeights(m.attr.Down, m.attr.DownBias)
	if err != nil {
		return nil, err
	}
	e, to := &m.e, c.forms(s.Out())
	product, err := m.product(m.attr.Down[0], hidden, false, &ExpertArgs{P: [2]expertProductArgs{down}, stride: to.Stride, y: e.out}, false)
	if err != nil {
		return nil, err
	}
	all = append(all, product...)

	if expertForm(n) {
		l, err := m.combineForm(s)
		return append(all, l), err
	}
	a := combineArgs{
		y: e.out, stride: to.Stride, cols: to.Cols, slots: e.slots, weights: e.weights,
		used: int32(m.attr.Route.Used), count: c.count(n.Out), out: to,
	}
	if s.Add != nil {
		r := c.forms(s.Residual())
		a.residual, a.residualStride = r.F32, r.Stride
	}
	l, err := c.byColumns("experts", "combine", m.rows, device.Arguments(&a), to.Stride, nil)
	if err != nil {
		return nil, err
	}
	l.Moves = m.combineMoves(s)
	return append(all, l), nil
}

// route chooses the experts of each token and assigns slots to the tokens of each expert.
func (m *mixture) route(n *plan.Node) ([]Launch, error) {
	e, r, logits := &m.e, &m.attr.Route, m.forms(n.In[1])
	experts := len(m.attr.Gate)
	routed := experts + m.attr.Identity
	a := routeArgs{
		logits: logits.F32, bias: m.weight(n.Bias), stride: logits.Stride, experts: int32(routed), used: int32(r.Used), score: int32(r.Score),
		groups: int32(r.Groups), groupsUsed: int32(r.GroupsUsed), groupTop: int32(r.GroupTop), scale: r.Scale,
		count: m.count(n.Out), chosen: e.chosen, weights: e.weights, slots: e.slots, tokens: e.tokens,
		active: e.active, sizes: e.sizes,
	}
	if r.Normalize {
		a.normalize = 1
	}
	shared := 8*(2*routed+r.Groups+r.Used) + 4*r.Used
	family, name, args := "experts", "route", device.Arguments(&a)
	if expertForm(n) {
		family, name = "expertforms", "routeForm"
		form := routeForm{scales: m.weight(m.attr.Scales), jitter: r.Jitter, real: int32(experts)}
		if r.Given {
			given := m.forms(n.In[2])
			form.given, form.givenStride = given.F32, given.Stride
		}
		args = device.Arguments(&routeFormArgs{route: a, form: form})
	}
	route, err := m.launchShared(family, name, m.rows, args, 128, shared, 0, func(sh *Shape) driver.Dim3 { return driver.Dim3{X: sh.Size(m.rows)} })
	if err != nil {
		return nil, err
	}
	group, err := m.group(n)
	if err != nil {
		return nil, err
	}
	route.Moves = func(b *plan.Batch) int { return b.Size(m.rows) * 4 * routed }
	return []Launch{route, group}, nil
}

// group assigns slots to the tokens of each expert in steps of several tokens.
func (m *mixture) group(n *plan.Node) (Launch, error) {
	e, experts, used := &m.e, len(m.attr.Gate), m.attr.Route.Used
	g := groupArgs{chosen: e.chosen, experts: int32(experts), used: int32(used), count: m.count(n.Out), slots: e.slots, tokens: e.tokens, active: e.active, parts: e.parts, sizes: e.sizes}
	group, err := m.byPart(func(rows int32) (Launch, error) {
		g.rows = rows
		return m.launch("experts", "group", m.rows, device.Arguments(&g), 256, func(*Shape) driver.Dim3 { return driver.Dim3{X: experts} })
	})
	if err != nil {
		return Launch{}, err
	}
	group.Moves = func(b *plan.Batch) int { return b.Size(m.rows) * 4 * used }
	return group.unless(func(sh *Shape) bool { return sh.Size(m.rows) == 1 }), nil
}

// byPart returns a launch that depends on the size of parts in slots.
func (m *mixture) byPart(launch func(rows int32) (Launch, error)) (Launch, error) {
	var by []Launch
	for _, rows := range partRows {
		l, err := launch(int32(rows))
		if err != nil {
			return Launch{}, err
		}
		by = append(by, l)
	}
	return oneOf(by[0].Name, by, m.part), nil
}

// partRows are the sizes of parts in slots, which select the kernels.
var partRows = []int{16, 32, 64, 128}

// part returns an index of partRows for a step of shape sh: the smallest size that holds the mean
// number of slots of an expert.
func (m *mixture) part(sh *Shape) int {
	experts := len(m.attr.Gate)
	share := (m.slots(sh) + experts - 1) / experts
	for i, n := range partRows {
		if share <= n {
			return i
		}
	}
	return len(partRows) - 1
}

// gathered returns the launch that copies each token's row to its slots, and the location of the
// copies.
func (m *mixture) gathered(x device.Forms, form kind) (Launch, device.Forms, error) {
	to := x
	to.F32, to.Bf16, to.F16 = 0, 0, 0
	a := gatherArgs{stride: x.Stride, tokens: m.e.tokens, sizes: m.e.sizes}
	if form == inBF16 {
		a.x, a.to, to.Bf16 = x.Bf16, m.e.out, m.e.out
	} else {
		a.x, a.to, to.F16 = x.F16, m.e.out, m.e.out
	}
	l, err := m.launch("experts", "gather", m.rows, device.Arguments(&a), 256, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (int(x.Stride)/8 + 255) / 256, Y: min(m.slots(sh), 65535)}
	})
	l.Moves = m.rowsMove(4 * int(x.Stride))
	return l.unless(func(sh *Shape) bool { return sh.Size(m.rows) == 1 }), to, err
}

// units computes the gated units of all slots and writes them to out.
func (m *mixture) units(n *plan.Node, out device.Forms) ([]Launch, error) {
	e, x, ffn := &m.e, m.forms(n.In[0]), m.attr.Gate[0].Rows()
	gate, err := m.expertWeights(m.attr.Gate, m.attr.GateBias)
	if err != nil {
		return nil, err
	}
	up, err := m.expertWeights(m.attr.Up, m.attr.UpBias)
	if err != nil {
		return nil, err
	}
	// rows returns the rows that w is multiplied with, and whether they are those of tokens.
	var all []Launch
	rows := func(w *tensor.Tensor) (device.Forms, bool, error) {
		if !m.attr.Route.Before {
			return x, true, nil
		}
		l, dealt, err := m.deal(n, x, int(x.Cols), 0, arithmetic(w, m.Layout.lim))
		all = append(all, l)
		return dealt, false, err
	}
	if !unjoined(&m.attr, m.Layout.lim) {
		a := ExpertArgs{P: [2]expertProductArgs{gate, up}, out: out, unit: unitOf(m.attr.GLU)}
		in, ofTokens, err := rows(m.attr.Gate[0])
		if err != nil {
			return nil, err
		}
		ls, err := m.product(m.attr.Gate[0], in, ofTokens, &a, true)
		return append(all, ls...), err
	}
	for i, p := range []expertProductArgs{gate, up} {
		w := []*tensor.Tensor{m.attr.Gate[0], m.attr.Up[0]}[i]
		a := ExpertArgs{P: [2]expertProductArgs{p}, y: e.apart[i], stride: out.Stride}
		in, ofTokens, err := rows(w)
		if err != nil {
			return nil, err
		}
		ls, err := m.product(w, in, ofTokens, &a, false)
		if err != nil {
			return nil, err
		}
		all = append(all, ls...)
	}
	a := chainArgs{x: e.apart[1], stride: out.Stride, cols: out.Cols, count: e.sizes + 4, out: out, length: 1}
	a.links[0] = linkArgs{kind: linkGated, x: e.apart[0], stride: out.Stride, each: 1}
	a.links[0].setUnit(m.attr.GLU)
	l, err := m.launch("elementwise", "chain", m.rows, device.Arguments(&a), 256, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (int(out.Stride)/32 + 7) / 8, Y: min(m.slots(sh), 65535)}
	})
	l.Moves = m.rowsMove(8*ffn + m.rowBytes(arithmetic(m.attr.Down[0], m.Layout.lim), ffn))
	return append(all, l), err
}

// expertWeights returns the locations of the experts' matrices, and of their biases if there are
// any.
func (m *mixture) expertWeights(ws, biases []*tensor.Tensor) (a expertProductArgs, err error) {
	apart := func(ts []*tensor.Tensor) (int, error) {
		if len(ts) < 2 {
			return 0, nil
		}
		at := m.Weights.At
		d := at[ts[1]] - at[ts[0]]
		for i, t := range ts {
			if at[t] != at[ts[0]]+i*d {
				return 0, fmt.Errorf("%s has its place elsewhere; the weights of experts must not be those of other operations", t.Name)
			}
		}
		return d, nil
	}
	if _, cache := m.cached(); cache != nil {
		x := cache.PartOf[ws[0]]
		a.W, a.Apart = m.WeightsAt+driver.DevicePtr(cache.At+cache.Mixtures[x.Mixture].Parts[x.Part]), int64(cache.Bytes)
	} else {
		d, err := apart(ws)
		if err != nil {
			return a, err
		}
		a.W, a.Apart = m.weight(ws[0]), int64(d)
	}
	if t := m.Weights.Matrices[ws[0]]; t.Scaled() {
		a.powers = a.W + driver.DevicePtr(t.Tiles())
	}
	if len(biases) > 0 {
		d, err := apart(biases)
		if err != nil {
			return a, err
		}
		a.bias, a.biasApart = m.weight(biases[0]), int32(d/4)
	}
	return a, nil
}

// The kernels of a product of experts; see [variant]. rows counts the rows of one expert. No [Table]
// has them: only the device knows how many rows each expert gets, so a measurement with other tokens
// says nothing, and all products of a mixture share the parts into which its slots are cut.
var (
	expertVariants      = []variant{{name: "expert_1", rows: 1, kind: ofRow}, {name: "expert_8", rows: 8, kind: ofSeveral}, {name: "expert_16", rows: 16, kind: ofSeveral}}
	gatedExpertVariants = []variant{{name: "gated_1", rows: 1, kind: ofRow}, {name: "gated_8", rows: 8, kind: ofSeveral}, {name: "gated_16", rows: 16, kind: ofSeveral}}

	// Kernels with matrix instructions of four warps, one for each of partRows.
	wideExperts = []variant{
		{name: "expert_1", rows: 1, kind: ofRow},
		{name: "expert_16", rows: 16, kind: ofWide}, {name: "expert_32", rows: 32, kind: ofWide}, {name: "expert_64", rows: 64, kind: ofWide}, {name: "expert_128", rows: 128, kind: ofWide},
	}
	gatedWideExperts = []variant{
		{name: "gated_1", rows: 1, kind: ofRow},
		{name: "expert_gated_16", rows: 16, kind: ofWide}, {name: "expert_gated_32", rows: 32, kind: ofWide}, {name: "expert_gated_64", rows: 64, kind: ofWide}, {name: "expert_gated_128", rows: 128, kind: ofWide},
	}
)

// product multiplies rows of in by the experts' matrices, which have the shape and format of w. The
// rows belong to tokens if ofTokens is true, otherwise to slots.
func (m *mixture) product(w *tensor.Tensor, in device.Forms, ofTokens bool, a *ExpertArgs, gated bool) ([]Launch, error) {
	t := m.Weights.Matrices[w]
	form := arithmetic(w, m.Layout.lim)
	a.rows, a.units, a.colTiles, a.cols, a.inStride = int32(t.Rows), int32(t.RowTiles), int32(t.ColTiles), in.Cols, in.Stride
	a.active, a.count, a.parts, a.divided = m.e.active, m.e.sizes, m.e.parts, divided(in, form)
	if gated {
		a.units = int32((t.RowTiles + 1) / 2)
	}
	variants := expertVariants
	switch {
	case form == inFloats && gated:
		variants = []variant{{name: "gated_f32_1", rows: 1}, {name: "gated_f32", rows: 8}}
	case form == inFloats:
		variants = []variant{{name: "expert_f32_1", rows: 1}, {name: "expert_f32", rows: 8}}
	case m.Hopper && gated:
		variants = gatedWideExperts
	case m.Hopper:
		variants = wideExperts
	case gated:
		variants = gatedExpertVariants
	}
	// args returns the arguments for rows of tokens, which the kernel looks up by slot, or for rows
	// of slots.
	args := func(in device.Forms, tokens bool) *driver.Args {
		a.x, a.h16, a.tokens = in.F32, in.F16, 0
		if form == inBF16 {
			a.h16 = in.Bf16
		}
		if tokens {
			a.tokens = m.e.tokens
		}
		return device.Arguments(a)
	}
	var all []Launch
	direct := args(in, ofTokens)
	ofSlots := direct
	if ofTokens && m.Hopper && form != inFloats {
		gather, rows, err := m.gathered(in, form)
		if err != nil {
			return nil, err
		}
		all, ofSlots = append(all, gather), args(rows, false)
	}
	experts, units, used := len(m.attr.Gate), int(a.units), m.attr.Route.Used
	alone := m.blocksOf(units, used, 1) // of a single row
	if gated && smallUnits(&t) {
		alone = m.blocksOf(t.RowTiles, used, 1)
	}
	var by []Launch
	name := ""
	for i, v := range variants {
		given, threads, family := direct, 256, "experts_"+weights.Suffix(t.Format)
		grid := func(sh *Shape) (blocks, cluster driver.Dim3) {
			if sh.Size(m.rows) == 1 {
				return driver.Dim3{X: alone, Y: used}, cluster
			}
			return driver.Dim3{X: units, Y: min(m.slots(sh), experts)}, cluster
		}
		switch {
		case form == inFloats:
			family = "experts_floats_" + weights.Suffix(t.Format)
		case v.kind == ofSeveral:
			family = "several_experts_" + weights.Suffix(t.Format)
		case v.kind == ofWide:
			given, threads, family = ofSlots, wideThreads, "wide_experts_"+weights.Suffix(t.Format)
			units := unitsOf(t.Rows, gated)
			grid = func(sh *Shape) (driver.Dim3, driver.Dim3) {
				slots := m.slots(sh)
				parts := min(slots, experts) * ((slots/experts + v.rows) / v.rows)
				cluster, _ := m.estimate(&t, units*parts, 1, v.rows, segments, false)
				return m.wideGrid(&t, units*parts, 1, v.rows, cluster), cluster.dim()
			}
		}
		l, err := m.launchClusters(family, v.name, m.rows, given, threads, m.sharedOf(&v, &t), grid)
		if err != nil {
			return nil, err
		}
		by = append(by, l)
		if i > 0 {
			name += ","
		} else {
			name = family
		}
		name += " " + v.name
	}
	l := oneOf(name, by, func(sh *Shape) int {
		if sh.Size(m.rows) == 1 {
			return 0
		}
		if variants[1].kind == ofWide {
			return 1 + m.part(sh)
		}
		// The mean number of tokens of an expert.
		share := (m.slots(sh) + experts - 1) / experts
		for i, v := range variants {
			if v.rows > 1 && share <= v.rows {
				return i
			}
		}
		return len(variants) - 1
	})
	l.Moves = m.moves(w, a.cols, gated)
	return append(all, l), nil
}

// rowsMove returns a function that counts the given number of bytes for each slot.
func (m *mixture) rowsMove(bytes int) func(b *plan.Batch) int {
	return func(b *plan.Batch) int { return b.Size(m.rows) * m.attr.Route.Used * bytes }
}

// moves returns the bytes that a product of experts reads and writes. It counts the weights of as
// many experts as the tokens can have chosen, because only the device knows which experts they
// chose.
func (m *mixture) moves(w *tensor.Tensor, cols int32, gated bool) func(b *plan.Batch) int {
	weights, out := m.weightBytes(w), 4*w.Rows()
	if gated {
		weights *= 2
		out = m.rowBytes(arithmetic(m.attr.Down[0], m.Layout.lim), w.Rows())
	}
	rows := m.rowsMove(m.rowBytes(arithmetic(w, m.Layout.lim), int(cols)) + out)
	return func(b *plan.Batch) int {
		return min(b.Size(m.rows)*m.attr.Route.Used, len(m.attr.Gate))*weights + rows(b)
	}
}

// combineMoves returns the bytes that combine reads and writes.
func (m *mixture) combineMoves(s *fuse.Stage) func(b *plan.Batch) int {
	out := s.Out()
	row := m.written(out)
	if s.Add != nil {
		row += m.read(s.Residual(), inFloats)
	}
	slots := m.rowsMove(m.read(out, inFloats))
	return func(b *plan.Batch) int { return b.Size(m.rows)*row + slots(b) }
}
