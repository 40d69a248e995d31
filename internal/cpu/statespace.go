package cpu

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// stateSpace is the layer of Mamba-2.
type stateSpace struct{ ordinary }

const (
	chunkTokens = plan.RecurrentChunk
	// chunkExponents is the number of exponents of a row: those of its chunk, that of the state
	// before the chunk, and what fills a register.
	chunkExponents = chunkTokens + headUnit
	// pieceTokens is the most tokens of a piece, whose rows are multiplied together.
	pieceTokens = 32
	// matrixPart is the most rows of a state that are multiplied together.
	matrixPart = contextSegment
	// headsTogether is the most heads of a group that share the products of outputs and inputs.
	headsTogether = 8
)

// A stateSpaceJob is a compiled node.
type stateSpaceJob struct {
	e *executable
	n *plan.Node
	a plan.StateSpaceAttr

	decays, bias []float32 // [Heads]
	skip         []float32 // [Heads*HeadDim]
	rows         *rowsPool
	floats       *cacheKernels
	desks        []stateSpaceDesk
	heads        int // of a work item in this step
	parts        int // of a row that is stored in this step
}

// A stateSpaceDesk is the scratch memory of one worker.
type stateSpaceDesk struct {
	outputs  []float32 // [States, pieceTokens]: C, transposed
	weights  []float32 // [parts of States, pieceTokens, scoreStride]: C by rows
	scores   []float32 // [pieceTokens, scoreStride]: C·B
	shares   []float32 // [pieceTokens, scoreStride]: exponents, then the weights of x
	y        []float32 // [pieceTokens, width]
	matrices []float32 // [heads, States, width]: the states of a work item
	inputs   []float32 // [matrixPart, scoreStride]: B, decayed
	steps    []float32 // [Heads]
	softplus []float32 // see softplusOf
	top      [pieceTokens]float32
	total    [pieceTokens]float32
	at       stretch
}

// A rowsPool is the pages of the state per token. A page of n tokens holds, in this order,
//
//	s*x [heads, n, headDim]
//	B   [groups, states, n]
//	s*A [heads, n]
type rowsPool struct {
	*pagePool
	a              *plan.StateSpaceAttr
	n              int
	inputs, decays int // offsets in floats
}

func newRowsPool(e *executable, a *plan.StateSpaceAttr) *rowsPool {
	n := e.lim.PageTokens
	p := &rowsPool{pagePool: e.pools[a.Rows], a: a, n: n, inputs: n * a.Heads * a.HeadDim}
	p.decays = p.inputs + n*a.Groups*a.States
	return p
}

// of returns the numbers of the page that holds position pos of sequence s, and the position's
// place in it.
func (p *rowsPool) of(e *executable, s, pos int) (page []float32, at int) {
	table := &e.batch.Tables[p.state.Group]
	i := int(table.Start[s]) + pos/p.n - int(table.First[s])
	return words[float32](p.pages[table.Pages[i]]), pos % p.n
}

// x returns s*x of head h from place at of a page on, input B of group g, value by value, and decay
// s*A of head h.
func (p *rowsPool) x(page []float32, h, at int) []float32 { return page[(h*p.n+at)*p.a.HeadDim:] }
func (p *rowsPool) input(page []float32, g, at int) []float32 {
	return page[p.inputs+g*p.a.States*p.n+at:]
}
func (p *rowsPool) decay(page []float32, h, at int) []float32 { return page[p.decays+h*p.n+at:] }

// headRow returns the length of a head rounded up to what kernels write.
func headRow(a *plan.StateSpaceAttr) int { return (a.HeadDim + headUnit - 1) / headUnit * headUnit }

// stateParts returns the number of parts of a state's rows.
func stateParts(a *plan.StateSpaceAttr) int { return (a.States + matrixPart - 1) / matrixPart }

// stateSpaceSizes are the sizes of a desk.
type stateSpaceSizes struct{ outputs, weights, y, matrices, steps int }

