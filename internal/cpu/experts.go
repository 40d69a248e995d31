package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// experts computes mixtures of experts.
type experts struct{ ordinary }

func (experts) multiplies(n *plan.Node) []*tensor.Tensor {
	a := n.Attr.(plan.ExpertsAttr)
	return []*tensor.Tensor{a.Gate[0], a.Up[0]}
}

func (experts) desk(n *plan.Node, lim *plan.Limits) deskSize {
	r := n.Attr.(plan.ExpertsAttr).Route
	size := deskSize{totals: tileRows * lim.Tokens, places: tileRows * lim.Tokens * r.Used}
	if r.Given { // the same expert may be given several times
		size.totals = size.places
	}
	return size
}

func (experts) spaces() []*space { return []*space{expertWork} }

func (o experts) read(e *executable, n *plan.Node, w *plan.Weight) int {
	if s, ok := e.spaces[expertWork].(*expertSpace); ok && w.Of > 1 { // the reference records no routes
		return len(s.active)
	}
	return o.ordinary.read(e, n, w)
}

// A mixture is a compiled mixture of experts. A work item is a tile of an expert that some token
// has chosen, for all tokens that have chosen it. So a step reads the weights that it needs once,
// and even one token has work for all workers.
type mixture struct {
	e      *executable
	n      *plan.Node
	used   int
	before bool // weights multiply inputs
	space  *expertSpace

	experts int // without identities

	router         *router
	unit           *unit
	gate, up, down *expertWeights
	ungated        bool    // up is gate
	direct         operand // rows of the node's input
	in, hidden     operand // by place
	first          int     // hidden row that is the first of gate and up
}

// kernels returns kernels that route, gather the inputs of experts with several tokens, compute the
// hidden rows, and then compute the output rows, each a sum over a token's experts.
func (experts) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	a := n.Attr.(plan.ExpertsAttr)
	r, err := routerOf(n)
	if err != nil {
		return nil, err
	}
	m := &mixture{
		e: e, n: n, used: a.Route.Used, before: a.Route.Before, space: e.space(expertWork).(*expertSpace), experts: len(a.Gate),
		router: r, unit: e.tier.unit(a.GLU), ungated: a.Ungated(),
	}
	for _, w := range []struct {
		to           **expertWeights
		list, biases []*tensor.Tensor
	}{{&m.gate, a.Gate, a.GateBias}, {&m.up, a.Up, a.UpBias}, {&m.down, a.Down, a.DownBias}} {
		if *w.to, err = e.expertWeights(w.list, w.biases); err != nil {
			return nil, err
		}
	}
	m.operands()
	if a.Hidden != nil {
		if e.port == nil {
			return nil, errAlone
		}
		m.first = a.Hidden[e.port.part].Lo
	}
	rows := func() int { return e.size(n.Out) }
	ks := []kernel{
		{size: rows, grain: 8, run: func(worker, lo, hi int) {
			for t := lo; t < hi; t++ {
				at := t * m.used
				chosen := m.space.chosen[at : at+m.used]
				e.given(n, t, chosen)
				m.router.route(&m.space.desks[worker], e.row(n.In[1], t), chosen, m.space.weights[at:at+m.used])
			}
		}},
		one(func() { m.space.group(rows()*m.used, m.used, len(a.Gate)) }),
		{size: func() int {
			if m.space.shared == 0 {
				return 0
			}
			return rows() * m.used
		}, grain: 8, run: m.gather},
		// No prefetch: the experts are not known before.
		{size: func() int { return len(m.space.active) * m.gate.tiles }, ahead: func(int) {}, run: func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				m.hide(&e.desks[worker], m.space.active[i/m.gate.tiles], i%m.gate.tiles)
			}
		}},
	}
	if a.Hidden != nil {
		ks = append(ks, e.exchange(func() int { return rows() * m.used }, 8, func(lo, hi int) { m.join(a.Hidden, lo, hi) })...)
	}
	return append(ks, kernel{
		size: func() int {
			if rows() == 0 {
				return 0
			}
			return m.down.tiles
		}, ahead: func(worker int) {
			m.down.fetch(m.space.first.Load(), m.down.tiles*worker/len(e.desks))
		}, run: func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				m.combine(&e.desks[worker], i)
			}
		},
	}), nil
}

