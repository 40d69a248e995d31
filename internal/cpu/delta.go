package cpu

import (
	"math"
	"unsafe"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// delta computes the gated delta rule in the chunked form.
type delta struct{ ordinary }

const (
	// deltaRows is the number of rows whose products with the matrix and with earlier rows are
	// computed together. Blocks of so many rows begin at multiples of it.
	deltaRows = 16
	// deltaEps is added to the squared sum of a query or a key.
	deltaEps = 1e-6
)

// A deltaJob is a compiled delta node. Each head of a sequence is a work item.
type deltaJob struct {
	e    *executable
	n    *plan.Node
	a    plan.DeltaAttr
	pool *kvPool
	*deltaSpace
	kernels *attentionKernels
	cacheKernels
	rate, bias []float32
	width      int // length of a row of sums: ValueDim rounded up
}

// A deltaSpace is the scratch memory of the delta rule, shared by all nodes of a program.
type deltaSpace struct {
	q, k, beta, gate []float32 // of the step's tokens
	desks            []deltaDesk
}

// A deltaDesk is the scratch memory of one worker. Of each row, the key has an even row of its
// slices, and the query the odd row after it.
type deltaDesk struct {
	columns []float32 // [KeyDim, 2*deltaRows] keys and queries
	inward  []float32 // [2*deltaRows, scoreStride] weights of the matrix's rows
	weight  []float32 // [2*deltaRows, scoreStride] weights of the chunk's rows
	sum     []float32 // [2*deltaRows, width], or room for two rows of keys
	total   []float32 // [gates] -G
	decay   []float32 // [deltaRows, scoreStride] exp(G_i-G_j), or by channel [KeyDim, scoreStride] exp(G_i-G_j) k_j for one i
	grown   []float32 // [scoreStride] exp(G) of the last row
	tops    []float32 // results of softWeights that are not used
	sums    []float32
	matrix  []float32 // [KeyDim, ValueDim] between the chunks of a step
	at      stretch
}

// deltaSizes are the sizes of a deltaSpace.
type deltaSizes struct{ keys, heads, gates, key, sum, decay, matrix int }

// deltaRoom returns the sizes that the delta nodes of p need.
func deltaRoom(p *plan.Program) (z deltaSizes) {
	for i := range p.Nodes {
		a, ok := p.Nodes[i].Attr.(plan.DeltaAttr)
		if !ok {
			continue
		}
		z.keys, z.heads, z.gates = max(z.keys, a.KeyHeads*a.KeyDim), max(z.heads, a.Heads), max(z.gates, a.Heads*a.Gates())
		z.key, z.sum, z.matrix = max(z.key, a.KeyDim), max(z.sum, 2*deltaRows*deltaWidth(&a), 2*a.KeyDim), max(z.matrix, a.KeyDim*a.ValueDim+headUnit)
		if z.decay = max(z.decay, deltaRows); a.ByChannel {
			z.decay = max(z.decay, a.KeyDim)
		}
	}
	return z
}

func deltaWidth(a *plan.DeltaAttr) int { return (a.ValueDim + headUnit - 1) / headUnit * headUnit }

func (z deltaSizes) bytes(tokens, workers int) int {
	desk := z.key*2*deltaRows + 2*2*deltaRows*scoreStride + z.sum + z.key + z.decay*scoreStride + scoreStride + 2*z.decay + z.matrix
	return 4 * (tokens*(2*z.keys+z.heads+z.gates) + workers*desk)
}

// deltaWork is the space of a program's delta nodes.
var deltaWork = &space{
	bytes: func(b *Backend, p *plan.Program, lim *plan.Limits) int {
		return deltaRoom(p).bytes(lim.Tokens, b.threads)
	},
	make: func(e *executable) any {
		z, t := deltaRoom(e.p), e.lim.Tokens
		s := &deltaSpace{
			q: make([]float32, t*z.keys), k: make([]float32, t*z.keys), beta: make([]float32, t*z.heads), gate: make([]float32, t*z.gates),
			desks: make([]deltaDesk, len(e.desks)),
		}
		for i := range s.desks {
			s.desks[i] = deltaDesk{
				columns: make([]float32, z.key*2*deltaRows), inward: make([]float32, 2*deltaRows*scoreStride), weight: make([]float32, 2*deltaRows*scoreStride),
				sum: make([]float32, z.sum), total: make([]float32, z.key), decay: make([]float32, z.decay*scoreStride),
				grown: make([]float32, scoreStride), tops: make([]float32, z.decay), sums: make([]float32, z.decay), matrix: make([]float32, z.matrix),
			}
		}
		return s
	},
}

func (delta) spaces() []*space { return []*space{deltaWork} }

func (delta) pieces(n *plan.Node) int { return n.Attr.(plan.DeltaAttr).ValueDim }

func (delta) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	a := n.Attr.(plan.DeltaAttr)
	rate, bias, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	pool := e.kv(a.Rows)
	j := &deltaJob{
		e: e, n: n, a: a, pool: pool, deltaSpace: e.space(deltaWork).(*deltaSpace), kernels: e.tier.attention,
		cacheKernels: e.tier.attention.caches[tensor.F32], rate: rate, bias: bias, width: deltaWidth(&a),
	}
	return []kernel{
		one(func() { e.reach(pool.pagePool) }),
		{size: func() int { return len(e.ids) * a.KeyHeads }, grain: 4, run: j.prepare},
		{size: func() int { return e.batch.Seqs() * a.Heads }, run: j.heads},
	}, nil
}

