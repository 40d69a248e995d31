package cpu

import (
	"math"
	"slices"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// A selectJob is a compiled node of [plan.Select]. The products of a token's queries with the keys of
// a segment are those of attention, whose order of additions does not depend on the other tokens and
// keys. So a score depends on its token and its key alone, and the choice on scores.
type selectJob struct {
	e      *executable
	n      *plan.Node
	a      plan.SelectAttr
	pool   *kvPool
	scores func(score, q []float32, rows, qWidth int, k *stretch, dim int)
	space  *selectSpace

	apart bool // segments of tokens are work items; else tokens are
}

// selection chooses the positions that a token attends to.
type selection struct{ ordinary }

func (selection) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	pool := e.kv(n.State)
	j := &selectJob{
		e: e, n: n, a: n.Attr.(plan.SelectAttr), pool: pool, scores: e.tier.attention.caches[pool.dtype].scores,
		space: e.space(selectWork).(*selectSpace),
	}
	tokens := func() int { return len(e.ids) }
	return []kernel{
		one(j.begin),
		{size: func() int {
			if j.apart {
				return int(j.space.first[tokens()])
			}
			return tokens()
		}, run: j.tokensOrSegments},
		{size: func() int {
			if j.apart {
				return tokens()
			}
			return 0
		}, run: func(_, lo, hi int) {
			for t := lo; t < hi; t++ {
				j.finish(t, j.space.rows[t])
			}
		}},
	}, nil
}

func (selection) spaces() []*space { return []*space{selectWork} }

func (selection) moved(e *executable, n *plan.Node) int {
	group := e.p.Groups[e.p.States[n.State].Group]
	rows := (e.batch.Attended(group) + len(e.batch.Tokens)) / max(1, n.Attr.(plan.SelectAttr).Every)
	return e.p.States[n.State].RowBytes(e.lim.Cache) * rows
}

// begin stores the step's keys and decides whether segments are work items: if there is a row of
// scores for each token.
func (j *selectJob) begin() {
	j.e.storeEvery(j.n, j.n.In[1], j.pool, max(1, j.a.Every), j.space.half)
	b := j.e.batch
	j.apart = len(b.Tokens) <= len(j.space.rows)
	if !j.apart {
		return
	}
	for t, pos := range b.Positions {
		j.space.first[t+1] = j.space.first[t]
		if seen := j.a.Seen(int(pos)); seen > j.a.Top {
			j.space.first[t+1] += int32((seen + contextSegment - 1) / contextSegment)
			j.queries(j.space.queries[t], t)
		}
	}
}

// queries writes the queries of token t to q, transposed: column h is that of head h.
func (j *selectJob) queries(q []float32, t int) {
	row, dim, heads := j.e.row(j.n.In[0], t), j.a.HeadDim, j.a.Heads
	h := 0
	for ; h+4 <= heads; h += 4 {
		a, b, c, e := row[h*dim:][:dim], row[(h+1)*dim:][:dim], row[(h+2)*dim:][:dim], row[(h+3)*dim:][:dim]
		for i := range a {
			to := q[i*heads+h:][:4]
			to[0], to[1], to[2], to[3] = a[i], b[i], c[i], e[i]
		}
	}
	for ; h < heads; h++ {
		for i, v := range row[h*dim:][:dim] {
			q[i*heads+h] = v
		}
	}
}

// tokensOrSegments computes items lo to hi.
func (j *selectJob) tokensOrSegments(worker, lo, hi int) {
	d := &j.space.desks[worker]
	if !j.apart {
		row, q := j.space.rows[worker], j.space.queries[worker]
		for t := lo; t < hi; t++ {
			if seen := j.a.Seen(int(j.e.batch.Positions[t])); seen > j.a.Top {
				j.queries(q, t)
				for begin := 0; begin < seen; begin += contextSegment {
					j.segment(d, row, q, t, begin, min(begin+contextSegment, seen))
				}
			}
			j.finish(t, row)
		}
		return
	}
	t := 0
	for i := lo; i < hi; i++ {
		for int(j.space.first[t+1]) <= i {
			t++
		}
		begin := (i - int(j.space.first[t])) * contextSegment
		j.segment(d, j.space.rows[t], j.space.queries[t], t, begin, min(begin+contextSegment, j.a.Seen(int(j.e.batch.Positions[t]))))
	}
}

