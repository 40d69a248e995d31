package cpu

import (
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
)

// A desk is what one worker multiplies on, for all nodes.
type desk struct {
	tile []float32 // rows of a weight that float32 is multiplied with
	sums [dotTokens * dotRows]float32

	totals [2][]float32 // [groups][tokens][lanes] of a tile of one or two products
	places []float32    // those of all experts that tokens have chosen, one expert after the other
	values [2 * tileRows]float32
	unit   unitSpace

	embedding []byte // a row of a table that is interleaved
}

// deskSize is how long the slices of a desk are.
type deskSize struct{ tile, totals, places, embedding int }

// desk is what the nodes of p need.
func (b *Backend) desk(p *plan.Program, lim *plan.Limits) (s deskSize) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		own := operationOf(n).desk(n, lim)
		s.totals, s.places, s.embedding = max(s.totals, own.totals), max(s.places, own.places), max(s.embedding, own.embedding)
		for _, w := range n.Weights() {
			switch {
			case w.Role != plan.Matrix:
			case b.inRecords(w.Tensor, lim):
				s.totals = max(s.totals, tileRows*lim.Tokens)
			default:
				s.tile = max(s.tile, dotRows*rowStride(w.Cols()))
			}
		}
	}
	return s
}

func (s *deskSize) bytes() int {
	return int(unsafe.Sizeof(desk{})) + 4*(s.tile+2*s.totals+s.places) + s.embedding
}

func (s *deskSize) make() desk {
	return desk{
		tile:   make([]float32, s.tile),
		totals: [2][]float32{make([]float32, s.totals), make([]float32, s.totals)},
		places: make([]float32, s.places), embedding: make([]byte, s.embedding),
	}
}