// prepare normalizes the queries and keys of items lo to hi, stores the keys, and computes the
// gates of the heads that share them. Items are ordered by token, then key head.
func (j *deltaJob) prepare(worker, lo, hi int) {
	a, d, vector := &j.a, &j.desks[worker], j.e.tier.vector
	for i := lo; i < hi; i++ {
		t, g := i/a.KeyHeads, i%a.KeyHeads
		normal := func(to, x []float32, by float64) []float32 {
			j.kernels.scale(to, x, float32(by/math.Sqrt(vector.squares(x, 0)+deltaEps)))
			return to
		}
		normal(j.q[i*a.KeyDim:][:a.KeyDim], j.e.row(j.n.In[0], t)[g*a.KeyDim:][:a.KeyDim], 1/math.Sqrt(float64(a.KeyDim)))
		past := j.e.past(j.pool, j.e.seq[t])
		keys := keysOf(past.slot(int(j.e.batch.Positions[t]), g))
		for c, x := range normal(j.k[i*a.KeyDim:][:a.KeyDim], j.e.row(j.n.In[1], t)[g*a.KeyDim:][:a.KeyDim], 1) {
			keys[c*j.pool.pageTokens] = x
		}
		beta, gate := j.e.row(j.n.In[3], t), j.e.row(j.n.In[4], t)
		for which := range a.Shared() {
			h := headOf(a, g, which)
			j.beta[t*a.Heads+h] = float32(deltaBeta(a, beta[h]))
			from, to := h*a.Gates(), (h+1)*a.Gates()
			j.gates(d, j.gate[t*len(gate):][from:to], gate[from:to], j.bias[from:to], j.rate[h])
		}
	}
}

// headOf is the inverse of [plan.DeltaAttr.Key].
func headOf(a *plan.DeltaAttr, key, which int) int {
	if a.Tiled {
		return which*a.KeyHeads + key
	}
	return key*a.Shared() + which
}

// deltaBeta returns the β of an input.
func deltaBeta(a *plan.DeltaAttr, b float32) float64 { return a.Beta / (1 + math.Exp(-float64(b))) }

// gates sets to to the g of the inputs x.
func (j *deltaJob) gates(d *deltaDesk, to, x, bias []float32, rate float32) {
	n := len(to)
	for i, b := range bias {
		to[i] = x[i] + b
	}
	if j.a.Floor != 0 {
		for i := range to {
			to[i], d.grown[i] = -rate*to[i], float32(j.a.Floor)
		}
		j.e.tier.vector.glu(to, to, d.grown[:n], plan.Sigmoid)
		return
	}
	for i, u := range to {
		d.grown[i] = -max(u, -u)
	}
	j.grow(d, n)
	for i, u := range to {
		to[i] = rate * (max(u, 0) + float32(log1p(float64(d.grown[i]))))
	}
}

