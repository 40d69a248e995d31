package engine

import (
	"math/bits"
	"time"
)

// gap is the default of [Config.Gap].
const gap = 100 * time.Millisecond

// A pace knows from the steps that are done how long the next one takes, and says how many
// tokens of prompts go into it.
//
// A step without prompts takes as long as those of about as many rows did. What a step takes
// longer than that is its prompts', the same for each of their tokens. So a step that others
// wait for takes what fits into the gap, and no more than twice what the one before took, so that
// what is not known well yet does no harm. A step of prompts alone takes as many tokens as it
// needs for the device to be as fast as it can: it doubles them while that makes a token
// quicker by a twentieth.
type pace struct {
	gap  time.Duration
	last time.Time // when the last step was done

	rows   [rowSizes]float64 // seconds of a step of decoding rows, by the class of their number
	each   float64           // seconds that a token of a prompt adds to one
	before int               // tokens of prompts of the last such step

	move  float64 // seconds that a byte adds to a step that is saved or restored
	moves int     // steps that this was learnt from

	alone  [sizes]float64 // seconds of a token of a step of prompts, by the class of its tokens
	size   int            // tokens of such a step; 0: not known
	tokens int            // of prompts that the step made last had room for
}

// sizes is the number of classes of tokens: of 1, 2 and 3, 4 to 7, and so on. Of rows there are
// more: those up to 8 are a class each, and from there on each of those has four parts.
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

// learn makes v, which stands for what was seen before, or 0, that and a part of what is seen now.
func learn(v *float64, now, part float64) {
	if *v > 0 {
		now = *v + (now-*v)*part
	}
	*v = now
}

const quarter = 0.25

// decoding is how many seconds a step of so many rows takes: as those of the nearest number
// that is known, and a smaller one rather than a larger one.
func (p *pace) decoding(rows int) float64 {
	if rows == 0 {
		return 0
	}
	at := rowClass(rows)
	for i := at; i >= 0; i-- {
		if p.rows[i] > 0 {
			return p.rows[i]
		}
	}
	for _, v := range p.rows[at:] {
		if v > 0 {
			return v
		}
	}
	return 0
}

// room is how many tokens of prompts go into a step that has room for so many, beside so many
// rows that decode.
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
		if n < most {
			p.tokens = min(most, max(n/pageTokens*pageTokens, pageTokens))
		}
	}
	return p.tokens
}

// took notes how long f took. The first step of a kind, which a device captures, says nothing of
// the next.
func (p *pace) took(f *flight, now time.Time, most int) {
	begun := f.begun
	if p.last.After(begun) {
		begun = p.last
	}
	p.last = now
	seconds := now.Sub(begun).Seconds()
	rows := 0
	for i := range f.parts {
		if part := &f.parts[i]; part.end-part.start == 1 {
			rows++
		}
	}
	switch {
	case f.capture > 0 || seconds <= 0:
	case f.moved > 0:
		// What else holds a step up is no reason not to save: the least counts, and grows slowly.
		p.moves++
		each := max(0, seconds-p.decoding(rows)-p.each*float64(f.prompt)) / float64(f.moved)
		if p.moves == 1 || each < p.move*1.1 {
			p.move = each
		} else {
			p.move *= 1.1
		}
	case f.prompt == 0:
		learn(&p.rows[rowClass(rows)], seconds, quarter)
	case f.prompt >= pageTokens && rows == 0:
		learn(&p.each, seconds/float64(f.prompt), quarter)
		p.saturate(f.prompt, seconds, most)
	case f.prompt >= pageTokens:
		// Where prompts are a small part of the step, little is known of them.
		added := max(seconds-p.decoding(rows), seconds/16)
		part := quarter
		if now := added / float64(f.prompt); now < p.each {
			part = min(quarter, added/seconds)
		}
		learn(&p.each, added/float64(f.prompt), part)
		p.before = f.prompt
	}
}

// saves says whether to save a page of so many bytes and to restore it takes less time than to
// make the states of its tokens again. It does so also where it is not known, and now and then
// where it does not, so that it becomes known.
func (p *pace) saves(bytes, tokens int) bool {
	if p.moves < fewestMoves || p.each == 0 || 2*p.move*float64(bytes) < p.each*float64(tokens) {
		return true
	}
	p.move *= 0.99
	return false
}

// fewestMoves are steps that moved pages, from which something is learnt.
const fewestMoves = 8

// saturate notes how long a step of so many tokens of prompts took, of most, and nothing else.
func (p *pace) saturate(tokens int, seconds float64, most int) {
	size := max(p.size, chunkTokens)
	if tokens < size-size/4 {
		return // it was not filled
	}
	at := class(size)
	learn(&p.alone[at], seconds/float64(tokens), quarter)
	own, more := p.alone[at], &p.alone[at+1]
	switch less := p.alone[at-1]; {
	case 2*size <= most && *more < own*0.95: // or it is not known
		size *= 2
	case size > chunkTokens && less > 0 && own > less*0.95:
		size /= 2
	default:
		*more *= 0.998 // so that it is tried again some time
	}
	p.size = size
}
