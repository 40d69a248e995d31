package cpu

import "github.com/realizar/realizar/internal/plan"

// A desk is what one worker multiplies on, for all nodes.
type desk struct {
	tile []float32 // rows of a weight that float32 is multiplied with
	sums [dotTokens * dotRows]float32

	totals [2][]float32 // [groups][tokens][rows] of a tile of one or two products of records
	panel  []byte
	scales []float32
	rest   []byte // a panel's rows of which some are beyond the weight's last
	values []float32
}

// deskSize is how long the slices of a desk are.
type deskSize struct{ tile, totals, panel, scales, rest, values int }

// desk is what the products of p need.
func (b *Backend) desk(p *plan.Program, lim *plan.Limits) (s deskSize) {
	q := b.tier.quantized
	rows := q.rows * q.panels
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op != plan.Linear {
			continue
		}
		k := n.Weight.Shape[1]
		if !b.product(n, lim) {
			s.tile = max(s.tile, dotRows*k)
			continue
		}
		f := blockFormats[n.Weight.DType]
		chunk := q.chunk(f, k)
		s.totals, s.values = tileRows*lim.Tokens, 2*tileRows
		s.panel = max(s.panel, rows*chunk)
		s.scales = max(s.scales, rows*max(f.scales(chunk), f.room()))
		s.rest = max(s.rest, q.rows*k/f.values*f.bytes)
	}
	return s
}

func (s *deskSize) bytes() int {
	return 4*(s.tile+2*s.totals+s.scales+s.values) + s.panel + s.rest
}

func (s *deskSize) make() desk {
	return desk{
		tile:   make([]float32, s.tile),
		totals: [2][]float32{make([]float32, s.totals), make([]float32, s.totals)},
		panel:  make([]byte, s.panel), scales: make([]float32, s.scales), rest: make([]byte, s.rest),
		values: make([]float32, s.values),
	}
}