// log1p returns log(1+t) for t from 0 to 1, with an error below 1e-9 of it: twice the series of the
// inverse hyperbolic tangent of t/(2+t).
func log1p(t float64) float64 {
	s := t / (2 + t)
	z := s * s
	return 2 * s * (1 + z*(1./3+z*(1./5+z*(1./7+z*(1./9+z*(1./11+z*(1./13+z*(1./15+z*(1./17)))))))))
}

// keysOf and valuesOf return the numbers of a slot of an exact state.
func keysOf(s slot) []float32 {
	numbers, _, _ := s.key()
	return words[float32](numbers)
}

func valuesOf(s slot) []float32 {
	numbers, _, _ := s.value()
	return words[float32](numbers)
}

// A deltaHead is a work item: a head of a sequence.
type deltaHead struct {
	past
	head, key, which int
	from             []float32 // the matrix at the beginning of the chunk [KeyDim, ValueDim], nil for zeros
	begin            int       // position of the chunk's first row
	next             []byte    // what is read after the matrix
}

// heads computes items lo to hi. Items are ordered by sequence, then head.
func (j *deltaJob) heads(worker, lo, hi int) {
	d, a, b := &j.desks[worker], &j.a, j.e.batch
	size := a.KeyDim * a.ValueDim
	for i := lo; i < hi; i++ {
		s, h := i/a.Heads, i%a.Heads
		it := deltaHead{past: j.e.past(j.pool, int32(s)), head: h}
		it.key, it.which = a.Key(h)
		in, out := j.e.slots(j.n.State, int32(s))
		if slot, _ := b.Tables[j.e.p.States[j.n.State].Group].Slots(s); slot >= 0 {
			it.from = in[h*size:][:size]
			it.next = bytesOf(it.from)
			if i+1 < hi && h+1 < a.Heads {
				it.next = bytesOf(in[(h+1)*size:][:size])
			}
		}
		t, pos := int(b.Start[s]), int(b.Positions[b.Start[s]])
		end := pos + int(b.Start[s+1]) - t
		last := end / plan.RecurrentChunk * plan.RecurrentChunk
		for pos < end {
			it.begin = pos / plan.RecurrentChunk * plan.RecurrentChunk
			rows := min(end, (pos/deltaRows+1)*deltaRows) - pos
			j.rows(d, &it, t, pos, rows)
			t, pos = t+rows, pos+rows
			if pos%plan.RecurrentChunk != 0 {
				continue
			}
			to := d.matrix[:size]
			if pos == last {
				to = out[h*size:][:size]
			}
			j.advance(d, &it, rows, to)
			it.from, it.next = to, bytesOf(to)
		}
	}
}

func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// rows computes rows of a chunk: those of the tokens from t on, which begin at position pos.
func (j *deltaJob) rows(d *deltaDesk, it *deltaHead, t, pos, rows int) {
	a := &j.a
	j.add(d, it, t, pos, rows)
	clear(d.sum[:2*rows*j.width])
	if it.from != nil {
		d.at = stretch{numbers: bytesOf(it.from), next: it.next, n: a.KeyDim, width: a.ValueDim}
		j.weighted(d.sum, d.inward, 2*rows, j.width, &d.at, a.ValueDim)
	}
	j.addRows(d, it, 0, 2*rows, it.begin, pos)
	for r := range rows {
		j.addRows(d, it, 2*r, 2, pos, pos+r)
		u := valuesOf(it.slot(pos+r, it.key))[it.which*a.ValueDim:][:a.ValueDim]
		v, beta, sum := j.e.row(j.n.In[2], t+r)[it.head*a.ValueDim:][:a.ValueDim], j.beta[(t+r)*a.Heads+it.head], d.sum[2*r*j.width:]
		for c, x := range v {
			u[c] = beta * (x - sum[c])
		}
		j.addRows(d, it, 2*r+1, 1, pos+r, pos+r+1)
		copy(j.e.row(j.n.Out, t+r)[it.head*a.ValueDim:][:a.ValueDim], d.sum[(2*r+1)*j.width:])
		j.e.wrote(j.n.Out, t+r, it.head*a.ValueDim, (it.head+1)*a.ValueDim)
	}
}

