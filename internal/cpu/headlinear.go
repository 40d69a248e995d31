package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// headLinear multiplies each head with a weight of its own. A head's weight is multiplied with its
// part of all tokens, as an expert's is with the rows of its tokens.
type headLinear struct{ ordinary }

func (headLinear) desk(_ *plan.Node, lim *plan.Limits) deskSize {
	return deskSize{totals: tileRows * lim.Tokens}
}

// pieces is that of tiles, if they are whole blocks of a record of the result.
func (headLinear) pieces(n *plan.Node) int {
	if a := n.Attr.(plan.HeadLinearAttr); a.Kept > 0 || a.Out()%tileRows != 0 {
		return 1
	}
	return tileRows
}

func (headLinear) spaces() []*space { return []*space{headWork} }

// A headSpace is the scratch memory of products by head, shared by all nodes of a program: the
// inputs of all heads and tokens, first those of head 0. Weights in formats that are computed in
// bytes read records, others floats.
type headSpace struct {
	floats  []float32
	records []byte
}

// headWork is the space of a program's products by head.
var headWork = &space{
	bytes: func(b *Backend, p *plan.Program, lim *plan.Limits) int {
		floats, records := b.headRoom(p, lim)
		return 4*floats + records
	},
	make: func(e *executable) any {
		floats, records := e.backend.headRoom(e.p, &e.lim)
		return &headSpace{make([]float32, floats), make([]byte, records)}
	},
}

// headRoom returns the number of floats and the bytes of records for any step within lim.
func (b *Backend) headRoom(p *plan.Program, lim *plan.Limits) (floats, records int) {
	for i := range p.Nodes {
		a, ok := p.Nodes[i].Attr.(plan.HeadLinearAttr)
		if !ok {
			continue
		}
		rows := lim.Size(p.Shapes[p.Nodes[i].Out][0]) * len(a.Weight)
		if b.inRecords(a.Weight[0], lim) {
			records = max(records, rows*recordStride(a.In()))
		} else {
			floats = max(floats, rows*rowStride(a.In()))
		}
	}
	return floats, records
}

// kernels returns kernels that gather the inputs of each head, and multiply them with its weight,
// tile by tile.
func (o headLinear) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	a := n.Attr.(plan.HeadLinearAttr)
	weights, err := e.expertWeights(a.Weight, nil)
	if err != nil {
		return nil, err
	}
	room := e.space(headWork).(*headSpace)
	heads, in, out := len(a.Weight), a.In(), a.Out()
	x := operand{width: rowStride(in), bytes: recordStride(in)}
	if weights.packed != nil {
		x.records = room.records
	} else {
		x.floats = room.floats
	}
	whole := o.pieces(n) == tileRows
	tokens := func() int { return e.size(n.Out) }
	return []kernel{
		{size: func() int { return heads * tokens() }, grain: 8, run: func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				h, t := i/tokens(), i%tokens()
				from := e.row(n.In[0], t)[h*(in+a.Kept):][:in+a.Kept]
				if to := x.from(i); to.records != nil {
					e.tier.vector.quantize(to.records[:recordBytes(in)], from[:in], 0, in)
				} else {
					copy(to.floats[:in], from)
				}
				copy(e.row(n.Out, t)[h*(out+a.Kept)+out:][:a.Kept], from[in:])
			}
		}},
		{size: func() int {
			if tokens() == 0 {
				return 0
			}
			return heads * weights.tiles
		}, ahead: func(worker int) {
			first := heads * weights.tiles * worker / len(e.desks)
			weights.fetch(int32(first/weights.tiles), first%weights.tiles)
		}, run: func(worker, lo, hi int) {
			d := &e.desks[worker]
			for i := lo; i < hi; i++ {
				h, tile := i/weights.tiles, i%weights.tiles
				weights.multiply(d, d.totals[0], int32(h), tile, x.from(h*tokens()), tokens())
				at := tile * tileRows
				for t := range tokens() {
					lo, rows := h*(out+a.Kept)+at, min(tileRows, out-at)
					weights.write(e.row(n.Out, t)[lo:lo+rows], d.totals[0], t, tokens())
					if whole {
						e.wrote(n.Out, t, lo, lo+rows)
					}
				}
			}
		}},
	}, nil
}

func (headLinear) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.HeadLinearAttr)
	in, out := a.In(), a.Out()
	return []kernel{{size: func() int { return e.size(n.Out) * len(a.Weight) }, run: func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			t, h := i/len(a.Weight), i%len(a.Weight)
			head := func(x []float32, dim int) []float32 {
				if x == nil {
					return nil
				}
				return x[h*dim:][:dim]
			}
			x, xBound := head(e.row(n.In[0], t), in+a.Kept), head(e.bound(n.In[0], t), in+a.Kept)
			y, bound := head(e.row(n.Out, t), out+a.Kept), head(e.bound(n.Out, t), out+a.Kept)
			inBound := xBound
			if xBound != nil {
				inBound = xBound[:in]
			}
			product, off, err := e.expertProduct(a.Weight[h], nil, x[:in], inBound)
			if err != nil {
				panic(err) // becomes the step's error
			}
			copy(y, product)
			copy(y[out:], x[in:])
			if bound != nil {
				copy(bound, off)
				for j := range a.Kept {
					bound[out+j] = float32(at(xBound, in+j))
				}
			}
		}
	}}}, nil
}