// segment sets row[lo:hi], which is in one segment, to the scores of these positions for token t with
// queries q.
func (j *selectJob) segment(d *selectDesk, row, q []float32, t, lo, hi int) {
	past := j.e.past(j.pool, j.e.seq[t])
	for at := lo; at < hi; at += d.at.n {
		d.at.keys(&past, 0, at, hi)
		j.scores(d.products[at-lo:], q, j.a.Heads, j.a.Heads, &d.at, j.a.HeadDim)
	}
	j.e.tier.attention.positives(d.sums, d.products, j.e.row(j.n.In[2], t), hi-lo)
	copy(row[lo:hi], d.sums)
}

// finish writes the choice for token t by its scores, which are not read if it attends to all.
func (j *selectJob) finish(t int, scores []float32) {
	out, seen := j.e.row(j.n.Out, t), j.a.Seen(int(j.e.batch.Positions[t]))
	if seen <= j.a.Top {
		for p := range seen {
			out[p] = float32(p)
		}
		for p := seen; p < len(out); p++ {
			out[p] = -1
		}
	} else {
		highest(out, scores[:seen])
	}
	j.e.wrote(j.n.Out, t, 0, len(out))
}

// highest sets out to the positions of the highest scores, in ascending order; of equal scores the
// lower positions count first. It sets out to NaN if a score is NaN. There must be as many scores.
func highest(out, scores []float32) {
	// The lowest of the highest scores is found by its bits, eight at a time from the top.
	var least, known uint32
	left := len(out) // scores to choose among those that agree with least in the known bits
	for shift := 24; shift >= 0; shift -= 8 {
		var count [256]int
		for _, s := range scores {
			if s != s {
				for i := range out {
					out[i] = s
				}
				return
			}
			if k := ordered(s); k&known == least {
				count[k>>shift&255]++
			}
		}
		digit := 255
		for ; count[digit] < left; digit-- {
			left -= count[digit]
		}
		least |= uint32(digit) << shift
		known |= 255 << shift
	}
	n := 0
	for p, s := range scores {
		k := ordered(s)
		if k < least || k == least && left == 0 {
			continue
		}
		if k == least {
			left--
		}
		out[n] = float32(p)
		n++
	}
}

// ordered returns a number that is larger for larger x. Both zeros have the same.
func ordered(x float32) uint32 {
	bits := math.Float32bits(x + 0)
	if bits>>31 != 0 {
		return ^bits
	}
	return bits | 1<<31
}

// A selectSpace is the scratch memory of [plan.Select], shared by all nodes of a program.
type selectSpace struct {
	desks   []selectDesk // by worker
	rows    [][]float32  // by worker, or by token if there are no more: scores by position
	queries [][]float32  // likewise: [HeadDim, Heads]
	first   []int32      // by token: its first segment among those of the step, and the end
	half    []uint16     // [HeadDim]
}

// A selectDesk is the scratch memory of one worker.
type selectDesk struct {
	products []float32 // [Heads, scoreStride]
	sums     []float32 // [scoreStride]
	at       stretch
}

// selectWork is the space of a program's nodes of [plan.Select].
var selectWork = &space{
	bytes: func(b *Backend, p *plan.Program, lim *plan.Limits) int {
		z := selectRoom(p, lim)
		return b.threads*4*(z.positions+1+z.queries+(z.heads+1)*scoreStride) + 2*z.dim
	},
	make: func(e *executable) any {
		z := selectRoom(e.p, &e.lim)
		s := &selectSpace{first: make([]int32, len(e.desks)+1), half: make([]uint16, z.dim)}
		for range e.desks {
			s.rows = append(s.rows, make([]float32, z.positions))
			s.queries = append(s.queries, make([]float32, z.queries))
			s.desks = append(s.desks, selectDesk{products: make([]float32, z.heads*scoreStride), sums: make([]float32, scoreStride)})
		}
		return s
	},
}

// selectSizes are the sizes of a selectSpace.
type selectSizes struct {
	heads, dim, queries int // the most of a node
	positions           int // of a sequence that keeps all
}