// addRows adds u of positions from to to, by their weights, to n rows of sums from row on.
func (j *deltaJob) addRows(d *deltaDesk, it *deltaHead, row, n, from, to int) {
	j.addValues(d, it, d.sum[row*j.width:], d.weight[row*scoreStride:], n, from, to)
}

// addValues adds u of positions from to to, by weights from the chunk's first row on, to n rows.
func (j *deltaJob) addValues(d *deltaDesk, it *deltaHead, sum, weight []float32, n, from, to int) {
	a := &j.a
	for from < to {
		at := it.slot(from, it.key)
		numbers, _, _ := at.value()
		d.at = stretch{numbers: numbers[4*it.which*a.ValueDim:], next: numbers, n: min(to-from, j.pool.pageTokens-at.at), width: a.Shared() * a.ValueDim}
		j.weighted(sum, weight[from-it.begin:], n, j.width, &d.at, a.ValueDim)
		from += d.at.n
	}
}

// add adds the gates of rows to G, which it stores negated, and computes their weights of the
// matrix's rows and of the chunk's rows up to themselves.
func (j *deltaJob) add(d *deltaDesk, it *deltaHead, t, pos, rows int) {
	a, gates := &j.a, j.a.Gates()
	total := d.total[:gates]
	if clear(total); pos > it.begin {
		before := j.gatesOf(it, pos-1)
		for c := range total {
			total[c] = before[c*j.pool.pageTokens]
		}
	}
	for r := range rows {
		g, stored := j.gate[((t+r)*a.Heads+it.head)*gates:], j.gatesOf(it, pos+r)
		for c := range total {
			total[c] -= g[c]
			stored[c*j.pool.pageTokens] = total[c]
		}
		k, q := j.row(it, t+r)
		keyTo, queryTo := d.inward[2*r*scoreStride:][:a.KeyDim], d.inward[(2*r+1)*scoreStride:][:a.KeyDim]
		if !a.ByChannel {
			d.grown[0] = float32(math.Exp(-float64(total[0])))
			j.kernels.scale(keyTo, k, d.grown[0])
			j.kernels.scale(queryTo, q, d.grown[0])
			continue
		}
		j.kernels.scale(d.grown[:a.KeyDim], total, -1)
		j.grow(d, a.KeyDim)
		j.e.tier.vector.scale(keyTo, k, d.grown[:a.KeyDim], 1)
		j.e.tier.vector.scale(queryTo, q, d.grown[:a.KeyDim], 1)
	}
	if a.ByChannel {
		j.scoreChannels(d, it, t, pos, rows)
		return
	}
	for r := range rows {
		k, q := j.row(it, t+r)
		d.column(2*r, 2*rows, k, q)
	}
	for from, end := it.begin, pos+rows; from < end; from += d.at.n {
		d.at.keys(&it.past, it.key, from, end)
		d.at.next = d.at.numbers
		j.scores(d.weight[from-it.begin:], d.columns, 2*rows, 2*rows, &d.at, a.KeyDim)
	}
	j.decayScores(d, it, pos, rows)
}

// row returns the key and the query of a head for token t.
func (j *deltaJob) row(it *deltaHead, t int) (k, q []float32) {
	at := (t*j.a.KeyHeads + it.key) * j.a.KeyDim
	return j.k[at:][:j.a.KeyDim], j.q[at:][:j.a.KeyDim]
}