// join copies the other parts' hidden rows of places lo to hi. All parts have chosen the same experts
// and so have the same places.
func (m *mixture) join(hidden plan.Cut, lo, hi int) {
	m.e.port.others(func(part int, e *executable) {
		theirs, r := e.spaces[expertWork].(*expertSpace), hidden[part]
		for i := lo; i < hi; i++ {
			if to := m.hidden.from(i); to.records != nil {
				from := operand{records: theirs.hiddenRec, bytes: m.hidden.bytes}.from(i).records
				copy(to.records[recordBytes(r.Lo):recordBytes(r.Hi)], from[recordBytes(r.Lo):])
			} else {
				from := operand{floats: theirs.hidden, width: m.hidden.width}.from(i).floats
				copy(to.floats[r.Lo:r.Hi], from[r.Lo:])
			}
		}
	})
}

// given sets chosen to the experts that are given for row t, if they are.
func (e *executable) given(n *plan.Node, t int, chosen []int32) {
	if a := n.Attr.(plan.ExpertsAttr); a.Route.Given {
		for i, x := range e.row(n.In[2], t) {
			if chosen[i] = 0; x > 0 {
				chosen[i] = int32(min(x, float32(len(a.Gate)-1)))
			}
		}
	}
}

// operands chooses the forms of the rows.
func (m *mixture) operands() {
	in, d, ffn, s := m.n.In[0], m.gate.cols, m.down.cols, m.space
	m.in = operand{width: rowStride(d), bytes: recordStride(d)}
	m.direct = m.in
	if m.gate.packed != nil || m.up.packed != nil {
		m.in.records, m.direct.records = s.inRec, m.e.record(in, 0)
	}
	if m.gate.packed == nil || m.up.packed == nil {
		m.in.floats, m.direct.floats = s.in, m.e.code.buffers[m.e.code.scratch.Buffer[in]]
	}
	m.hidden = operand{width: rowStride(ffn), bytes: recordStride(ffn)}
	if m.down.packed != nil {
		m.hidden.records = s.hiddenRec
	} else {
		m.hidden.floats = s.hidden
	}
}

// gather copies the inputs of places lo to hi.
func (m *mixture) gather(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		t := int(m.space.token[i])
		if m.in.records != nil {
			copy(m.in.from(i).records[:m.in.bytes], m.direct.from(t).records)
		}
		if m.in.floats != nil {
			copy(m.in.from(i).floats[:m.gate.cols], m.direct.from(t).floats)
		}
	}
}

// hide computes tile i of an expert's hidden rows.
func (m *mixture) hide(d *desk, expert int32, i int) {
	first, tokens := m.space.tokens(expert)
	x := m.in.from(first)
	if tokens == 1 {
		x = m.direct.from(int(m.space.token[first]))
	}
	m.gate.multiply(d, d.totals[0], expert, i, x, tokens)
	upTotals := d.totals[0]
	if !m.ungated {
		upTotals = d.totals[1]
		m.up.multiply(d, upTotals, expert, i, x, tokens)
	}
	lo := i * tileRows
	rows := min(tileRows, m.gate.rows-lo)
	g, u := d.values[:rows], d.values[tileRows:][:rows]
	for r := range tokens {
		clear(g)
		clear(u)
		in := float32(1)
		if m.before {
			in = m.space.weight[first+r]
		}
		m.gate.add(g, in, d.totals[0], expert, i, r, tokens)
		m.up.add(u, in, upTotals, expert, i, r, tokens)
		h, at := m.hidden.from(first+r), m.first+lo
		if m.hidden.floats != nil {
			m.unit.apply(h.floats[at:at+rows], g, u, &d.unit)
			continue
		}
		m.unit.apply(g, g, u, &d.unit)
		m.e.tier.vector.quantize(h.records[recordBytes(at):recordBytes(at+rows)], g, 0, rows)
	}
}

// combine computes tile i of the output: every expert's results for its tokens, and then each
// token's sum, best expert first.
func (m *mixture) combine(d *desk, i int) {
	for _, expert := range m.space.active {
		first, tokens := m.space.tokens(expert)
		m.down.multiply(d, d.places[first*tileRows:], expert, i, m.hidden.from(first), tokens)
	}
	lo := i * tileRows
	rows := min(tileRows, m.down.rows-lo)
	for t := range m.e.size(m.n.Out) {
		y := m.e.row(m.n.Out, t)[lo : lo+rows]
		clear(y)
		for c := t * m.used; c < (t+1)*m.used; c++ {
			expert, out := m.space.chosen[c], m.space.weights[c]
			if int(expert) >= m.experts {
				for j, v := range m.e.row(m.n.In[2], t)[lo : lo+rows] {
					y[j] += float32(out * v)
				}
				continue
			}
			if m.before {
				out = 1
			}
			first, tokens := m.space.tokens(expert)
			m.down.add(y, out, d.places[first*tileRows:], expert, i, int(m.space.place[c])-first, tokens)
		}
		m.e.wrote(m.n.Out, t, lo, lo+rows)
	}
}