func selectRoom(p *plan.Program, lim *plan.Limits) (z selectSizes) {
	for i := range p.Nodes {
		if a, ok := p.Nodes[i].Attr.(plan.SelectAttr); ok {
			z.heads, z.dim, z.queries = max(z.heads, a.Heads), max(z.dim, a.HeadDim), max(z.queries, a.Heads*a.HeadDim)
			z.positions = max(z.positions, lim.Pages[p.States[p.Nodes[i].State].Group]*lim.PageTokens/max(1, a.Every))
		}
	}
	return z
}

// reference scores and sorts. A correct executor may choose others where scores are close; then
// the bounds are the lowest and highest position that may stand in a column.
func (selection) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a, pool := n.Attr.(plan.SelectAttr), e.kv(n.State)
	return []kernel{
		one(func() { e.storeEvery(n, n.In[1], pool, max(1, a.Every), make([]uint16, a.HeadDim)) }),
		{size: func() int { return len(e.seq) }, run: func(_, lo, hi int) {
			key := make([]float32, a.HeadDim)
			for t := lo; t < hi; t++ {
				past, seen := e.past(pool, e.seq[t]), a.Seen(int(e.batch.Positions[t]))
				scores, doubts := make([]float64, seen), make([]float64, seen)
				for p := range scores {
					scores[p], doubts[p] = e.selectScore(n, &a, t, past.slot(p, 0).floatKey(key), pool)
				}
				e.selectRow(n, t, scores, doubts)
				e.wrote(n.Out, t, 0, a.Top)
			}
		}},
	}, nil
}

// selectScore returns the score of a key for token t and, if bounds are wanted, how far a correct
// executor may be from it.
func (e *executable) selectScore(n *plan.Node, a *plan.SelectAttr, t int, key []float32, pool *kvPool) (score, doubt float64) {
	grain := make([]float64, len(key))
	storedErrors(grain, key, pool.dtype)
	for h, w := range e.row(n.In[2], t) {
		q, off := e.row(n.In[0], t)[h*a.HeadDim:][:a.HeadDim], e.bound(n.In[0], t)
		if off != nil {
			off = off[h*a.HeadDim:][:a.HeadDim]
		}
		var product, squares, kept, most float64
		for i, k := range key {
			term := float64(q[i]) * float64(k)
			product += term
			squares += term * term
			g := grain[i] * math.Abs(float64(q[i]))
			kept += g * g
			most = max(most, g)
		}
		wrong := roundings*math.Sqrt(squares) + fewErrors(kept, most) + absDot(off, key)
		weight := math.Abs(float64(w))
		score += float64(w) * max(0, product)
		doubt += weight*wrong + (at(e.bound(n.In[2], t), h)+roundings*weight)*(max(0, product)+wrong)
	}
	return score, doubt
}

// selectRow writes the choice for token t by its scores, and its bounds.
func (e *executable) selectRow(n *plan.Node, t int, scores, doubts []float64) {
	out, bound := e.row(n.Out, t), e.bound(n.Out, t)
	for i := range out {
		out[i] = -1
	}
	clear(bound)
	for _, s := range scores {
		if s != s {
			for i := range out {
				out[i] = float32(s)
			}
			return
		}
	}
	order := make([]int, len(scores))
	for p := range order {
		order[p] = p
	}
	slices.SortStableFunc(order, func(p, q int) int {
		switch {
		case scores[p] > scores[q]:
			return -1
		case scores[p] < scores[q]:
			return 1
		}
		return 0
	})
	chosen := order[:min(len(out), len(order))]
	if len(chosen) == 0 {
		return
	}
	last := chosen[len(chosen)-1]
	slices.Sort(chosen)
	for i, p := range chosen {
		out[i] = float32(p)
	}
	if bound == nil || len(chosen) == len(scores) {
		return
	}
	// Positions whose scores are not clearly below the last chosen one may be chosen, too, each in
	// the place of another.
	var may []int
	for p, s := range scores {
		if !(scores[last]-s > doubts[last]+doubts[p]) {
			may = append(may, p)
		}
	}
	spare := len(may) - len(chosen)
	for i, p := range chosen {
		bound[i] = float32(max(p-may[i], may[i+spare]-p))
	}
}
