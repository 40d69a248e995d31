package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// tileRows is the number of rows of weights in a tile. A tile's outputs are whole blocks of a
// record.
const tileRows = recordBlock

// A projection multiplies one input with the weights of a stage, tile by tile.
type projection struct {
	e        *executable
	in       plan.Value
	products []*product
	glu      *plan.Node
	unit     *unit
	residual plan.Value // value added to the product, or -1
}

// A product is one weight of a projection.
type product struct {
	node     *plan.Node
	out      plan.Value // result, unless it is gated
	bias     []float32
	mapper   *mapper // or nil
	weight   *interleaved
	multiply productFunc
	tiles    int
}

func project(e *executable, s *fuse.Stage) ([]kernel, error) {
	p := &projection{e: e, in: s.Node().In[0], glu: s.GLU, residual: -1}
	for i, n := range s.Nodes {
		bias, err := floats(n.Bias)
		if err != nil {
			return nil, err
		}
		t := &product{
			node: n, out: s.Product(i), bias: bias, weight: e.weights[n.Weight], multiply: e.tier.quantized.products[n.Weight.DType],
			tiles: (n.Weight.Rows() + tileRows - 1) / tileRows,
		}
		if m := s.Maps[i]; m != nil {
			t.mapper = e.tier.mapper(m)
		}
		p.products = append(p.products, t)
	}
	if s.Add != nil {
		p.residual, p.products[0].out = s.Residual(), s.Add.Out
	}
	tiles := 0
	for _, t := range p.products {
		tiles += t.tiles
	}
	run := p.tile
	if s.GLU != nil {
		tiles, run = p.products[0].tiles, p.gated
		p.unit = e.tier.gate(s.GLU)
	}
	size := func() int {
		if e.size(s.Node().Out) == 0 {
			return 0 // the step wants no rows
		}
		return tiles
	}
	ahead := func(worker int) {
		i := tiles * worker / len(e.desks) // first tile of the worker's span
		for _, t := range p.products {
			if i < t.tiles {
				t.fetch(i)
				if s.GLU == nil {
					return
				}
				continue // this tile is computed with the other product's
			}
			i -= t.tiles
		}
	}
	return []kernel{{size: size, ahead: ahead, run: func(worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			run(&e.desks[worker], i)
		}
	}}}, nil
}

// tile computes tile i of all products' tiles; the tiles of a product are consecutive.
func (p *projection) tile(b *desk, i int) {
	for _, t := range p.products {
		if i >= t.tiles {
			i -= t.tiles
			continue
		}
		p.multiply(b, 0, t, i)
		rows := min(tileRows, t.weight.rows-i*tileRows)
		unread := p.e.code.unread[t.out]
		for r := range p.e.size(t.node.Out) {
			y := b.values[:rows]
			if !unread {
				y = p.e.row(t.out, r)[i*tileRows:][:rows]
			}
			p.gather(y, b, 0, r, t, i)
			if t.mapper != nil {
				t.mapper.apply(y, y, &b.unit)
			}
			if p.residual >= 0 {
				p.e.tier.vector.add(y, y, p.e.row(p.residual, r)[i*tileRows:][:rows])
			}
			if unread { // only the record is read; writing the row too would touch memory outside the cache
				p.e.quantizePiece(t.out, r, i*tileRows, y)
				continue
			}
			p.e.wrote(t.out, r, i*tileRows, i*tileRows+rows)
		}
		return
	}
}

// gated computes tile i of the gate and the value that it gates.
func (p *projection) gated(b *desk, i int) {
	gate, up := p.products[0], p.products[1]
	p.multiply(b, 0, gate, i)
	p.multiply(b, 1, up, i)
	rows := min(tileRows, gate.weight.rows-i*tileRows)
	g, u := b.values[:rows], b.values[tileRows:][:rows]
	for r := range p.e.size(p.glu.Out) {
		p.gather(g, b, 0, r, gate, i)
		p.gather(u, b, 1, r, up, i)
		if p.e.code.unread[p.glu.Out] {
			p.unit.apply(g, g, u, &b.unit)
			p.e.quantizePiece(p.glu.Out, r, i*tileRows, g)
			continue
		}
		p.unit.apply(p.e.row(p.glu.Out, r)[i*tileRows:][:rows], g, u, &b.unit)
		p.e.wrote(p.glu.Out, r, i*tileRows, i*tileRows+rows)
	}
}

// gather writes token r's products of tile i, plus the bias, to y.
func (p *projection) gather(y []float32, b *desk, which, r int, t *product, i int) {
	lanes, tokens := t.weight.lanes, p.e.size(t.node.Out)
	for g := 0; g < len(y); g += lanes {
		copy(y[g:], b.totals[which][g*tokens+r*lanes:][:lanes])
	}
	if t.bias != nil {
		p.e.tier.vector.add(y, y, t.bias[i*tileRows:][:len(y)])
	}
}

// multiply computes tile i of t for all tokens, in totals number which.
func (p *projection) multiply(b *desk, which int, t *product, i int) {
	tokens, w := p.e.size(t.node.Out), t.weight
	totals := b.totals[which][:tileRows*tokens]
	clear(totals)
	groups := tileRows / w.lanes
	tile := w.section(i*groups, min(groups, w.groups()-i*groups))
	t.multiply(totals, tile, p.e.record(p.in, 0), recordStride(w.blocks*w.format.values), tokens)
}

// fetch prefetches tile i.
func (t *product) fetch(i int) {
	w := t.weight
	groups := tileRows / w.lanes
	prefetch(&w.data[i*groups*w.groupBytes()], min(groups, w.groups()-i*groups)*w.groupBytes()/64)
}
