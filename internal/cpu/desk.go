package cpu

import "github.com/realizar/realizar/internal/plan"

// A desk is what one worker multiplies on, for all nodes.
type desk struct {
	tile []float32 // rows of a weight that float32 is multiplied with
	sums [dotTokens * dotRows]float32

	totals [2][]float32 // [groups][tokens][lanes] of a tile of one or two products of records
	values []float32

	embedding []byte // a row of a table that is interleaved
}

// deskSize is how long the slices of a desk are.
type deskSize struct{ tile, totals, values, embedding int }

// desk is what the products of p need.
func (b *Backend) desk(p *plan.Program, lim *plan.Limits) (s deskSize) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op == plan.Embed {
			s.embedding = max(s.embedding, n.Weight.RowBytes())
		}
		if n.Op != plan.Linear {
			continue
		}
		if b.product(n, lim) {
			s.totals, s.values = tileRows*lim.Tokens, 2*tileRows
		} else {
			s.tile = max(s.tile, dotRows*rowStride(n.Weight.Shape[1]))
		}
	}
	return s
}

func (s *deskSize) bytes() int { return 4*(s.tile+2*s.totals+s.values) + s.embedding }

func (s *deskSize) make() desk {
	return desk{
		tile:   make([]float32, s.tile),
		totals: [2][]float32{make([]float32, s.totals), make([]float32, s.totals)},
		values: make([]float32, s.values), embedding: make([]byte, s.embedding),
	}
}
