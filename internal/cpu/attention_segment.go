package cpu

import "math"

// queries writes the tile's queries of key/value head g to the desk, scaled and transposed: column
// i*group+h is query h of token i. With keys as rows, queries are rows, too.
func (j *attentionJob) queries(d *attentionDesk, tl *tile, g int) {
	dim, rows, scale := j.a.HeadDim, tl.tokens*j.group, float32(j.a.Scale)
	row := func(r int) []float32 {
		return j.e.row(j.n.In[0], tl.t0+r/j.group)[(g*j.group+r%j.group)*dim:][:dim]
	}
	if j.a.Latent {
		for r := range rows {
			j.kernels.scale(d.q[r*rowStride(dim):][:dim], row(r), scale)
		}
		return
	}
	r := 0
	for ; r+4 <= rows; r += 4 {
		a, b, c, e := row(r), row(r+1), row(r+2), row(r+3)
		b, c, e = b[:len(a)], c[:len(a)], e[:len(a)]
		for k := range a {
			to := d.q[k*rows+r:][:4]
			to[0], to[1], to[2], to[3] = a[k]*scale, b[k]*scale, c[k]*scale, e[k]*scale
		}
	}
	for ; r < rows; r++ {
		for k, v := range row(r) {
			d.q[k*rows+r] = v * scale
		}
	}
}

// seen returns the range of a tile's tokens that see part of segment s of the tile.
func (j *attentionJob) seen(tl *tile, s int) (from, to int) {
	if s < tl.listed {
		_, _, n := j.listed(tl, s)
		return 0, min(1, n)
	}
	lo := (tl.first + s - tl.listed) * contextSegment
	for to = tl.tokens; from < to && j.endVisible(tl, from) <= lo; {
		from++
	}
	for to > from && j.firstVisible(tl.pos+to-1) >= lo+contextSegment {
		to--
	}
	return from, to
}

// visible returns the range of positions of a segment that token i sees, relative to the segment's
// start.
func (j *attentionJob) visible(tl *tile, i, segment int) (lo, hi int) {
	begin := segment * contextSegment
	return max(0, j.firstVisible(tl.pos+i)-begin), min(contextSegment, j.endVisible(tl, i)-begin)
}

// segment computes the rows of segment s of a tile into part, each over the positions that its token
// sees. It returns the range of tokens that see any.
func (j *attentionJob) segment(d *attentionDesk, tl *tile, g, s int, part softSums) (from, to int) {
	if s < tl.listed {
		return j.listedSegment(d, tl, g, s, part)
	}
	from, to = j.seen(tl, s)
	segment := tl.first + s - tl.listed
	// Later tokens see later positions: all tokens see lastLo to firstHi, and together they see
	// firstLo to lastHi.
	firstLo, firstHi := j.visible(tl, from, segment)
	lastLo, lastHi := j.visible(tl, to-1, segment)

	begin := segment * contextSegment
	for at := firstLo; at < lastHi; at += d.at.n {
		if j.a.Latent {
			d.at.values(&tl.past, g, begin+at, begin+lastHi)
			j.scoreRows(d, d.q[from*j.group*rowStride(j.a.HeadDim):], d.score[from*j.group*scoreStride+at:], (to-from)*j.group, d.at.n, j.rowOfStretch)
			continue
		}
		d.at.keys(&tl.past, g, begin+at, begin+lastHi)
		if beyond := at + tl.past.lead() - lastHi; beyond >= 0 {
			d.at.next, _, _ = tl.past.slot(begin+min(firstLo+beyond, lastHi-1), g).value()
		}
		j.scores(d.score[from*j.group*scoreStride+at:], d.q[from*j.group:], (to-from)*j.group, tl.tokens*j.group, &d.at, j.a.HeadDim)
	}
	if firstLo == lastLo && firstHi == lastHi {
		j.weigh(d, part, from, to, firstLo, lastHi)
	} else {
		for i := from; i < to; i++ {
			lo, hi := j.visible(tl, i, segment)
			j.weigh(d, part, i, i+1, lo, hi)
		}
	}
	clear(part.sum[from*j.group*j.width : to*j.group*j.width])
	if lastLo >= firstHi { // no position that all tokens see
		for i := from; i < to; i++ {
			lo, hi := j.visible(tl, i, segment)
			j.addValues(d, tl, g, segment, i, i+1, lo, hi, part)
		}
		return from, to
	}
	for i := from; i < to; i++ {
		lo, _ := j.visible(tl, i, segment)
		j.addValues(d, tl, g, segment, i, i+1, lo, lastLo, part)
	}
	j.addValues(d, tl, g, segment, from, to, lastLo, firstHi, part)
	for i := from; i < to; i++ {
		_, hi := j.visible(tl, i, segment)
		j.addValues(d, tl, g, segment, i, i+1, firstHi, hi, part)
	}
	return from, to
}

