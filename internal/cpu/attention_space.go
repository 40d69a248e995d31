package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

const (
	// attentionRows is how many queries a tile has about: enough to load keys and
	// values seldom, few enough for the nearest cache.
	attentionRows = 32
	// fewItems per worker are too few to keep all of them busy to the end.
	fewItems = 4
	// maxKept is the largest room for segments that are kept apart, in float32, where
	// one token does not need more.
	maxKept = 2 << 20
)

// tileTokens is the number of tokens of a tile, at most.
func tileTokens(group int) int { return max(1, attentionRows/group) }

// headWidth is a head's length rounded up to what kernels write.
func headWidth(a *plan.AttentionAttr) int { return (a.HeadDim + headUnit - 1) / headUnit * headUnit }

// softSums are rows of a softmax under way: total is the sum of exp(score - top)
// and sum that of the values by these weights.
type softSums struct {
	top, total []float32 // [rows]
	sum        []float32 // [rows, width]
}

func newSoftSums(rows, values int) softSums {
	return softSums{make([]float32, rows), make([]float32, rows), make([]float32, values)}
}

// reset makes rows that have seen nothing.
func (s *softSums) reset(rows, width int) {
	for r := range rows {
		s.top[r] = float32(math.Inf(-1))
	}
	clear(s.total[:rows])
	clear(s.sum[:rows*width])
}

// from are the rows from r on.
func (s *softSums) from(r, width int) softSums {
	return softSums{s.top[r:], s.total[r:], s.sum[r*width:]}
}

func (s *softSums) row(r, width int) []float32 { return s.sum[r*width : (r+1)*width] }

// An attentionSpace is the memory in which attention works. All nodes of a
// program use the same.
type attentionSpace struct {
	desks []attentionDesk // by worker
	tiles []tile          // none, with room for as many as a step can have
	slots softSums        // of segments kept apart
}

// An attentionDesk is what one worker works on.
type attentionDesk struct {
	q     []float32 // [headDim, rows] queries, scaled
	score []float32 // [rows, scoreStride]
	part  softSums  // of a segment
	sums  softSums  // of the segments before
	half  []uint16  // [headDim]
	at    stretch
}

// attentionWork is the space of the attention nodes of a program.
var attentionWork = &space{
	bytes: func(b *Backend, p *plan.Program, lim *plan.Limits) int {
		return attentionRoom(p, lim, b.threads).bytes(b.threads)
	},
	make: func(e *executable) any {
		return newAttentionSpace(attentionRoom(e.p, &e.lim, len(e.desks)), len(e.desks))
	},
}

// attentionSizes are the sizes of an attentionSpace.
type attentionSizes struct {
	tiles, rows, queries, sums, dim, slots, kept int
}

// attentionRoom is what the attention nodes of p need at most in a step of lim.
func attentionRoom(p *plan.Program, lim *plan.Limits, workers int) attentionSizes {
	var z attentionSizes
	for i := range p.Nodes {
		n := &p.Nodes[i]
		a, ok := n.Attr.(plan.AttentionAttr)
		if !ok {
			continue
		}
		group, width := a.Heads/a.KVHeads, headWidth(&a)
		tokens := min(tileTokens(group), lim.Tokens)
		z.tiles = max(z.tiles, min(lim.Tokens, lim.Tokens/tokens+lim.Seqs))
		z.rows = max(z.rows, tokens*group)
		z.queries = max(z.queries, tokens*group*a.HeadDim)
		z.sums = max(z.sums, tokens*group*width)
		z.dim = max(z.dim, a.HeadDim)
		if workers == 1 {
			continue
		}
		// Tiles that are few have few rows, and about as many positions as fit the pool at
		// most: there can be more where sequences share pages, which go without.
		rows := min(lim.Tokens, (fewItems*workers/a.KVHeads+1)*tokens) * a.Heads
		positions := lim.Tokens
		if n.State != plan.NoState {
			positions = lim.Pages[p.States[n.State].Group] * lim.PageTokens
		}
		segments := positions/contextSegment + 2
		slots := min(rows*segments, max(maxKept/width, a.Heads*segments))
		z.slots, z.kept = max(z.slots, slots), max(z.kept, slots*width)
	}
	return z
}

func (z attentionSizes) bytes(workers int) int {
	const float, half = 4, 2
	desk := float*(z.queries+z.rows*scoreStride+2*(2*z.rows+z.sums)) + half*z.dim
	return workers*desk + float*(2*z.slots+z.kept)
}

func newAttentionSpace(z attentionSizes, workers int) *attentionSpace {
	s := &attentionSpace{desks: make([]attentionDesk, workers), tiles: make([]tile, 0, z.tiles), slots: newSoftSums(z.slots, z.kept)}
	for i := range s.desks {
		s.desks[i] = attentionDesk{
			q: make([]float32, z.queries), score: make([]float32, z.rows*scoreStride),
			part: newSoftSums(z.rows, z.sums), sums: newSoftSums(z.rows, z.sums), half: make([]uint16, z.dim),
		}
	}
	return s
}

// holds reports whether there is room for so many rows of segments.
func (s *attentionSpace) holds(rows, width int) bool {
	return rows <= len(s.slots.top) && rows*width <= len(s.slots.sum)
}
