package engine

import (
	"cmp"
	"math/bits"
	"time"
)

// Gap is the default of [Config.Gap].
const Gap = 100 * time.Millisecond

// A pace predicts the length of the next step from completed steps, and says how many prompt tokens
// fit into it.
//
// A step without prompts takes as long as steps of about the same number of rows did. The
// additional time of a step with prompts is the cost of its prompt tokens, the same for each. So
// beside decoding sequences a step gets the prompt tokens that fit into the gap, and at most twice
// as many as in the step before, since the estimates may be poor at first. A large step has whole
// tiles, since products compute so many rows at a time. A step of prompts alone has as many tokens
// as make the device fast: the number doubles up to freeTokens as long as that makes a token 3%
// faster, and further as long as the step takes at most aloneGaps gaps, since a request that arrives
// waits for it.
type pace struct {
	gap  time.Duration
	last time.Time // when the last step was done

	rows   [rowSizes]float64 // seconds of a step of decoding rows, by the class of their number
	each   float64           // seconds that a prompt token adds to a step
	before int               // prompt tokens of the last step with both decode and prefill

	drafts [rowSizes]float64 // part of a step's time that a drafted token adds, by the class of the other rows
	ready  [rowSizes]float64 // seconds to prepare a token of that many sequences, by their class

	move  float64 // seconds that a saved or restored byte adds to a step
	moves int     // steps that move was measured in

	alone  [sizes]float64 // seconds per token in a step of prompts alone, by the class of its tokens
	size   int            // tokens of such a step; 0 if not known
	tokens int            // room for prompt tokens in the last step
}

// sizes is the number of classes of token counts: 1, 2 to 3, 4 to 7, and so on. Rows have finer
// classes: one for each number up to 8, and four for each power of two from there on.
const (
	sizes    = 32
	rowSizes = 4 * sizes
)

func class(n int) int { return bits.Len(uint(n)) - 1 }

func rowClass(n int) int {
	if n <= 8 {
		return n
	}
	return 4*(class(n)-1) + n>>(class(n)-2)&3
}

// learn moves v, a running mean or 0, towards now by the given part.
func learn(v *float64, now, part float64) {
	if *v > 0 {
		now = *v + (now-*v)*part
	}
	*v = now
}

const quarter = 0.25

// decoding returns the predicted seconds of a step of that many rows: the time of the nearest class
// measured, or 0 if none is.
func (p *pace) decoding(rows int) float64 {
	if rows == 0 {
		return 0
	}
	seconds, _ := p.nearest(rows)
	return seconds
}

// measured reports whether the time of steps of about that many rows is known.
func (p *pace) measured(rows int) bool {
	seconds, off := p.nearest(rows)
	return seconds > 0 && off <= nearClass
}

// nearClass is by how many classes of rows a measured step may differ from one of about as many rows.
const nearClass = 4

// nearest returns the measured time of the class nearest to that of rows, the smaller of two, and
// how many classes lie between.
func (p *pace) nearest(rows int) (seconds float64, off int) {
	at := rowClass(rows)
	for off := range rowSizes {
		if i := at - off; i >= 0 && p.rows[i] > 0 {
			return p.rows[i], off
		}
		if i := at + off; i < rowSizes && p.rows[i] > 0 {
			return p.rows[i], off
		}
	}
	return 0, 0
}

// drafting returns the predicted seconds of a step of that many rows and drafted tokens, or a
// multiple of them if nothing is known.
func (p *pace) drafting(rows, drafted int) float64 {
	return cmp.Or(p.decoding(rows), 1) * (1 + max(0, p.drafts[rowClass(rows)])*float64(drafted))
}

// drew records how long a step of that many rows and drafted tokens took.
func (p *pace) drew(rows, drafted int, seconds float64) {
	if !p.measured(rows) {
		return
	}
	base, at := p.decoding(rows), &p.drafts[rowClass(rows)]
	each := (seconds/base - 1) / float64(drafted)
	*at += (min(each, 1) - *at) * min(quarter, float64(drafted)/32)
	// The time without drafts grows with the context.
	learn(&p.rows[rowClass(rows)], seconds/(1+max(0, *at)*float64(drafted)), 1./32)
}

// forgetDrafts makes drafts seem cheaper, so that they are tried again.
func (p *pace) forgetDrafts(rows int) {
	p.drafts[rowClass(rows)] *= 1 - 1./512
	p.ready[rowClass(rows)] *= 1 - 1./512
}

// preparing returns the predicted seconds to prepare n tokens of each of that many sequences, or 0
// if nothing is known.
func (p *pace) preparing(seqs, n int) float64 { return p.ready[rowClass(seqs)] * float64(n) }

