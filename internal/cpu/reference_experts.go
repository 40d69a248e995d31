package cpu

import (
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// referenceExperts computes every token by itself.
func referenceExperts(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.ExpertsAttr)
	choice, err := floats(n.Bias)
	if err != nil {
		return nil, err
	}
	var experts []expert
	for i := range a.Gate {
		gate, err := e.expertProduct(a.Gate[i], a.GateBias, i)
		if err != nil {
			return nil, err
		}
		up, err := e.expertProduct(a.Up[i], a.UpBias, i)
		if err != nil {
			return nil, err
		}
		down, err := e.expertProduct(a.Down[i], a.DownBias, i)
		if err != nil {
			return nil, err
		}
		experts = append(experts, expert{gate, up, down})
	}
	r, f := router{a: a.Route, bias: choice}, unitOf(a.GLU)
	desk := newRouteDesk(len(a.Gate), a.Route.Groups)
	chosen, weights := make([]int32, a.Route.Used), make([]float32, a.Route.Used)
	ffn := a.Gate[0].Shape[0]
	g, u, d := make([]float32, ffn), make([]float32, ffn), make([]float32, a.Down[0].Shape[0])
	return []kernel{one(func() {
		for t := range e.size(n.Out) {
			x, y := e.row(n.In[0], t), e.row(n.Out, t)
			clear(y)
			r.route(&desk, e.row(n.In[1], t), chosen, weights)
			for k, i := range chosen {
				experts[i].gate(g, x)
				experts[i].up(u, x)
				for j := range g {
					g[j] = float32(f(float64(g[j]), float64(u[j])))
				}
				experts[i].down(d, g)
				for j, v := range d {
					y[j] += weights[k] * v
				}
			}
			e.wrote(n.Out, t, 0, len(y))
		}
	})}, nil
}

// An expert is its three products.
type expert struct{ gate, up, down func(y, x []float32) }

// expertProduct is y = w·x + the bias of expert i, if there is one.
func (e *executable) expertProduct(weight *tensor.Tensor, biases []*tensor.Tensor, i int) (func(y, x []float32), error) {
	var bias []float32
	if len(biases) > 0 {
		var err error
		if bias, err = floats(biases[i]); err != nil {
			return nil, err
		}
	}
	stored, dequantize := e.stored(weight), generic.dequantizer(weight.DType)
	w, record := make([]float32, weight.Cols()), make([]byte, recordBytes(weight.Cols()))
	inBytes := e.lim.Activations == tensor.Q8_0 && blockFormats[weight.DType] != nil
	return func(y, x []float32) {
		if inBytes {
			quantizeGeneric(record, x, 0, len(x))
			x = recorded(record)
		}
		for o := range y {
			dequantize(w, stored.Row(o))
			var sum float64
			for j, v := range x {
				sum += float64(w[j]) * float64(v)
			}
			if bias != nil {
				sum += float64(bias[o])
			}
			y[o] = float32(sum)
		}
	}, nil
}