// column writes k and q to columns r and r+1 of n.
func (d *deltaDesk) column(r, n int, k, q []float32) {
	for c, x := range k {
		to := d.columns[c*n+r:][:2]
		to[0], to[1] = x, q[c]
	}
}

// gatesOf returns -G from a position on. Channels are pageTokens apart.
func (j *deltaJob) gatesOf(it *deltaHead, pos int) []float32 {
	return keysOf(it.slot(pos, it.key))[(j.a.KeyDim+it.which*j.a.Gates())*j.pool.pageTokens:]
}

// grow replaces the first n numbers of grown, none of which is above 0, by their exponentials:
// relative to the largest of them and 0, each is itself.
func (j *deltaJob) grow(d *deltaDesk, n int) {
	d.grown[n] = 0
	j.kernels.softWeights(d.grown, pad(d.grown, n+1), 1, d.tops, d.sums)
}

// pad fills row from n up to whole registers with numbers whose exponentials are 0, and returns the
// new length.
func pad(row []float32, n int) int {
	none := float32(math.Inf(-1))
	for ; n%headUnit != 0; n++ {
		row[n] = none
	}
	return n
}

// decayScores multiplies the products of keys by exp(G_i-G_j). -G does not fall, so that of row i is
// the largest of the rows up to it.
func (j *deltaJob) decayScores(d *deltaDesk, it *deltaHead, pos, rows int) {
	before := pos - it.begin
	n := before + rows
	last := d.decay[(rows-1)*scoreStride:][:scoreStride]
	for from, end := it.begin, pos+rows; from < end; {
		m := min(end-from, j.pool.pageTokens-from%j.pool.pageTokens)
		copy(last[from-it.begin:], j.gatesOf(it, from)[:m])
		from += m
	}
	padded := pad(last, n)
	none := float32(math.Inf(-1))
	for r := range rows - 1 {
		row := d.decay[r*scoreStride:]
		for at := copy(row, last[:before+r+1]); at < padded; at++ {
			row[at] = none
		}
	}
	j.kernels.softWeights(d.decay, padded, rows, d.tops, d.sums)
	for r := range rows {
		by := d.decay[r*scoreStride:][:before+r+1]
		for i := 2 * r; i < 2*r+2; i++ {
			row := d.weight[i*scoreStride:][:len(by)]
			j.e.tier.vector.scale(row, row, by, 1)
		}
	}
}

// scoreChannels sets the weights of the chunk's rows for gates by channel. The products with rows of
// earlier blocks are those of exp(G_i-G) k_i and exp(G-G_j) k_j, with G of the last row before the
// block, so that no exponent is above 0; those with rows of the same block, of k_i and
// exp(G_i-G_j) k_j.
func (j *deltaJob) scoreChannels(d *deltaDesk, it *deltaHead, t, pos, rows int) {
	a, block := &j.a, pos/deltaRows*deltaRows
	decayed, asked := d.sum[:a.KeyDim], d.sum[a.KeyDim:][:a.KeyDim] // not in use yet
	if block > it.begin {
		before := j.gatesOf(it, block-1)
		for r := range rows {
			g := j.gatesOf(it, pos+r)
			for c := range a.KeyDim {
				d.grown[c] = before[c*j.pool.pageTokens] - g[c*j.pool.pageTokens]
			}
			j.grow(d, a.KeyDim)
			k, q := j.row(it, t+r)
			j.e.tier.vector.scale(decayed, k, d.grown[:a.KeyDim], 1)
			j.e.tier.vector.scale(asked, q, d.grown[:a.KeyDim], 1)
			d.column(2*r, 2*rows, decayed, asked)
		}
		j.decayKeys(d, it, it.begin, block)
		j.scores(d.weight, d.columns, 2*rows, 2*rows, &d.at, a.KeyDim)
	}
	for r := range rows {
		k, q := j.row(it, t+r)
		d.column(0, 2, k, q)
		j.decayKeys(d, it, block, pos+r+1)
		j.scores(d.weight[2*r*scoreStride+block-it.begin:], d.columns, 2, 2, &d.at, a.KeyDim)
	}
}