func sizesOfStateSpaces(p *plan.Program) (z stateSpaceSizes, any bool) {
	for i := range p.Nodes {
		a, ok := p.Nodes[i].Attr.(plan.StateSpaceAttr)
		if !ok {
			continue
		}
		any = true
		width := headRow(&a)
		z.outputs = max(z.outputs, a.States*pieceTokens+headUnit)
		z.weights = max(z.weights, stateParts(&a)*pieceTokens*scoreStride)
		z.y = max(z.y, pieceTokens*width)
		z.matrices = max(z.matrices, min(headsTogether, a.Heads/a.Groups)*a.States*width)
		z.steps = max(z.steps, a.Heads)
	}
	return z, any
}

var stateSpaceWork = &space{
	bytes: func(b *Backend, p *plan.Program, _ *plan.Limits) int {
		z, any := sizesOfStateSpaces(p)
		if !any {
			return 0
		}
		const fixed = 2*pieceTokens*scoreStride + matrixPart*scoreStride + exponentStride + 2*pieceTokens
		return b.threads * 4 * (z.outputs + z.weights + z.y + z.matrices + z.steps + fixed)
	},
	make: func(e *executable) any {
		z, _ := sizesOfStateSpaces(e.p)
		desks := make([]stateSpaceDesk, len(e.desks))
		for i := range desks {
			desks[i] = stateSpaceDesk{
				outputs: make([]float32, z.outputs), weights: make([]float32, z.weights),
				scores: make([]float32, pieceTokens*scoreStride), shares: make([]float32, pieceTokens*scoreStride),
				y: make([]float32, z.y), matrices: make([]float32, z.matrices), inputs: make([]float32, matrixPart*scoreStride),
				steps: make([]float32, z.steps), softplus: make([]float32, exponentStride),
			}
		}
		return desks
	},
}

func (stateSpace) pieces(n *plan.Node) int {
	a := n.Attr.(plan.StateSpaceAttr)
	return a.HeadDim
}

func (stateSpace) spaces() []*space { return []*space{stateSpaceWork} }

func (stateSpace) moved(e *executable, n *plan.Node) int {
	a := n.Attr.(plan.StateSpaceAttr)
	total := 0
	for s := range e.batch.Seqs() {
		from, to := e.positions(s)
		total += (to - from/chunkTokens*chunkTokens) * a.Row() // rows, which are written or read
		if from >= chunkTokens {
			total += a.Matrix()
		}
		if to/chunkTokens > from/chunkTokens {
			total += a.Matrix()
		}
	}
	return 4 * total
}

// positions returns the positions of a sequence in the step.
func (e *executable) positions(s int) (from, to int) {
	b := e.batch
	return int(b.Positions[b.Start[s]]), int(b.Positions[b.Start[s+1]-1]) + 1
}

// numbers returns the vectors of a node after checking them. Without steps skip is 0, and bias is
// not used.
func (stateSpace) numbers(a *plan.StateSpaceAttr) (decays, skip, bias []float32, err error) {
	skip = make([]float32, a.Heads)
	if decays, err = floats(a.A); err == nil && a.Steps() {
		if skip, err = floats(a.Skip); err == nil {
			bias, err = floats(a.StepBias)
		}
	}
	for i, v := range decays {
		if v > 0 {
			return nil, nil, nil, fmt.Errorf("%s[%d] is %v, want a number that is not positive", a.A.Name, i, v)
		}
	}
	return decays, skip, bias, err
}

func (o stateSpace) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	j := &stateSpaceJob{e: e, n: n, a: n.Attr.(plan.StateSpaceAttr), desks: e.space(stateSpaceWork).([]stateSpaceDesk)}
	decays, skip, bias, err := o.numbers(&j.a)
	if err != nil {
		return nil, err
	}
	for _, v := range skip {
		for range j.a.HeadDim {
			j.skip = append(j.skip, v)
		}
	}
	inFloats := e.tier.attention.caches[tensor.F32]
	j.decays, j.bias, j.rows, j.floats = decays, bias, newRowsPool(e, &j.a), &inFloats
	return []kernel{
		one(j.begin),
		{size: func() int { return len(e.ids) * j.parts }, grain: 2, run: j.store},
		{size: func() int { return e.batch.Seqs() * j.a.Groups * j.items() }, run: j.run},
	}, nil
}

