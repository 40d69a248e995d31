package cpu

import (
	"errors"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// reference computes every token by itself.
func (experts) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.ExpertsAttr)
	if a.Hidden != nil {
		return nil, errors.New("the reference computes mixtures as a whole")
	}
	r, err := routerOf(n)
	if err != nil {
		return nil, err
	}
	f := unitOf(a.GLU)
	return []kernel{{size: func() int { return e.size(n.Out) }, run: func(_, lo, hi int) {
		desk := newRouteDesk(len(a.Gate)+a.Identity, a.Route.Groups)
		chosen, weights := make([]int32, a.Route.Used), make([]float32, a.Route.Used)
		for t := lo; t < hi; t++ {
			x, y, bound := e.row(n.In[0], t), e.row(n.Out, t), e.bound(n.Out, t)
			clear(y)
			clear(bound)
			logits := e.row(n.In[1], t)
			e.given(n, t, chosen)
			r.route(&desk, logits, chosen, weights)
			for k, i := range chosen {
				d, off, err := x, e.bound(n.In[0], t), error(nil)
				if int(i) < len(a.Gate) {
					in := float32(1)
					if a.Route.Before {
						in, weights[k] = weights[k], 1
					}
					d, off, err = e.expert(&a, int(i), f, in, x, off, bound != nil)
				}
				if err != nil {
					panic(err) // becomes the step's error
				}
				for j, v := range d {
					y[j] += weights[k] * v
				}
				for j := range bound {
					part := math.Abs(float64(weights[k])) * (at(off, j) + 2*roundings*math.Abs(float64(d[j])))
					bound[j] += float32(part + roundings*math.Abs(float64(y[j])))
				}
			}
			if bound != nil && !a.Route.Given && !r.clearly(&desk, chosen, largest(e.bound(n.In[1], t))) {
				for j := range bound {
					bound[j] = float32(math.Inf(1)) // another choice of experts would also be correct
				}
			}
			e.wrote(n.Out, t, 0, len(y))
		}
	}}}, nil
}

// expert returns expert i's result for x times in and, if bounds is true, its bounds. xBound are the
// bounds of x, or nil.
func (e *executable) expert(a *plan.ExpertsAttr, i int, f func(gate, up float64) float64, in float32, x, xBound []float32, bounds bool) (y, bound []float32, err error) {
	list := func(all []*tensor.Tensor) *tensor.Tensor {
		if len(all) == 0 {
			return nil
		}
		return all[i]
	}
	gate, gateBound, err := e.expertProduct(a.Gate[i], list(a.GateBias), x, xBound)
	if err != nil {
		return nil, nil, err
	}
	up, upBound, err := e.expertProduct(a.Up[i], list(a.UpBias), x, xBound)
	if err != nil {
		return nil, nil, err
	}
	h := make([]float32, len(gate))
	if in != 1 {
		for j := range h {
			for _, v := range [][]float32{gate, up} {
				v[j] *= in
			}
			for _, v := range [][]float32{gateBound, upBound} {
				v[j] = v[j]*float32(math.Abs(float64(in))) + roundings*float32(math.Abs(float64(gate[j])+math.Abs(float64(up[j]))))
			}
		}
	}
	for j := range h {
		h[j] = float32(f(float64(gate[j]), float64(up[j])))
	}
	if !bounds {
		gateBound = nil
	} else {
		for j := range h {
			gateBound[j] = unitBound(f, &a.GLU, gate[j], up[j], gateBound[j], upBound[j])
		}
	}
	return e.expertProduct(a.Down[i], list(a.DownBias), h, gateBound)
}

// expertProduct returns weight·x + bias, with an optional bias, and its bounds.
func (e *executable) expertProduct(weight, bias *tensor.Tensor, x, xBound []float32) (y, bound []float32, err error) {
	b, err := floats(bias)
	if err != nil {
		return nil, nil, err
	}
	in, p := e.multiplicand(weight.DType, x, xBound), precisionOf(weight.DType, &e.lim)
	w, rows, dequantize := make([]float32, weight.Cols()), rowReader{w: e.stored(weight)}, generic.dequantizer(weight.DType)
	y, bound = make([]float32, weight.Rows()), make([]float32, weight.Rows())
	for o := range y {
		dequantize(w, rows.row(o))
		plus := float32(0)
		if b != nil {
			plus = b[o]
		}
		row := p.row(w)
		v, off := in.times(&row, plus)
		y[o], bound[o] = float32(v), float32(off)
	}
	return y, bound, nil
}