// decayKeys sets decay to exp(G_i-G_j) k_j for positions j from from to end, where i is the last of
// them, and d.at to it.
func (j *deltaJob) decayKeys(d *deltaDesk, it *deltaHead, from, end int) {
	a, tokens, n := &j.a, j.pool.pageTokens, end-from
	for at := from; at < end; {
		m := min(end-at, tokens-at%tokens)
		g := j.gatesOf(it, at)
		for c := range a.KeyDim {
			copy(d.decay[c*scoreStride+at-from:][:m], g[c*tokens:])
		}
		at += m
	}
	padded := n
	if n%headUnit != 0 {
		for c := range a.KeyDim {
			padded = pad(d.decay[c*scoreStride:], n)
		}
	}
	j.kernels.softWeights(d.decay, padded, a.KeyDim, d.tops, d.sums)
	for at := from; at < end; {
		m := min(end-at, tokens-at%tokens)
		keys := keysOf(it.slot(at, it.key))
		for c := range a.KeyDim {
			to, k := d.decay[c*scoreStride+at-from:][:m], keys[c*tokens:][:m]
			for i := range to {
				to[i] *= k[i]
			}
		}
		at += m
	}
	numbers := bytesOf(d.decay)
	d.at = stretch{numbers: numbers, next: numbers, n: n, width: scoreStride}
}

// advance writes the matrix at the end of the chunk to to, which may be the one at its beginning.
// The last of the rows computed before is the chunk's last.
func (j *deltaJob) advance(d *deltaDesk, it *deltaHead, rows int, to []float32) {
	a, end := &j.a, it.begin+plan.RecurrentChunk
	if a.ByChannel {
		g := j.gatesOf(it, end-1)
		for c := range a.KeyDim {
			d.grown[c] = -g[c*j.pool.pageTokens]
		}
		j.grow(d, a.KeyDim)
		j.decayKeys(d, it, it.begin, end)
	}
	last := d.decay[(rows-1)*scoreStride:]
	for lo := 0; lo < a.KeyDim; lo += deltaRows {
		n, weight := min(deltaRows, a.KeyDim-lo), d.weight
		if a.ByChannel {
			weight = d.decay[lo*scoreStride:]
		} else {
			for from := it.begin; from < end; from += d.at.n {
				d.at.keys(&it.past, it.key, from, end)
				keys, at := words[float32](d.at.numbers), from-it.begin
				for c := range n {
					j.e.tier.vector.scale(weight[c*scoreStride+at:][:d.at.n], keys[(lo+c)*d.at.width:][:d.at.n], last[at:][:d.at.n], 1)
				}
			}
		}
		clear(d.sum[:n*j.width])
		for r := range n {
			by := d.grown[0]
			if a.ByChannel {
				by = d.grown[lo+r]
			}
			if it.from != nil {
				j.kernels.scale(d.sum[r*j.width:][:a.ValueDim], it.from[(lo+r)*a.ValueDim:][:a.ValueDim], by)
			}
		}
		j.addValues(d, it, d.sum, weight, n, it.begin, end)
		for r := range n {
			copy(to[(lo+r)*a.ValueDim:][:a.ValueDim], d.sum[r*j.width:])
		}
	}
}

// moved counts each matrix once, and again where it is written, and the rows of the chunks.
func (delta) moved(e *executable, n *plan.Node) int {
	a := n.Attr.(plan.DeltaAttr)
	matrices, rows := &e.p.States[n.State], &e.p.States[a.Rows]
	size := 0
	for s := range e.batch.Seqs() {
		in, out := e.batch.Tables[matrices.Group].Slots(s)
		for _, slot := range []int32{in, out} {
			if slot >= 0 {
				size += matrices.Size
			}
		}
		first, last := int(e.batch.Positions[e.batch.Start[s]]), int(e.batch.Positions[e.batch.Start[s+1]-1])
		size += (last + 1 - e.p.Groups[rows.Group].FirstVisible(first)) * rows.Width()
	}
	return 4 * size
}
