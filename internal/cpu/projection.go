package cpu

import (
	"github.com/realizar/realizar/internal/plan"
)

// tileRows is how many rows of weights are worked on together. A tile's outputs are
// whole blocks of a record.
const tileRows = recordBlock

// panelValues is about how many values of weights lie unpacked at a time: a quarter
// of a first-level cache, which leaves room for records and scales.
const panelValues = 8 << 10

// A projection multiplies one input with the weights of a stage, tile by tile.
type projection struct {
	e        *executable
	in       plan.Value
	products []*product
	glu      *plan.Node
	residual plan.Value // added to the product, or -1
}

// A product is one weight of a projection.
type product struct {
	node   *plan.Node
	out    plan.Value // where it goes, unless it is gated
	bias   []float32
	format *blockFormat
	unpack unpackFunc
	fused  fusedFunc
	data   []byte // of the weight
	rows   int
	size   int // bytes of a row
	k      int
	tiles  int
}

func project(e *executable, s *stage) ([]kernel, error) {
	p := &projection{e: e, in: s.nodes[0].In[0], glu: s.glu, residual: -1}
	q := e.tier.quantized
	for _, n := range s.nodes {
		bias, err := floats(n.Bias)
		if err != nil {
			return nil, err
		}
		d := n.Weight.DType
		p.products = append(p.products, &product{
			node: n, out: n.Out, bias: bias, format: blockFormats[d], unpack: q.unpack[d], fused: q.fused[d],
			data: n.Weight.Data, rows: n.Weight.Rows(), size: len(n.Weight.Row(0)), k: n.Weight.Cols(),
			tiles: (n.Weight.Rows() + tileRows - 1) / tileRows,
		})
	}
	if s.add != nil {
		p.residual, p.products[0].out = s.residual(), s.add.Out
	}
	tiles := 0
	for _, t := range p.products {
		tiles += t.tiles
	}
	run := p.tile
	if s.glu != nil {
		tiles, run = p.products[0].tiles, p.gated
	}
	size := func() int {
		if e.size(s.nodes[0].Out) == 0 {
			return 0 // no row of the step is wanted
		}
		return tiles
	}
	ahead := func(worker int) {
		i := tiles * worker / len(e.desks) // where its span begins
		for _, t := range p.products {
			if i < t.tiles {
				t.fetch(i)
				if s.glu == nil {
					return
				}
				continue // the other product's tile is multiplied with this one
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

// chunk is how many values of rows of k are unpacked at a time.
func (q *quantizedKernels) chunk(f *blockFormat, k int) int {
	return min(k, max(f.values, panelValues/(q.rows*q.panels)))
}

// tile does tile i of all tiles of the products, one product after the other.
func (p *projection) tile(b *desk, i int) {
	for _, t := range p.products {
		if i >= t.tiles {
			i -= t.tiles
			continue
		}
		p.multiply(b, 0, t, i)
		rows := min(tileRows, t.rows-i*tileRows)
		for r := range p.e.size(t.node.Out) {
			y := p.e.row(t.out, r)[i*tileRows:][:rows]
			p.gather(y, b, 0, r, t, i)
			if p.residual >= 0 {
				p.e.tier.vector.add(y, y, p.e.row(p.residual, r)[i*tileRows:][:rows])
			}
			p.e.wrote(t.out, r, i*tileRows, i*tileRows+rows)
		}
		return
	}
}

// gated does tile i of the gate and of what it gates.
func (p *projection) gated(b *desk, i int) {
	gate, up := p.products[0], p.products[1]
	p.multiply(b, 0, gate, i)
	p.multiply(b, 1, up, i)
	rows := min(tileRows, gate.rows-i*tileRows)
	g, u := b.values[:rows], b.values[tileRows:][:rows]
	for r := range p.e.size(p.glu.Out) {
		p.gather(g, b, 0, r, gate, i)
		p.gather(u, b, 1, r, up, i)
		p.e.tier.vector.glu(p.e.row(p.glu.Out, r)[i*tileRows:][:rows], g, u, p.glu.Attr.(plan.GLUAttr).Act)
		p.e.wrote(p.glu.Out, r, i*tileRows, i*tileRows+rows)
	}
}

// gather writes token r's products of tile i to y, the bias added.
func (p *projection) gather(y []float32, b *desk, which, r int, t *product, i int) {
	q := p.e.tier.quantized
	wide := q.rows * q.panels
	tokens := p.e.size(t.node.Out)
	for g := 0; g < len(y); g += wide {
		copy(y[g:], b.totals[which][g*tokens+r*wide:][:wide])
	}
	if t.bias != nil {
		p.e.tier.vector.add(y, y, t.bias[i*tileRows:][:len(y)])
	}
}

// multiply computes tile i of t for all tokens, in totals which.
func (p *projection) multiply(b *desk, which int, t *product, i int) {
	e, q, k := p.e, p.e.tier.quantized, t.k
	tokens := e.size(t.node.Out)
	x := e.record(p.in, 0)
	totals := b.totals[which][:tileRows*tokens]
	clear(totals)
	last := min(t.rows, (i+1)*tileRows)
	wide := q.rows * q.panels
	if tokens == 1 && t.fused != nil {
		for row := i * tileRows; row < last; {
			groups := max(1, (last-row)/q.rows)
			data := t.group(b, groups*q.rows, row)
			t.fused(totals, b.scales, x, data, t.size, k/t.format.values, groups, t.ahead((row+tileRows)*t.size))
			row, totals = row+groups*q.rows, totals[groups*q.rows:]
		}
		return
	}
	chunk := q.chunk(t.format, k)
	for row := i * tileRows; row < last; row += wide {
		to := totals[(row-i*tileRows)*tokens:][:wide*tokens]
		scaleFloats := q.rows * t.format.scales(chunk)
		for at := 0; at < k; at += chunk {
			n := min(chunk, k-at)
			for j := 0; j < q.panels && row+j*q.rows < last; j++ {
				data := t.group(b, q.rows, row+j*q.rows)
				begin := at / t.format.values * t.format.bytes
				// The next tile's bytes in order, as many as are unpacked here.
				next := t.ahead((row+j*q.rows+tileRows)*t.size + q.rows*begin)
				t.unpack(b.panel[j*q.rows*chunk:], b.scales[j*scaleFloats:], data[begin:], t.size, n/t.format.values, next)
			}
			q.multiply(t.format, to, b.panel, q.rows*chunk, b.scales, scaleFloats, x[at/recordBlock*recordBlockBytes:], recordBytes(k), tokens, n/recordBlock)
		}
	}
}

// group is n rows of the weight from row on, copied where not all of them exist.
func (t *product) group(b *desk, n, row int) []byte {
	if row+n <= t.rows {
		return t.data[row*t.size:][:n*t.size]
	}
	data := b.rest[:n*t.size]
	copy(data, t.data[row*t.size:])
	return data
}

// fetch asks memory for tile i.
func (t *product) fetch(i int) {
	rows := min(tileRows, t.rows-i*tileRows)
	prefetch(&t.data[i*tileRows*t.size], (rows*t.size+63)/64)
}

// ahead is byte i of the weight, or its last where there are not so many: what is
// to be prefetched need not exist, but a pointer to it must.
func (t *product) ahead(i int) *byte { return &t.data[min(i, len(t.data)-1)] }
