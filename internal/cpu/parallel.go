package cpu

import (
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// parallel are the lowerings of the backend to run.
var parallel = map[plan.Op]lowering{
	plan.Embed:     embed,
	plan.Linear:    linear,
	plan.RMSNorm:   rmsNorm,
	plan.LayerNorm: layerNorm,
	plan.Rope:      rope,
	plan.Attention: attention,
	plan.GLU:       glu,
	plan.Add:       add,
	plan.Pick:      pick,
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

func embed(e *executable, n *plan.Node) ([]kernel, error) {
	w, dequantize := n.Weight, e.tier.dequantizer(n.Weight.DType)
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		dequantize(y, w.Row(int(e.ids[r])))
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
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		copy(y, e.row(n.In[0], int(e.batch.Rows[r].Token)))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}
