package cpu

import (
	"sort"

	"github.com/realizar/realizar/internal/plan"
)

// Some attention reads rows by their numbers: chosen positions, or compressed rows, of which some
// may be chosen. These are listed. A tile has one token then. Listed rows are in segments of 256
// numbers, without those that are not chosen, and each is computed as a segment of positions is.

// lists returns the number of segments of listed rows.
func (j *attentionJob) lists(tl *tile) int {
	return (listedRows(&j.a, tl.pos) + contextSegment - 1) / contextSegment
}

// listedRows returns how many rows a token at position pos may choose from.
func listedRows(a *plan.AttentionAttr, pos int) int {
	switch {
	case a.Rate > 0:
		return (pos + 1) / a.Rate
	case a.Top > 0:
		return pos + 1
	}
	return 0
}

// chosenOf returns the rows that token t at position pos attends to, in ascending order. The first
// is NaN if they are unknown.
func (e *executable) chosenOf(n *plan.Node, a *plan.AttentionAttr, t, pos int) []float32 {
	return e.row(n.Chosen(), t)[:min(listedRows(a, pos), a.Top)]
}

// unknown reports whether the choice of the tile's token is unknown.
func (j *attentionJob) unknown(tl *tile) bool {
	if j.a.Top == 0 || tl.listed == 0 {
		return false
	}
	first := j.e.chosenOf(j.n, &j.a, tl.t0, tl.pos)[0]
	return first != first
}

// listed returns the rows of segment s: those of a list, or if that is nil all from first on; and
// their number. There are none if the choice is unknown.
func (j *attentionJob) listed(tl *tile, s int) (list []float32, first, n int) {
	lo, hi := s*contextSegment, (s+1)*contextSegment
	if j.a.Top == 0 {
		return nil, lo, min(hi, listedRows(&j.a, tl.pos)) - lo
	}
	list = j.e.chosenOf(j.n, &j.a, tl.t0, tl.pos)
	from := func(row int) int {
		return sort.Search(len(list), func(i int) bool { return list[i] >= float32(row) })
	}
	list = list[from(lo):from(hi)]
	return list, 0, len(list)
}

// listedSegment is segment for listed rows.
func (j *attentionJob) listedSegment(d *attentionDesk, tl *tile, g, s int, part softSums) (from, to int) {
	list, first, n := j.listed(tl, s)
	if n == 0 {
		return 0, 0
	}
	row := func(i int) int {
		if list == nil {
			return first + i
		}
		return int(list[i])
	}
	j.scoreRows(d, d.q, d.score, j.group, n, func(d *attentionDesk, x []float32, i int) {
		d.at.values(&tl.rows, g, row(i), row(i)+1)
		j.rowLoader(x, &d.at, 0, d.block)
	})
	j.weigh(d, part, 0, 1, 0, n)
	clear(part.sum[:j.group*j.width])
	for i := 0; i < n; i += d.at.n {
		m := n - i
		if list != nil {
			m = run(list[i:])
		}
		d.at.values(&tl.rows, g, row(i), row(i)+m)
		j.weighted(part.sum, d.score[i:], j.group, j.width, &d.at, j.summed())
	}
	return 0, 1
}

// run returns how many numbers from the first of a list on follow each other.
func run(list []float32) int {
	n := 1
	for n < len(list) && list[n] == list[n-1]+1 {
		n++
	}
	return n
}

// storeRows stores the step's compressed rows, if there are any.
func (j *attentionJob) storeRows() {
	if j.a.Rate > 0 {
		j.e.storeEvery(j.n, j.n.In[2], j.far, j.a.Rate, nil)
	}
}

// storeEvery stores the rows of v after each multiple of every tokens as keys in pool. half is scratch
// memory as in slot.store.
func (e *executable) storeEvery(n *plan.Node, v plan.Value, pool *kvPool, every int, half []uint16) {
	e.reach(pool.pagePool)
	for t, s := range e.seq {
		end := int(e.batch.Positions[t]) + 1
		if end%every != 0 {
			continue
		}
		past := e.past(pool, s)
		if at := past.slot(end/every-1, 0); !at.store(e.tier.attention, e.row(v, t), nil, half) && e.overflow[s] < 0 {
			e.overflow[s] = n.Layer
		}
	}
}