// begin allocates the pages of the step, and cuts rows and heads into work items: few, as the heads
// of an item share products, but enough for all workers.
func (j *stateSpaceJob) begin() {
	j.e.reach(j.rows.pagePool)
	all := j.a.Heads * j.e.batch.Seqs()
	j.heads = min(max(1, all/(fewItems*len(j.e.desks))), headsTogether, j.a.Heads/j.a.Groups)
	if j.parts = 1; len(j.e.ids) < fewItems*len(j.e.desks) {
		j.parts = min(2*fewItems, j.a.Heads)
	}
}

// items returns the number of work items of a group.
func (j *stateSpaceJob) items() int { return (j.a.Heads/j.a.Groups + j.heads - 1) / j.heads }

// clampStep returns s within the limits of steps.
func clampStep[T float32 | float64](a *plan.StateSpaceAttr, s T) T {
	if s = max(s, T(a.StepMin)); a.StepMax > 0 {
		s = min(s, T(a.StepMax))
	}
	return s
}

// steps returns the steps of heads lo to hi in a row.
func (j *stateSpaceJob) steps(d *stateSpaceDesk, row, lo, hi int) []float32 {
	steps := d.steps[:hi-lo]
	if !j.a.Steps() {
		for i := range steps {
			steps[i] = 1
		}
		return steps
	}
	j.e.tier.vector.add(steps, j.e.row(j.n.In[1], row)[lo:hi], j.bias[lo:hi])
	softplusOf(j.e.tier.attention, steps, steps, d.softplus)
	for i, s := range steps {
		steps[i] = clampStep(&j.a, s)
	}
	return steps
}

// store writes items lo to hi to the pages: of a row of the step, a part of the heads and of the
// inputs.
func (j *stateSpaceJob) store(worker, lo, hi int) {
	d, a, f := &j.desks[worker], &j.a, j.e.tier.attention
	for i := lo; i < hi; i++ {
		r, part := i/j.parts, i%j.parts
		x := j.e.row(j.n.In[0], r)
		page, at := j.rows.of(j.e, int(j.e.seq[r]), int(j.e.batch.Positions[r]))
		first, end := a.Heads*part/j.parts, a.Heads*(part+1)/j.parts
		for k, s := range j.steps(d, r, first, end) {
			h := first + k
			f.scale(j.rows.x(page, h, at)[:a.HeadDim], x[h*a.HeadDim:][:a.HeadDim], s)
			j.rows.decay(page, h, at)[0] = s * j.decays[h]
		}
		inputs := x[a.Heads*a.HeadDim:][:a.Groups*a.States]
		for k := len(inputs) * part / j.parts; k < len(inputs)*(part+1)/j.parts; k++ {
			j.rows.input(page, k/a.States, at)[k%a.States*j.rows.n] = inputs[k]
		}
	}
}

// run computes work items lo to hi: some heads of a group, for all rows of a sequence.
func (j *stateSpaceJob) run(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		item, group := i%j.items(), i/j.items()
		s, g := group/j.a.Groups, group%j.a.Groups
		first := item * j.heads
		j.sequence(&j.desks[worker], s, g, first, min(first+j.heads, j.a.Heads/j.a.Groups))
	}
}

// A matrix is the state of a head: rows [States] of HeadDim values, width apart; nil for zeros.
type stateMatrix struct {
	values []float32
	width  int
}

