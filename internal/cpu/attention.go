package cpu

import (
	"math"
	"sync/atomic"

	"github.com/realizar/realizar/internal/plan"
)

// contextSegment is the length of the pieces that a context is cut into, at
// absolute multiples. Scores, their largest, the weights and the weighted values
// are made for each from nothing, and the segments of a row are joined in
// ascending order, as the online softmax of Milakov and Gimelshein (2018) does it.
// So neither the steps that a prompt was cut into nor who did which segment
// changes a bit.
const contextSegment = 256

// An attending is an attention node that is ready to run.
type attending struct {
	e       *executable
	n       *plan.Node
	a       plan.AttentionAttr
	pool    *kvPool
	whole   *bothWays // of a Bidirectional, else nil
	kernels *attentionKernels
	cacheKernels
	space *attentionSpace

	group int       // query heads per key/value head
	width int       // of a row of sums, HeadDim rounded up
	sinks []float32 // [Heads], or nil

	lost    []bool // by key/value head and token: the cache cannot hold it
	anyLost atomic.Bool

	// Of the step that runs.
	tiles []tile
	apart int // segments of all tiles and heads, where each is an item; else 0
}

// A tile is some consecutive tokens of one sequence, whose queries share every
// load of a key or value.
type tile struct {
	past   past
	t0     int // first token
	tokens int
	pos    int // of the first token
	end    int // position behind those of the sequence in the step

	first, segments int // the first segment seen by any of them, and their number
	item, slot      int // of its first segment, where each is an item
}

func attention(e *executable, n *plan.Node) ([]kernel, error) {
	return attend(e, n, e.kv(n.State), nil)
}

// attend stores the step's keys and values and then shares tiles and key/value
// heads among the workers, or their segments where these are too few.
func attend(e *executable, n *plan.Node, pool *kvPool, whole *bothWays) ([]kernel, error) {
	a := n.Attr.(plan.AttentionAttr)
	sinks, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	if e.attention == nil {
		e.attention = newAttentionSpace(attentionRoom(e.p, &e.lim, len(e.desks)), len(e.desks))
	}
	j := &attending{
		e: e, n: n, a: a, pool: pool, whole: whole, kernels: e.tier.attention, cacheKernels: e.tier.attention.caches[pool.dtype],
		space: e.attention, group: a.Heads / a.KVHeads, width: headWidth(&a), sinks: sinks,
		lost: make([]bool, e.lim.Tokens*a.KVHeads),
	}
	heads := func() int { return len(j.tiles) * a.KVHeads }
	return []kernel{
		one(j.begin),
		{size: func() int { return len(e.ids) * a.KVHeads }, grain: 32, run: j.store},
		{size: func() int { return max(j.apart, heads()) }, run: j.tilesOrSegments},
		{size: func() int {
			if j.apart == 0 {
				return 0
			}
			return heads()
		}, run: j.join},
		one(j.report),
	}, nil
}

// begin cuts the step's tokens into tiles and decides whether segments are items.
func (j *attending) begin() {
	b := j.e.batch
	if j.whole != nil {
		j.whole.cut(b)
	} else {
		j.e.reach(j.pool.pagePool)
	}
	j.tiles = j.space.tiles[:0]
	items, slots := 0, 0
	for s := range b.Seqs() {
		past := j.past(int32(s))
		for t, end := int(b.Start[s]), int(b.Start[s+1]); t < end; {
			tl := tile{past: past, t0: t, tokens: min(end-t, tileTokens(j.group)), pos: int(b.Positions[t]), end: int(b.Positions[end-1]) + 1, item: items, slot: slots}
			tl.first = j.firstVisible(tl.pos) / contextSegment
			tl.segments = (j.endVisible(&tl, tl.tokens-1)-1)/contextSegment + 1 - tl.first
			items += tl.segments * j.a.KVHeads
			slots += tl.segments * j.a.KVHeads * tl.tokens * j.group
			j.tiles = append(j.tiles, tl)
			t += tl.tokens
		}
	}
	heads := len(j.tiles) * j.a.KVHeads
	j.apart = 0
	if heads < fewItems*len(j.e.desks) && items > heads && j.space.holds(slots, j.width) {
		j.apart = items
	}
}

func (j *attending) past(s int32) past {
	if j.whole != nil {
		return j.whole.past(s)
	}
	return j.e.past(j.pool, s)
}

func (j *attending) firstVisible(pos int) int {
	return plan.Group{Window: j.a.Window}.FirstVisible(pos)
}

// endVisible is the position behind those that token i of a tile sees.
func (j *attending) endVisible(tl *tile, i int) int {
	switch pos := tl.pos + i; {
	case j.whole == nil:
		return pos + 1
	case j.a.Window == 0:
		return tl.end
	default:
		return min(tl.end, pos+j.a.Window)
	}
}

