package cpu

import (
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
)

// A desk is the scratch memory of one worker for products, shared by all nodes.
type desk struct {
	tile []float32 // dequantized rows of a weight
	sums [dotTokens * dotRows]float32

	totals [2][]float32 // [groups][tokens][lanes] for a tile of one or two products
	places []float32    // the same for all chosen experts, one expert after the other
	values [2 * tileRows]float32
	unit   unitSpace

	embedding []byte // a row of an interleaved table
}

// deskSize holds the lengths of the slices of a desk.
type deskSize struct{ tile, totals, places, embedding int }

// desk returns the sizes for the nodes of p.
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
