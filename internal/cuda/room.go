package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// Where counts has a step's sizes.
const (
	countTokens = 0
	countRows   = 4
)

const (
	paramsBytes = 80 // of a row, see kernels/sample.cu
	resultBytes = 16
	placeBytes  = 8  // of a token
	usesBytes   = 24 // see kernels/expertcache.cu
)

// A room is the scratch memory of an executable beside the values: offsets into one
// piece that begins with them.
//
// From counts to flagsEnd it holds what a step is told, as the host's memory for it
// does; from failed to resultsEnd, what comes back.
type room struct {
	ropes  []plan.RopeAttr
	groups int

	counts, tokens, from, positions, sequence, starts, rows, params int
	axes                                                            [2]int // by axis less 1: of tokens, where the program goes by it
	sets                                                            []int  // by rope: which frequencies a token goes by
	places                                                          []int  // by group: of tokens, up to the shape's
	failed, bad, overflow, flagsEnd                                 int    // [S] each
	ids, results, uses, resultsEnd                                  int    // uses: of experts, since the beginning

	masks, maskWords int
	adjustments      int   // of a step, as many as roomyAdjustments
	freqs            []int // by rope: [2, or 2 and T][pairs] float64
	angles           []int // by rope: [T][pairs] of 8 bytes
	partials         int
	tickets          int
	sampled          int
	sampling         int
	samplingRow      int // bytes
	experts          expertRoom
	bytes            int
}

// newRoom plans the room, which begins with that many bytes of values.
func newRoom(p *plan.Program, l *plan.Limits, values int) *room {
	r := &room{ropes: ropes(p), groups: len(p.Groups), bytes: align(values)}
	take := func(bytes int) int {
		at := r.bytes
		r.bytes += (bytes + 15) &^ 15
		return at
	}
	r.counts = take(16)
	r.tokens, r.from, r.positions, r.sequence = take(4*l.Tokens), take(4*l.Tokens), take(4*l.Tokens), take(4*l.Tokens)
	r.starts, r.rows = take(4*(l.Seqs+1)), take(4*l.Rows)
	for i, n := range p.Axes {
		if n > 0 {
			r.axes[i] = take(4 * l.Tokens)
		}
	}
	for range r.ropes {
		r.sets = append(r.sets, take(4*l.Tokens))
	}
	for range p.Groups {
		r.places = append(r.places, take(placeBytes*power(l.Tokens)))
	}
	r.params = take(paramsBytes * l.Rows)
	r.failed, r.bad, r.overflow = take(4*l.Seqs), take(4*l.Seqs), take(4*l.Seqs)
	r.flagsEnd = r.bytes
	r.ids, r.results = take(4*l.Tokens), take(resultBytes*l.Rows)
	r.uses = take(usesBytes)
	r.resultsEnd = r.bytes

	vocab := int(p.Shapes[p.Logits][1])
	r.maskWords = (vocab + 31) / 32
	r.masks = take(4 * r.maskWords * l.Rows)
	r.adjustments = take(adjustmentBytes * roomyAdjustments)
	for _, a := range r.ropes {
		sets := 2
		if a.Dynamic != nil {
			sets += l.Tokens
		}
		r.freqs = append(r.freqs, take(8*sets*a.Dims/2))
		r.angles = append(r.angles, take(8*l.Tokens*a.Dims/2))
	}
	partial, heads := 0, 0
	for i := range p.Nodes {
		if a, ok := p.Nodes[i].Attr.(plan.AttentionAttr); ok && p.Nodes[i].Op == plan.Attention {
			partial = max(partial, 4*headGroups(a)*blockHeads*(a.HeadDim+2))
			heads = max(heads, a.Heads)
		}
	}
	r.bytes = align(r.bytes)
	r.partials, r.tickets = take(partial*splitPartials), take(4*heads*power(l.Tokens))
	r.sampled = take(4 * l.Rows)
	r.samplingRow = samplingBytes(vocab)
	r.bytes = align(r.bytes)
	r.sampling = take(r.samplingRow * l.Rows)
	r.bytes = align(r.bytes)
	r.experts, r.bytes = planExperts(p, l, r.bytes)
	return r
}

// stepAddresses is where the kernels find what a step is told.
type stepAddresses struct {
	counts, tokens, from, positions, sequence, starts, rows, params driver.DevicePtr
	axes                                                            [2]driver.DevicePtr
	sets, places, pages                                             []driver.DevicePtr
	failed, bad, overflow, ids, results, sampled                    driver.DevicePtr
}

func (r *room) addresses(base driver.DevicePtr, pages []driver.DevicePtr) stepAddresses {
	at := func(offset int) driver.DevicePtr { return base + driver.DevicePtr(offset) }
	all := func(offsets []int) (a []driver.DevicePtr) {
		for _, o := range offsets {
			a = append(a, at(o))
		}
		return a
	}
	return stepAddresses{
		counts: at(r.counts), tokens: at(r.tokens), from: at(r.from), positions: at(r.positions), sequence: at(r.sequence), starts: at(r.starts), rows: at(r.rows), params: at(r.params),
		axes: [2]driver.DevicePtr{at(r.axes[0]), at(r.axes[1])}, sets: all(r.sets), places: all(r.places), pages: pages,
		failed: at(r.failed), bad: at(r.bad), overflow: at(r.overflow), ids: at(r.ids), results: at(r.results), sampled: at(r.sampled),
	}
}

// pageRoom is for how many pages the tables of a group have room: every sequence may have
// all there are, which sequences that begin alike share, or two slots.
func pageRoom(l *plan.Limits, group int) int { return l.Seqs * max(2, l.Pages[group]) }