// store writes the keys and values of items lo to hi: a head, and its tokens, which
// are neighbours in the pages.
func (j *attending) store(worker, lo, hi int) {
	b, half := j.e.batch, j.space.desks[worker].half[:j.a.HeadDim]
	for i := lo; i < hi; i++ {
		g, t := i/len(j.e.ids), i%len(j.e.ids)
		past := j.past(j.e.seq[t])
		if at := g * j.a.HeadDim; !past.slot(int(b.Positions[t]), g).store(j.kernels, j.e.row(j.n.In[1], t)[at:at+len(half)], j.e.row(j.n.In[2], t)[at:at+len(half)], half) {
			j.lost[i] = true
			j.anyLost.Store(true)
		}
	}
}

// report notes whose keys or values the cache cannot hold.
func (j *attending) report() {
	if !j.anyLost.Load() {
		return
	}
	j.anyLost.Store(false)
	for i, lost := range j.lost {
		if !lost {
			continue
		}
		j.lost[i] = false
		if s := j.e.seq[i%len(j.e.ids)]; j.e.overflow[s] < 0 {
			j.e.overflow[s] = j.n.Layer
		}
	}
}

// tilesOrSegments does items lo to hi.
func (j *attending) tilesOrSegments(worker, lo, hi int) {
	d := &j.space.desks[worker]
	if j.apart > 0 {
		j.attendApart(d, lo, hi)
		return
	}
	for i := lo; i < hi; i++ {
		tl, g := &j.tiles[i%len(j.tiles)], i/len(j.tiles)
		j.queries(d, tl, g)
		j.reset(&d.sums, tl, g)
		for s := range tl.segments {
			from, to := j.segment(d, tl, g, tl.first+s, d.part)
			j.add(&d.sums, d.part, 0, from*j.group, to*j.group)
		}
		j.finish(&d.sums, tl, g)
	}
}

// attendApart does segments lo to hi, and keeps what comes out of each.
func (j *attending) attendApart(d *attentionDesk, lo, hi int) {
	of := 0 // tile
	for i := lo; i < hi; i++ {
		before := of
		for of+1 < len(j.tiles) && j.tiles[of+1].item <= i {
			of++
		}
		tl := &j.tiles[of]
		g, s := (i-tl.item)/tl.segments, (i-tl.item)%tl.segments
		if i == lo || of != before || s == 0 {
			j.queries(d, tl, g)
		}
		j.segment(d, tl, g, tl.first+s, j.space.slots.from(j.slot(tl, g, s), j.width))
	}
}

// slot is the first row of a segment kept apart.
func (j *attending) slot(tl *tile, g, s int) int {
	return tl.slot + (g*tl.segments+s)*tl.tokens*j.group
}

// join joins the segments that were kept apart, for items lo to hi.
func (j *attending) join(worker, lo, hi int) {
	d := &j.space.desks[worker]
	for i := lo; i < hi; i++ {
		tl, g := &j.tiles[i%len(j.tiles)], i/len(j.tiles)
		j.reset(&d.sums, tl, g)
		for s := range tl.segments {
			from, to := j.seen(tl, tl.first+s)
			j.add(&d.sums, j.space.slots, j.slot(tl, g, s), from*j.group, to*j.group)
		}
		j.finish(&d.sums, tl, g)
	}
}

// reset makes the tile's rows those that have seen nothing but their heads' sinks. A
// sink's own weight is exp(0), and it adds no value.
func (j *attending) reset(sums *softSums, tl *tile, g int) {
	rows := tl.tokens * j.group
	sums.reset(rows, j.width)
	if j.sinks == nil {
		return
	}
	for r := range rows {
		sums.top[r], sums.total[r] = j.sinks[g*j.group+r%j.group], 1
	}
}

// add adds rows from to to of a segment, whose row 0 is row at of part, to sums.
func (j *attending) add(sums *softSums, part softSums, at, from, to int) {
	for r := from; r < to; r++ {
		largest := max(sums.top[r], part.top[at+r])
		before, now := expOf(sums.top[r]-largest), expOf(part.top[at+r]-largest)
		sums.top[r] = largest
		sums.total[r] = sums.total[r]*before + part.total[at+r]*now
		j.kernels.blend(sums.row(r, j.width), part.row(at+r, j.width), before, now)
	}
}

func expOf(x float32) float32 {
	if x == 0 {
		return 1
	}
	return float32(math.Exp(float64(x)))
}

// finish writes the tile's rows.
func (j *attending) finish(sums *softSums, tl *tile, g int) {
	n := j.group * j.a.HeadDim
	for i := range tl.tokens {
		out := j.e.row(j.n.Out, tl.t0+i)[g*n : (g+1)*n]
		for h := range j.group {
			r := i*j.group + h
			j.kernels.scale(out[h*j.a.HeadDim:(h+1)*j.a.HeadDim], sums.row(r, j.width), 1/sums.total[r])
		}
		j.e.wrote(j.n.Out, tl.t0+i, g*n, (g+1)*n)
	}
}