// prepared records how long that took.
func (p *pace) prepared(seqs, n int, seconds float64) {
	learn(&p.ready[rowClass(seqs)], seconds/float64(n), quarter)
}

// Products on a GPU compute tiles of tileTokens tokens. A step with at least fillTokens prompt tokens
// beside decoding sequences has whole tiles, the nearest number of them.
const (
	tileTokens = 128
	fillTokens = 4 * tileTokens
)

// room returns how many prompt tokens go into a step with room for most, beside the given number of
// decoding rows.
func (p *pace) room(most, rows int) int {
	p.tokens = most
	switch {
	case rows == 0:
		p.tokens = min(most, max(p.size, chunkTokens))
	case p.each == 0:
		p.tokens = min(most, chunkTokens)
	default:
		left := max(0, p.gap.Seconds()-p.decoding(rows))
		n := int(min(left/p.each, float64(most), float64(max(2*p.before, chunkTokens))))
		switch {
		case n >= most:
		case n >= fillTokens:
			p.tokens = min(most, (rows+n+tileTokens/2)/tileTokens*tileTokens-rows)
		default:
			p.tokens = min(most, max(n/pageTokens*pageTokens, pageTokens))
		}
	}
	return p.tokens
}

// took records how long f took. It ignores the first step of a kind, which the device captures and
// which therefore says nothing about the next.
func (p *pace) took(f *flight, now time.Time, most int) {
	begun := f.begun
	if p.last.After(begun) {
		begun = p.last
	}
	p.last = now
	seconds := now.Sub(begun).Seconds()
	rows, drafted := 0, 0
	for i := range f.parts {
		part := &f.parts[i]
		if drafted += part.drafted; part.end-part.start-part.drafted == 1 {
			rows++
		}
	}
	decoding := p.decoding(rows)
	if drafted > 0 {
		decoding = p.drafting(rows, drafted)
	}
	switch {
	case f.capture > 0 || seconds <= 0:
	case f.moved > 0:
		// Other delays must not keep pages from being saved: the least time counts, and grows
		// slowly.
		p.moves++
		each := max(0, seconds-decoding-p.each*float64(f.prompt)) / float64(f.moved)
		if p.moves == 1 || each < p.move*1.1 {
			p.move = each
		} else {
			p.move *= 1.1
		}
	case f.prompt == 0 && drafted > 0:
		p.drew(rows, drafted, seconds)
	case f.prompt == 0:
		learn(&p.rows[rowClass(rows)], seconds, quarter)
	case f.prompt >= pageTokens && rows == 0:
		learn(&p.each, seconds/float64(f.prompt), quarter)
		p.saturate(f.prompt, seconds, most)
	case f.prompt >= pageTokens:
		// If prompts are a small part of the step, it says little about them.
		added := max(seconds-decoding, seconds/16)
		part := quarter
		if now := added / float64(f.prompt); now < p.each {
			part = min(quarter, added/seconds)
		}
		learn(&p.each, added/float64(f.prompt), part)
		p.before = f.prompt
	}
}

// saves reports whether saving and restoring a page of that many bytes is faster than computing its
// tokens again. It also returns true while that is not known, and now and then if it is slower, to
// measure again.
func (p *pace) saves(bytes, tokens int) bool {
	if p.moves < fewestMoves || p.each == 0 || 2*p.move*float64(bytes) < p.each*float64(tokens) {
		return true
	}
	p.move *= 0.99
	return false
}

// fewestMoves is how many steps must have moved pages before their measured cost counts.
const fewestMoves = 8

// The limits of steps of prompts alone; see [pace].
const (
	freeTokens = 1024
	aloneGaps  = 5
)

// saturate records how long a step of prompts alone took. most is the largest possible step, in
// tokens.
func (p *pace) saturate(tokens int, seconds float64, most int) {
	size := max(p.size, chunkTokens)
	if tokens < size-size/4 || tokens > size+size/4 {
		return // the step was not full, or planned before the size changed
	}
	at := class(size)
	learn(&p.alone[at], seconds/float64(tokens), quarter)
	less, own, more := p.alone[at-1], p.alone[at], &p.alone[at+1] // 0 if that size is not measured
	longest := aloneGaps * p.gap.Seconds()
	switch {
	case size > freeTokens && seconds > longest,
		size <= freeTokens && size > chunkTokens && less > 0 && own > less*0.97:
		size /= 2
	case size >= freeTokens && 2*size <= most && 2*seconds <= longest,
		size < freeTokens && 2*size <= most && *more < own*0.97:
		size *= 2
	case size < freeTokens:
		*more *= 0.998 // so that the larger size is tried again some time
	}
	p.size = size
}