// weigh turns the scores at lo to hi of tokens from to to into weights, after a softcap if the
// model has one. The other weights in their registers become 0.
func (j *attentionJob) weigh(d *attentionDesk, part softSums, from, to, lo, hi int) {
	a, b := lo/headUnit*headUnit, (hi+headUnit-1)/headUnit*headUnit
	none := float32(math.Inf(-1))
	for r := from * j.group; r < to*j.group; r++ {
		row := d.score[r*scoreStride:]
		if j.a.Softcap > 0 {
			capScores(row[lo:hi], j.a.Softcap)
		}
		for i := a; i < lo; i++ {
			row[i] = none
		}
		for i := hi; i < b; i++ {
			row[i] = none
		}
	}
	r := from * j.group
	j.kernels.softWeights(d.score[r*scoreStride+a:], b-a, (to-from)*j.group, part.top[r:], part.total[r:])
}

// capScores sets each score s to limit*tanh(s/limit). tanh(u) is 1 - 2/(exp(2u)+1). In float64 its
// cancellation is harmless unless u is tiny; then tanh(u) equals u within float32.
func capScores(score []float32, limit float64) {
	for i, s := range score {
		if u := float64(s) / limit; !(math.Abs(u) < 1e-4) {
			score[i] = float32(limit * (1 - 2/(math.Exp(2*u)+1)))
		}
	}
}

// addValues adds the values at lo to hi times the weights of tokens from to to.
func (j *attentionJob) addValues(d *attentionDesk, tl *tile, g, segment, from, to, lo, hi int, part softSums) {
	r, begin, last := from*j.group, segment*contextSegment, j.endVisible(tl, tl.tokens-1)-1
	for at := lo; at < hi; at += d.at.n {
		d.at.values(&tl.past, g, begin+at, begin+hi)
		if pos := begin + at + tl.past.lead(); pos >= begin+hi && pos <= last {
			d.at.next, _, _ = tl.past.slot(pos, g).key()
		}
		j.weighted(part.sum[r*j.width:], d.score[r*scoreStride+at:], (to-from)*j.group, j.width, &d.at, j.summed())
	}
}

// lead returns how many positions ahead keys and values are prefetched.
func (p *past) lead() int { return 2 * p.rows }

// keys makes s the keys of head g from position pos on, up to end or the end of the page.
func (s *stretch) keys(p *past, g, pos, end int) {
	at := p.slot(pos, g)
	s.numbers, s.scales, s.width = at.key()
	s.n = min(end-pos, p.left(pos))
	s.next = s.numbers
	if pos += p.lead(); pos < end {
		s.next, _, _ = p.slot(pos, g).key()
	}
}

// values is like keys, for values.
func (s *stretch) values(p *past, g, pos, end int) {
	at := p.slot(pos, g)
	s.numbers, s.scales, _ = at.value()
	s.width = at.row
	s.n = min(end-pos, p.left(pos))
	s.next = s.numbers
	if pos += p.lead(); pos < end {
		s.next, _, _ = p.slot(pos, g).value()
	}
}
