package cpu

import (
	"math"
	"sync/atomic"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// contextSegment is the length of the segments of a context, in tokens, at absolute multiples. The
// maximum, the weights and the weighted values of each segment are computed independently. The
// segments of a row are then merged in ascending order, by the online softmax of Milakov and
// Gimelshein (2018). So the bits depend neither on how a prompt was cut into steps nor on which
// worker computed which segment.
const contextSegment = 256

// An attentionJob is a compiled attention node.
type attentionJob struct {
	e       *executable
	n       *plan.Node
	a       plan.AttentionAttr
	pool    *kvPool
	whole   *stepCache // for Bidirectional, else nil
	kernels *attentionKernels
	cacheKernels
	rowLoader rowLoader // for Latent
	far       *kvPool   // the rows that are listed
	space     *attentionSpace

	group  int       // query heads per key/value head
	values int       // length of a head's value
	width  int       // length of a row of sums: values rounded up
	sinks  []float32 // [Heads], or nil

	lost    []bool // by key/value head and token: the cache cannot represent the key or value
	anyLost atomic.Bool

	// For the current step.
	tiles []tile
	apart int // number of segments of all tiles and heads, if each is a work item; else 0
}

// A tile is some consecutive tokens of one sequence, whose queries share each load of a key or
// value.
type tile struct {
	past   past
	t0     int // first token
	tokens int
	pos    int // position of the first token
	end    int // one past the last position of the sequence in the step

	// Segments of listed rows, and then those of positions, from first on.
	listed, first, segments int
	rows                    past // of listed rows

	item, slot int // item and first row of its first segment, if segments are items
}

// attention attends to the keys and values in a state.
type attention struct{ ordinary }

func (attention) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return attend(e, s.Node(), e.kv(s.Node().State), nil)
}

func (attention) pieces(n *plan.Node) int { return groupWidth(n) }

func (attention) spaces() []*space { return []*space{attentionWork} }

func (attention) moved(e *executable, n *plan.Node) int {
	a := n.Attr.(plan.AttentionAttr)
	tokens := e.batch.Attended(a.Group())
	if a.Rate > 0 {
		rows := e.batch.Attended(e.p.Groups[e.p.States[a.Compressed].Group]) / a.Rate
		if a.Top > 0 {
			rows = min(rows, a.Top*len(e.batch.Tokens))
		}
		tokens += rows
	} else if a.Top > 0 {
		tokens = min(tokens, a.Top*len(e.batch.Tokens))
	}
	if stores(n) {
		tokens += len(e.batch.Tokens)
	}
	return e.p.States[n.State].RowBytes(e.lim.Cache) * tokens
}

// groupWidth returns the number of columns of the result for the query heads that share a key/value
// head.
func groupWidth(n *plan.Node) int {
	a := n.Attr.(plan.AttentionAttr)
	return a.Heads / a.KVHeads * a.Values()
}

// attend returns kernels that store the step's keys and values, if n has any, and then compute
// attention. Work items are tiles by key/value heads, or their segments if there are too few.
func attend(e *executable, n *plan.Node, pool *kvPool, whole *stepCache) ([]kernel, error) {
	a := n.Attr.(plan.AttentionAttr)
	sinks, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	j := &attentionJob{
		e: e, n: n, a: a, pool: pool, whole: whole, kernels: e.tier.attention, cacheKernels: e.tier.attention.caches[pool.dtype],
		rowLoader: e.tier.rowLoader(pool.dtype), space: e.space(attentionWork).(*attentionSpace), group: a.Heads / a.KVHeads, values: a.Values(), width: headWidth(&a), sinks: sinks,
		lost: make([]bool, e.lim.Tokens*a.KVHeads),
	}
	if j.far = pool; a.Rate > 0 {
		j.far = e.kv(a.Compressed)
	}
	heads := func() int { return len(j.tiles) * a.KVHeads }
	ks := []kernel{one(j.begin)}
	if stores(n) {
		ks = append(ks, kernel{size: func() int { return len(e.ids) * a.KVHeads }, grain: 32, run: j.store})
	}
	ks = append(ks, []kernel{
		{size: func() int { return max(j.apart, heads()) }, run: j.tilesOrSegments},
		{size: func() int {
			if j.apart == 0 {
				return 0
			}
			return heads()
		}, run: j.join},
	}...)
	if stores(n) {
		ks = append(ks, one(j.report))
	}
	return ks, nil
}

// stores reports whether an attention node has keys and values to store, not queries alone.
func stores(n *plan.Node) bool { return len(n.In) > 1 }

