package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

const (
	// attentionRows is the approximate number of queries in a tile: enough to load keys and values
	// rarely, few enough for the first-level cache.
	attentionRows = 32
	// With fewer than fewItems items per worker, some workers are idle at the end.
	fewItems = 4
	// maxKept bounds the memory for stored segments, in float32, unless one token needs more.
	maxKept = 2 << 20
)

// tileTokens returns the largest number of tokens in a tile. Tokens that read listed rows do not
// share any.
func tileTokens(a *plan.AttentionAttr) int {
	if a.Top > 0 || a.Rate > 0 {
		return 1
	}
	return max(1, attentionRows/(a.Heads/a.KVHeads))
}

// headWidth returns the length of a head's value rounded up to what kernels write.
func headWidth(a *plan.AttentionAttr) int {
	return (a.Values() + cacheBlock - 1) / cacheBlock * cacheBlock
}

// softSums are the rows of a partial softmax: total is the sum of exp(score - top), and sum the sum
// of the values with these weights.
type softSums struct {
	top, total []float32 // [rows]
	sum        []float32 // [rows, width]
}

func newSoftSums(rows, values int) softSums {
	return softSums{make([]float32, rows), make([]float32, rows), make([]float32, values)}
}

// reset sets rows to an empty softmax.
func (s *softSums) reset(rows, width int) {
	for r := range rows {
		s.top[r] = float32(math.Inf(-1))
	}
	clear(s.total[:rows])
	clear(s.sum[:rows*width])
}

// from returns the rows from r on.
func (s *softSums) from(r, width int) softSums {
	return softSums{s.top[r:], s.total[r:], s.sum[r*width:]}
}

func (s *softSums) row(r, width int) []float32 { return s.sum[r*width : (r+1)*width] }

// An attentionSpace is the scratch memory of attention, shared by all nodes of a program.
type attentionSpace struct {
	desks []attentionDesk // by worker
	tiles []tile          // empty, with capacity for the tiles of any step
	slots softSums        // stored segments
}

// An attentionDesk is the scratch memory of one worker.
type attentionDesk struct {
	q     []float32 // [headDim, rows] queries, scaled; for Latent [rows, rowStride(headDim)]
	score []float32 // [rows, scoreStride]
	part  softSums  // current segment
	sums  softSums  // segments so far
	half  []uint16  // [headDim]
	at    stretch

	// For Latent.
	row   []float32 // [headDim] a key
	keys  []float32 // [dotRows, rowStride(headDim)] some keys of a stretch
	dots  []float32 // [dotTokens, dotRows] scores
	block []byte    // a key in the format of a file
}

// attentionWork is the space of a program's attention nodes.
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
	tiles, rows, queries, sums, dim, latent, slots, kept int
}

// attentionRoom returns the sizes that the attention nodes of p need for any step within lim.
func attentionRoom(p *plan.Program, lim *plan.Limits, workers int) attentionSizes {
	var z attentionSizes
	for i := range p.Nodes {
		n := &p.Nodes[i]
		a, ok := n.Attr.(plan.AttentionAttr)
		if !ok {
			continue
		}
		group, width := a.Heads/a.KVHeads, headWidth(&a)
		tokens := min(tileTokens(&a), lim.Tokens)
		z.tiles = max(z.tiles, min(lim.Tokens, lim.Tokens/tokens+lim.Seqs))
		z.rows = max(z.rows, tokens*group)
		z.queries = max(z.queries, tokens*group*a.HeadDim)
		if a.Latent {
			z.queries = max(z.queries, tokens*group*rowStride(a.HeadDim))
			z.latent = max(z.latent, a.HeadDim)
		}
		z.sums = max(z.sums, tokens*group*width)
		z.dim = max(z.dim, a.HeadDim)
		if workers == 1 {
			continue
		}
		// Few tiles have few rows, with at most about as many positions as the pool. Sequences that
		// share pages can exceed that; then segments are not stored.
		rows := min(lim.Tokens, (fewItems*workers/a.KVHeads+1)*tokens) * a.Heads
		positions := lim.Tokens
		if n.State != plan.NoState {
			positions = lim.Pages[p.States[n.State].Group] * lim.PageTokens
		}
		segments := positions/contextSegment + 2
		if a.Rate > 0 {
			segments += lim.Pages[p.States[a.Compressed].Group]*lim.PageTokens/a.Rate/contextSegment + 1
		}
		slots := min(rows*segments, max(maxKept/width, a.Heads*segments))
		z.slots, z.kept = max(z.slots, slots), max(z.kept, slots*width)
	}
	return z
}

func (z attentionSizes) bytes(workers int) int {
	const float, half = 4, 2
	desk := float*(z.queries+z.rows*scoreStride+2*(2*z.rows+z.sums)) + half*z.dim
	if z.latent > 0 {
		desk += float*(z.latent+dotRows*(rowStride(z.latent)+dotTokens)) + blockBytes(z.latent)
	}
	return workers*desk + float*(2*z.slots+z.kept)
}

// blockBytes returns the size of a key of dim elements in a file's Q8_0.
func blockBytes(dim int) int { return dim / cacheBlock * (2 + cacheBlock) }

func newAttentionSpace(z attentionSizes, workers int) *attentionSpace {
	s := &attentionSpace{desks: make([]attentionDesk, workers), tiles: make([]tile, 0, z.tiles), slots: newSoftSums(z.slots, z.kept)}
	for i := range s.desks {
		s.desks[i] = attentionDesk{
			q: make([]float32, z.queries), score: make([]float32, z.rows*scoreStride),
			part: newSoftSums(z.rows, z.sums), sums: newSoftSums(z.rows, z.sums), half: make([]uint16, z.dim),
		}
		if z.latent > 0 {
			d := &s.desks[i]
			d.row, d.keys = make([]float32, 0, z.latent), make([]float32, dotRows*rowStride(z.latent))
			d.dots, d.block = make([]float32, dotTokens*dotRows), make([]byte, blockBytes(z.latent))
		}
	}
	return s
}

// holds reports whether that many rows of segments fit.
func (s *attentionSpace) holds(rows, width int) bool {
	return rows <= len(s.slots.top) && rows*width <= len(s.slots.sum)
}