// sequence computes heads lo to hi of group g for the rows of sequence s.
func (j *stateSpaceJob) sequence(d *stateSpaceDesk, s, g, lo, hi int) {
	a, width := &j.a, headRow(&j.a)
	from, to := j.e.positions(s)
	before, after := j.e.slots(j.n.State, int32(s))
	var states [headsTogether]stateMatrix
	for i := range hi - lo {
		states[i].width = a.HeadDim
		if from >= chunkTokens {
			h := g*(a.Heads/a.Groups) + lo + i
			states[i].values = before[h*a.States*a.HeadDim:] // a slot is followed by some slack
		}
	}
	for pos := from; pos < to; {
		chunk := pos / chunkTokens * chunkTokens
		n := min(pieceTokens, to-pos, chunk+chunkTokens-pos)
		p := chunkPiece{s: s, g: g, row: int(j.e.batch.Start[s]) + pos - from, n: n, chunk: chunk, from: pos - chunk}
		j.products(d, &p)
		last := p.from+n == chunkTokens
		for i := range hi - lo {
			h := g*(a.Heads/a.Groups) + lo + i
			j.head(d, &p, h, states[i])
			if last {
				matrix := d.matrices[i*a.States*width:][:a.States*width]
				j.advance(d, &p, h, states[i], matrix)
				states[i] = stateMatrix{matrix, width}
			}
		}
		pos += n
	}
	if to/chunkTokens == from/chunkTokens {
		return
	}
	for i := range hi - lo {
		h := g*(a.Heads/a.Groups) + lo + i
		for k := range a.States {
			copy(after[(h*a.States+k)*a.HeadDim:][:a.HeadDim], states[i].values[k*width:])
		}
	}
}

// A chunkPiece is n rows of a sequence in one chunk.
type chunkPiece struct {
	s, g        int
	row, n      int // first row of the step
	chunk, from int // position at which the chunk begins, and place of the first row in it
}

// products computes the products of the piece's outputs with the inputs of its chunk.
func (j *stateSpaceJob) products(d *stateSpaceDesk, p *chunkPiece) {
	a := &j.a
	at := a.Heads*a.HeadDim + (a.Groups+p.g)*a.States
	for r := range p.n {
		out := j.e.row(j.n.In[0], p.row+r)[at:][:a.States]
		for i, v := range out {
			d.outputs[i*p.n+r] = v
		}
		for part := 0; part*matrixPart < a.States; part++ {
			copy(d.weights[(part*pieceTokens+r)*scoreStride:][:matrixPart], out[part*matrixPart:])
		}
	}
	for at := 0; at < p.from+p.n; at += d.at.n {
		page := j.stretch(d, p, at)
		input := j.rows.input(page, p.g, (p.chunk+at)%j.rows.n)
		d.at.width = j.rows.n
		d.at.numbers = bytesOf(input)
		d.at.next = d.at.numbers
		j.floats.scores(d.scores[at:], d.outputs, p.n, p.n, &d.at, a.States)
	}
}

// stretch sets the length of d.at to the tokens from place at of the chunk on that are in one page
// and not after the piece, and returns the page.
func (j *stateSpaceJob) stretch(d *stateSpaceDesk, p *chunkPiece, at int) []float32 {
	page, place := j.rows.of(j.e, p.s, p.chunk+at)
	d.at.n = min(j.rows.n-place, p.from+p.n-at)
	return page
}

// sums sets G to the sum of the decays of head h from the chunk's beginning on, for the n first
// tokens of the chunk.
func (j *stateSpaceJob) sums(p *chunkPiece, h, n int, to *[chunkTokens]float64) {
	sum := 0.0
	for at := 0; at < n; {
		page, place := j.rows.of(j.e, p.s, p.chunk+at)
		for _, v := range j.rows.decay(page, h, place)[:min(j.rows.n-place, n-at)] {
			sum += float64(v)
			to[at] = sum
			at++
		}
	}
}

// exponents writes the logarithms of what remains at place t of the chunk of the tokens before it
// and, at place chunkTokens, of the state before the chunk. The largest is 0.
func exponents(to []float32, sums *[chunkTokens]float64, t int) {
	none := float32(math.Inf(-1))
	for i := range to[:chunkExponents] {
		to[i] = none
	}
	for i := range t + 1 {
		to[i] = float32(sums[t] - sums[i])
	}
	to[chunkTokens] = float32(sums[t])
}

