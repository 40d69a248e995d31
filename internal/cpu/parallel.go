package cpu

import (
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// parallel are the lowerings of the backend to run.
var parallel = map[*plan.Op]lowering{
	plan.Embed:         embed,
	plan.Position:      position,
	plan.Linear:        linear,
	plan.RMSNorm:       rmsNorm,
	plan.LayerNorm:     layerNorm,
	plan.Rope:          rope,
	plan.Attention:     attention,
	plan.Bidirectional: bidirectional,
	plan.GLU:           glu,
	plan.Map:           apply,
	plan.Experts:       experts,
	plan.Add:           add,
	plan.Pick:          pick,
}

// floats is a small weight, such as a norm or a bias, as float32.
func floats(w *tensor.Tensor) ([]float32, error) {
	if w == nil {
		return nil, nil
	}
	return w.Float32s()
}

// rows is work on the rows of n's output.
func (e *executable) rows(n *plan.Node, grain int, row func(r int)) []kernel {
	return []kernel{{
		size:  func() int { return e.size(n.Out) },
		grain: grain,
		run: func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				row(r)
			}
		},
	}}
}

// embed takes rows of a table as they lie in the file, or, where the table is the
// head's weight as well, as they have been interleaved.
func embed(e *executable, n *plan.Node) ([]kernel, error) {
	w, dequantize := e.stored(n.Weight), e.tier.dequantizer(n.Weight.DType)
	packed := e.weights[n.Weight]
	return []kernel{{size: func() int { return e.size(n.Out) }, grain: 16, run: func(worker, lo, hi int) {
		for r := lo; r < hi; r++ {
			y, id := e.row(n.Out, r), int(e.ids[r])
			if packed == nil {
				dequantize(y, w.Row(id))
			} else {
				row := e.desks[worker].embedding[:packed.blocks*packed.format.bytes]
				packed.row(row, id)
				dequantize(y, row)
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	}}}, nil
}

// position takes rows of a table by the positions of tokens.
func position(e *executable, n *plan.Node) ([]kernel, error) {
	w, dequantize := e.stored(n.Weight), e.tier.dequantizer(n.Weight.DType)
	a, _ := n.Attr.(plan.PositionAttr)
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		dequantize(y, w.Row(int(e.batch.Axis(a.Axis, r))))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func add(e *executable, n *plan.Node) ([]kernel, error) {
	add := e.tier.vector.add
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		add(y, e.row(n.In[0], r), e.row(n.In[1], r))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func pick(e *executable, n *plan.Node) ([]kernel, error) {
	if a, ok := n.Attr.(plan.PickAttr); ok && a.Mean {
		return pickMean(e, n)
	}
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		copy(y, e.row(n.In[0], int(e.batch.Rows[r].Token)))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

// pickMean adds up the rows of a sequence in float64, in the order of its tokens, some
// columns at a time.
func pickMean(e *executable, n *plan.Node) ([]kernel, error) {
	return e.rows(n, 1, func(r int) {
		y, s := e.row(n.Out, r), e.seq[e.batch.Rows[r].Token]
		lo, hi := int(e.batch.Start[s]), int(e.batch.Start[s+1])
		for at := 0; at < len(y); at += 64 {
			var sums [64]float64
			part := y[at:min(len(y), at+64)]
			for t := lo; t < hi; t++ {
				for i, v := range e.row(n.In[0], t)[at:][:len(part)] {
					sums[i] += float64(v)
				}
			}
			for i := range part {
				part[i] = float32(sums[i] / float64(hi-lo))
			}
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}
