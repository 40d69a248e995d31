package cpu

import "sort"

// Sparse attention reads the rows of chosen positions. A tile has one token. A segment has the
// chosen positions of the segment of attention to all, without gaps, and is computed as that is.

// positions returns the positions that the tile's token attends to, in ascending order. The first
// is NaN if they are unknown.
func (j *attentionJob) positions(tl *tile) []float32 {
	return j.e.row(j.n.Chosen(), tl.t0)[:min(tl.pos+1, j.a.Top)]
}

// unknown reports whether the positions of the tile's token are unknown.
func (j *attentionJob) unknown(tl *tile) bool {
	first := j.positions(tl)[0]
	return first != first
}

// chosen returns the chosen positions in a segment. There are none if they are unknown.
func (j *attentionJob) chosen(tl *tile, segment int) []float32 {
	list := j.positions(tl)
	from := func(pos int) int {
		return sort.Search(len(list), func(i int) bool { return list[i] >= float32(pos) })
	}
	return list[from(segment*contextSegment):from((segment+1)*contextSegment)]
}

// chosenSegment is segment for chosen positions.
func (j *attentionJob) chosenSegment(d *attentionDesk, tl *tile, g, segment int, part softSums) (from, to int) {
	list := j.chosen(tl, segment)
	if len(list) == 0 {
		return 0, 0
	}
	j.scoreRows(d, d.q, d.score, j.group, len(list), func(d *attentionDesk, x []float32, i int) {
		pos := int(list[i])
		d.at.values(&tl.past, g, pos, pos+1)
		j.rowLoader(x, &d.at, 0, d.block)
	})
	j.weigh(d, part, 0, 1, 0, len(list))
	clear(part.sum[:j.group*j.width])
	for i := 0; i < len(list); i += d.at.n {
		d.at.values(&tl.past, g, int(list[i]), int(list[i])+run(list[i:]))
		j.weighted(part.sum, d.score[i:], j.group, j.width, &d.at, j.values)
	}
	return 0, 1
}

// run returns how many positions from the first of a list on follow each other.
func run(list []float32) int {
	n := 1
	for n < len(list) && list[n] == list[n-1]+1 {
		n++
	}
	return n
}