// expertWeights are the weights of one kind for all experts, and their biases, or those of all heads.
type expertWeights struct {
	e          *executable
	rows, cols int
	tiles      int
	lanes      int         // neighboring rows in totals
	biases     [][]float32 // nil: no biases

	packed   []*interleaved // for products with records; nil: with float32
	products productFunc

	weights    []*tensor.Tensor
	stored     storedDots // or nil
	dequantize dequantizer
}

func (e *executable) expertWeights(list, biases []*tensor.Tensor) (*expertWeights, error) {
	d := list[0].DType
	w := &expertWeights{e: e, rows: list[0].Rows(), cols: list[0].Cols(), lanes: dotRows, stored: e.tier.stored[d], dequantize: e.tier.dequantizer(d)}
	w.tiles = (w.rows + tileRows - 1) / tileRows
	for _, t := range list {
		if packed := e.weights[t]; packed != nil {
			w.packed, w.lanes, w.products = append(w.packed, packed), packed.lanes, e.tier.quantized.products[d]
		} else {
			w.weights = append(w.weights, e.stored(t))
		}
	}
	for _, t := range biases {
		b, err := floats(t)
		if err != nil {
			return nil, err
		}
		w.biases = append(w.biases, b)
	}
	return w, nil
}

// multiply computes tile i of an expert for the first tokens rows of x, in totals
// [groups][tokens][lanes].
func (w *expertWeights) multiply(d *desk, totals []float32, expert int32, i int, x operand, tokens int) {
	totals = totals[:tileRows*tokens]
	if w.packed == nil {
		w.multiplyFloats(d, totals, w.weights[expert], i*tileRows, x, tokens)
		return
	}
	clear(totals)
	p := w.packed[expert]
	groups := tileRows / w.lanes
	w.products(totals, p.section(i*groups, min(groups, p.groups()-i*groups)), x.records, x.bytes, tokens)
}

// multiplyFloats computes the rows from lo on as linear does.
func (w *expertWeights) multiplyFloats(d *desk, totals []float32, weight *tensor.Tensor, lo int, x operand, tokens int) {
	size := weight.RowBytes()
	for hi := min(w.rows, lo+tileRows); lo < hi; lo += dotRows {
		few := w.stored != nil && tokens <= storedTokens
		if !few {
			for r := range min(dotRows, hi-lo) {
				w.dequantize(d.tile[r*x.width:][:w.cols], weight.Row(lo+r))
			}
		}
		for t := 0; t < tokens; t += dotTokens {
			n := min(dotTokens, tokens-t)
			if few {
				w.stored(totals[t*dotRows:], weight.Data[lo*size:], size, x.floats[t*x.width:], w.cols, x.width, n)
			} else {
				w.e.tier.dots(totals[t*dotRows:], d.tile, x.floats[t*x.width:], w.cols, x.width, n)
			}
		}
		totals = totals[dotRows*tokens:]
	}
}

// add adds to y the result of tile i of an expert for row r of tokens, plus the bias, times by.
func (w *expertWeights) add(y []float32, by float32, totals []float32, expert int32, i, r, tokens int) {
	var bias []float32
	if w.biases != nil {
		bias = w.biases[expert][i*tileRows:][:len(y)]
	}
	for g := 0; g < len(y); g += w.lanes {
		part := y[g:min(len(y), g+w.lanes)]
		from := totals[g*tokens+r*w.lanes:][:len(part)]
		if bias == nil {
			for j, v := range from {
				part[j] += float32(by * v)
			}
			continue
		}
		for j, v := range from {
			part[j] += float32(by * (v + bias[g+j]))
		}
	}
}

// write sets y to the result of a tile for row r of tokens, without a bias.
func (w *expertWeights) write(y, totals []float32, r, tokens int) {
	for g := 0; g < len(y); g += w.lanes {
		copy(y[g:min(len(y), g+w.lanes)], totals[g*tokens+r*w.lanes:])
	}
}

// fetch prefetches tile i of an expert.
func (w *expertWeights) fetch(expert int32, i int) {
	if w.packed == nil {
		return
	}
	p, groups := w.packed[min(int(expert), len(w.packed)-1)], tileRows/w.lanes // expert may belong to a mixture with more experts
	prefetch(&p.data[i*groups*p.groupBytes()], min(groups, p.groups()-i*groups)*p.groupBytes()/64)
}