// begin cuts the step's tokens into tiles and decides whether segments are work items.
func (j *attentionJob) begin() {
	b := j.e.batch
	if j.whole != nil {
		j.whole.cut(b)
	} else {
		j.e.reach(j.pool.pagePool)
		j.storeRows()
	}
	j.tiles = j.space.tiles[:0]
	items, slots := 0, 0
	for s := range b.Seqs() {
		past := j.past(int32(s))
		for t, end := int(b.Start[s]), int(b.Start[s+1]); t < end; {
			tl := tile{past: past, t0: t, tokens: min(end-t, tileTokens(&j.a)), pos: int(b.Positions[t]), end: int(b.Positions[end-1]) + 1, item: items, slot: slots}
			if tl.listed = j.lists(&tl); tl.listed > 0 {
				tl.rows = j.e.past(j.far, int32(s))
			}
			if tl.segments = tl.listed; j.a.Top == 0 || j.a.Rate > 0 {
				tl.first = j.firstVisible(tl.pos) / contextSegment
				tl.segments += (j.endVisible(&tl, tl.tokens-1)-1)/contextSegment + 1 - tl.first
			}
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

func (j *attentionJob) past(s int32) past {
	if j.whole != nil {
		return j.whole.past(s)
	}
	return j.e.past(j.pool, s)
}

func (j *attentionJob) firstVisible(pos int) int {
	return j.a.FirstSeen(pos)
}

// endVisible returns one past the last position that token i of a tile sees.
func (j *attentionJob) endVisible(tl *tile, i int) int {
	switch pos := tl.pos + i; {
	case j.whole == nil:
		return pos + 1
	case j.a.Window == 0:
		return tl.end
	default:
		return min(tl.end, pos+j.a.Window)
	}
}

// store writes the keys and values of items lo to hi. Items are ordered by head, then token,
// because neighboring tokens are neighbors in the pages.
func (j *attentionJob) store(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		g, t := i/len(j.e.ids), i%len(j.e.ids)
		past := j.past(j.e.seq[t])
		if !j.e.storeHead(j.n, past.slot(int(j.e.batch.Positions[t]), g), t, &j.space.desks[worker]) {
			j.lost[i] = true
			j.anyLost.Store(true)
		}
	}
}

// storeHead stores what token t has for the key/value head of a slot.
func (e *executable) storeHead(n *plan.Node, at slot, t int, d *attentionDesk) bool {
	a := n.Attr.(plan.AttentionAttr)
	if a.Latent && a.Values() == a.HeadDim {
		return at.storeRow(e.tier.attention, e.row(n.In[1], t))
	}
	part := func(in, dim int) []float32 { return e.row(n.In[in], t)[at.head*dim:][:dim] }
	if a.Latent {
		row := append(append(d.row[:0], part(1, a.ValueDim)...), part(2, a.HeadDim-a.ValueDim)...)
		return at.storeRow(e.tier.attention, row)
	}
	return at.store(e.tier.attention, part(1, a.HeadDim), part(2, a.Values()), d.half[:a.HeadDim])
}

// report marks the sequences whose keys or values the cache cannot represent.
func (j *attentionJob) report() {
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

// tilesOrSegments computes items lo to hi.
func (j *attentionJob) tilesOrSegments(worker, lo, hi int) {
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
			from, to := j.segment(d, tl, g, s, d.part)
			j.add(&d.sums, d.part, 0, from*j.group, to*j.group)
		}
		j.finish(&d.sums, tl, g)
	}
}

// attendApart computes segments lo to hi and stores their results.
func (j *attentionJob) attendApart(d *attentionDesk, lo, hi int) {
	of := 0 // index of the tile
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
		j.segment(d, tl, g, s, j.space.slots.from(j.slot(tl, g, s), j.width))
	}
}

// slot returns the first row of a stored segment.
func (j *attentionJob) slot(tl *tile, g, s int) int {
	return tl.slot + (g*tl.segments+s)*tl.tokens*j.group
}

// join merges the stored segments of items lo to hi.
func (j *attentionJob) join(worker, lo, hi int) {
	d := &j.space.desks[worker]
	for i := lo; i < hi; i++ {
		tl, g := &j.tiles[i%len(j.tiles)], i/len(j.tiles)
		j.reset(&d.sums, tl, g)
		for s := range tl.segments {
			from, to := j.seen(tl, s)
			j.add(&d.sums, j.space.slots, j.slot(tl, g, s), from*j.group, to*j.group)
		}
		j.finish(&d.sums, tl, g)
	}
}

// reset initializes the tile's rows with only the sinks of their heads. A sink's own weight is
// exp(0), and it has no value.
func (j *attentionJob) reset(sums *softSums, tl *tile, g int) {
	rows := tl.tokens * j.group
	sums.reset(rows, j.width)
	if j.sinks != nil {
		for r := range rows {
			sums.top[r], sums.total[r] = j.sinks[g*j.group+r%j.group], 1
		}
	}
	if j.unknown(tl) {
		for r := range rows {
			sums.total[r] = float32(math.NaN())
		}
	}
}

// add merges rows from to to of a segment into sums. The segment's row 0 is row at of part.
func (j *attentionJob) add(sums *softSums, part softSums, at, from, to int) {
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

// finish writes the tile's rows of the output.
func (j *attentionJob) finish(sums *softSums, tl *tile, g int) {
	n := j.group * j.values
	for i := range tl.tokens {
		out := j.e.row(j.n.Out, tl.t0+i)[g*n : (g+1)*n]
		for h := range j.group {
			r := i*j.group + h
			j.kernels.scale(out[h*j.values:(h+1)*j.values], sums.row(r, j.width), 1/sums.total[r])
		}
		j.e.wrote(j.n.Out, tl.t0+i, g*n, (g+1)*n)
	}
}
