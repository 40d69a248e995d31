package lower

import (
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// Offsets in bytes of a step's sizes from stepAddresses.counts.
const (
	countTokens   = 0
	countRows     = 4
	countSeqs     = 8
	countPrefixes = 12
)

// Sizes in bytes of the records that Go and the kernels share.
const (
	ParamsBytes = 80 // of a row; see kernels/sample.cu
	resultBytes = 16
	placeBytes  = 8  // of a token
	UsesBytes   = 24 // see kernels/expertcache.cu
)

// A Room is the scratch memory of an executable besides the values: offsets into one block that
// begins with the values.
//
// The range from Counts to FlagsEnd holds a step's input, with the same layout as the host's copy;
// the range from Failed to ResultsEnd holds its results.
type Room struct {
	Ropes  []plan.RopeAttr
	groups int

	Counts, Tokens, From, Positions, Sequence, Starts, Rows, Params int
	Singles                                                         int    // see FillSingles
	Axes                                                            [2]int // by axis less 1: positions of tokens, if the program uses the axis
	Sets                                                            []int  // by rope: the frequency set of each token
	Places                                                          []int  // by group: of tokens, up to the shape's number
	prefixes                                                        prefixRoom
	Failed, Bad, Overflow, FlagsEnd                                 int // [S] each
	Ids, Results, Uses, Mail, ResultsEnd                            int // Uses: of experts, since the start
	exchange                                                        exchangeRoom

	Masks, MaskWords int
	Adjustments      int                // of a step, up to RoomyAdjustments
	Freqs            []int              // by rope: [2, or 2 and T][pairs] float64
	Spreads          []Spread           // in the order of the program
	angles           []int              // by rope: [T][pairs] of 8 bytes
	scratch          map[*plan.Op][]int // of operations; see operation.scratch
	sampled          int
	sampling         int
	samplingRow      int // size in bytes
	Bytes            int
}

// NewRoom plans the room after the given number of bytes of values.
func NewRoom(p *plan.Program, l *plan.Limits, values int) *Room {
	r := &Room{Ropes: ropes(p), groups: len(p.Groups), Bytes: weights.Align(values)}
	take := func(bytes int) int {
		at := r.Bytes
		r.Bytes += (bytes + 15) &^ 15
		return at
	}
	r.Counts = take(16)
	r.Tokens, r.From, r.Positions, r.Sequence = take(4*l.Tokens), take(4*l.Tokens), take(4*l.Tokens), take(4*l.Tokens)
	r.Starts, r.Rows = take(4*(Power(l.Seqs)+1)), take(4*l.Rows)
	r.Singles = take(4 * (Power(l.Seqs) + 1))
	for i, n := range p.Axes {
		if n > 0 {
			r.Axes[i] = take(4 * l.Tokens)
		}
	}
	for range r.Ropes {
		r.Sets = append(r.Sets, take(4*l.Tokens))
	}
	for range p.Groups {
		r.Places = append(r.Places, take(placeBytes*Power(l.Tokens)))
	}
	if r.prefixes.group = NewPrefixes(p, l, 1).group; r.prefixes.group >= 0 {
		r.prefixes.segments, r.prefixes.members = take(4*Power(l.Seqs)), take(4*l.Seqs)
		r.prefixes.places, r.prefixes.starts = take(placeBytes*l.Seqs), take(4*(l.Seqs+1))
	}
	r.Params = take(ParamsBytes * l.Rows)
	r.Failed, r.Bad, r.Overflow = take(4*l.Seqs), take(4*l.Seqs), take(4*l.Seqs)
	r.FlagsEnd = r.Bytes
	r.Ids, r.Results = take(4*l.Tokens), take(resultBytes*l.Rows)
	r.Uses, r.Mail = take(UsesBytes), take(mailBytes)
	r.ResultsEnd = r.Bytes

	r.takeExchanges(p, l, take)
	vocab := int(p.Shapes[p.Logits][1])
	r.MaskWords = p.MaskWords()
	r.Masks = take(l.MaskBytes(p))
	r.Adjustments = take(AdjustmentBytes * RoomyAdjustments)
	for _, a := range r.Ropes {
		sets := 2
		if a.Dynamic != nil {
			sets += l.Tokens
		}
		r.Freqs = append(r.Freqs, take(8*sets*a.Dims/2))
		r.angles = append(r.angles, take(8*l.Tokens*a.Dims/2))
	}
	for i := range p.Nodes {
		if a, ok := p.Nodes[i].Attr.(plan.SpreadAttr); ok {
			r.Spreads = append(r.Spreads, Spread{&p.Nodes[i], take(4 * a.Cols)})
		}
	}
	r.Bytes = weights.Align(r.Bytes)
	r.takeScratch(p, l)
	r.sampled = take(4 * l.Rows)
	r.samplingRow = samplingBytes(vocab)
	r.Bytes = weights.Align(r.Bytes)
	r.sampling = take(r.samplingRow * l.Rows)
	return r
}

// takeScratch reserves scratch memory for each operation: the most that one of its nodes needs.
func (r *Room) takeScratch(p *plan.Program, l *plan.Limits) {
	r.scratch = map[*plan.Op][]int{}
	var ops []*plan.Op // in the order of their first nodes
	for i := range p.Nodes {
		n := &p.Nodes[i]
		sizes, seen := r.scratch[n.Op]
		if !seen {
			ops = append(ops, n.Op)
		}
		for k, bytes := range operations[n.Op].scratch(p, l, n) {
			if k == len(sizes) {
				sizes = append(sizes, 0)
			}
			sizes[k] = max(sizes[k], bytes)
		}
		r.scratch[n.Op] = sizes
	}
	for _, op := range ops {
		for k, bytes := range r.scratch[op] {
			r.scratch[op][k] = r.Bytes
			r.Bytes += weights.Align(bytes)
		}
	}
}

// stepAddresses are the device addresses of a step's input and results.
type stepAddresses struct {
	counts, tokens, from, positions, sequence, starts, singles, rows, params driver.DevicePtr
	axes                                                                     [2]driver.DevicePtr
	sets, places, pages                                                      []driver.DevicePtr
	prefixes                                                                 prefixAddresses
	failed, bad, overflow, ids, results, sampled                             driver.DevicePtr
}

// Addresses returns the addresses of a step's input and results, with the room at base and the page
// tables of each group at pages.
func (r *Room) Addresses(base driver.DevicePtr, pages []driver.DevicePtr) stepAddresses {
	at := func(offset int) driver.DevicePtr { return base + driver.DevicePtr(offset) }
	all := func(offsets []int) (a []driver.DevicePtr) {
		for _, o := range offsets {
			a = append(a, at(o))
		}
		return a
	}
	return stepAddresses{
		counts: at(r.Counts), tokens: at(r.Tokens), from: at(r.From), positions: at(r.Positions), sequence: at(r.Sequence), starts: at(r.Starts), singles: at(r.Singles), rows: at(r.Rows), params: at(r.Params),
		axes: [2]driver.DevicePtr{at(r.Axes[0]), at(r.Axes[1])}, sets: all(r.Sets), places: all(r.Places), pages: pages,
		prefixes: prefixAddresses{at(r.prefixes.segments), at(r.prefixes.members), at(r.prefixes.places), at(r.prefixes.starts)},
		failed:   at(r.Failed), bad: at(r.Bad), overflow: at(r.Overflow), ids: at(r.Ids), results: at(r.Results), sampled: at(r.sampled),
	}
}

// PageRoom returns how many entries the page tables of a group may have. Every sequence may list
// all pages, because sequences with the same prefix share them; or it has two slots.
func PageRoom(l *plan.Limits, group int) int { return l.Seqs * max(2, l.Pages[group]) }

// AdjustmentBytes is the size of an adjustment in bytes, which has the same layout on the device as
// in Go.
const AdjustmentBytes = int(unsafe.Sizeof(sample.Adjustment{}))

// RoomyAdjustments is the number of a step's adjustments that fit in device memory. The others stay
// in host memory, which kernels read more slowly.
const RoomyAdjustments = 16 << 10