// head computes a head's columns of the piece's rows, from the state before the chunk and the rows
// of the chunk.
func (j *stateSpaceJob) head(d *stateSpaceDesk, p *chunkPiece, h int, m stateMatrix) {
	a, width, f, v := &j.a, headRow(&j.a), j.e.tier.attention, j.e.tier.vector
	var sums [chunkTokens]float64
	j.sums(p, h, p.from+p.n, &sums)
	for r := range p.n {
		exponents(d.shares[r*scoreStride:], &sums, p.from+r)
	}
	f.softWeights(d.shares, chunkExponents, p.n, d.top[:], d.total[:])
	y := d.y[:p.n*width]
	clear(y)
	if m.values != nil {
		for part := 0; part*matrixPart < a.States; part++ {
			d.at.n = min(matrixPart, a.States-part*matrixPart)
			d.at.width, d.at.numbers = m.width, bytesOf(m.values[part*matrixPart*m.width:])
			d.at.next = d.at.numbers
			j.floats.weighted(y, d.weights[part*pieceTokens*scoreStride:], p.n, width, &d.at, a.HeadDim)
		}
	}
	for r := range p.n {
		share, t := d.shares[r*scoreStride:], p.from+r
		f.scale(y[r*width:][:width], y[r*width:][:width], share[chunkTokens])
		v.scale(share[:t+1], share[:t+1], d.scores[r*scoreStride:][:t+1], 1)
	}
	for at := 0; at < p.from+p.n; at += d.at.n {
		page := j.stretch(d, p, at)
		d.at.width, d.at.numbers = a.HeadDim, bytesOf(j.rows.x(page, h, (p.chunk+at)%j.rows.n))
		d.at.next = d.at.numbers
		j.floats.weighted(y, d.shares[at:], p.n, width, &d.at, a.HeadDim)
	}
	for r := range p.n {
		row, lo := p.row+r, h*a.HeadDim
		v.center(j.e.row(j.n.Out, row)[lo:][:a.HeadDim], j.e.row(j.n.In[0], row)[lo:][:a.HeadDim], j.skip[lo:][:a.HeadDim], y[r*width:][:a.HeadDim], 0, 1)
		j.e.wrote(j.n.Out, row, lo, lo+a.HeadDim)
	}
}

// advance computes the state of head h after the chunk from that before it, m. to may be m's.
func (j *stateSpaceJob) advance(d *stateSpaceDesk, p *chunkPiece, h int, m stateMatrix, to []float32) {
	a, width, f, v := &j.a, headRow(&j.a), j.e.tier.attention, j.e.tier.vector
	var sums [chunkTokens]float64
	j.sums(p, h, chunkTokens, &sums)
	shares := d.shares[:chunkExponents]
	exponents(shares, &sums, chunkTokens-1)
	f.softWeights(shares, chunkExponents, 1, d.top[:], d.total[:])
	if m.values == nil {
		clear(to)
	} else {
		for i := range a.States {
			f.scale(to[i*width:][:a.HeadDim], m.values[i*m.width:][:a.HeadDim], shares[chunkTokens])
		}
	}
	for first := 0; first < a.States; first += matrixPart {
		rows := min(matrixPart, a.States-first)
		for at := 0; at < chunkTokens; at += d.at.n {
			page := j.stretch(d, p, at)
			place := (p.chunk + at) % j.rows.n
			inputs := j.rows.input(page, p.g, place)
			for i := range rows {
				v.scale(d.inputs[i*scoreStride+at:][:d.at.n], inputs[(first+i)*j.rows.n:][:d.at.n], shares[at:][:d.at.n], 1)
			}
			d.at.width, d.at.numbers = a.HeadDim, bytesOf(j.rows.x(page, h, place))
			d.at.next = d.at.numbers
			j.floats.weighted(to[first*width:], d.inputs[at:], rows, width, &d.at, a.HeadDim)
		}
	}
}
