package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// rmsNorm divides groups of columns by the root of their mean square.
type rmsNorm struct{ ordinary }

func (rmsNorm) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	w, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	k := e.tier.vector
	return e.groups(n, func(y, x []float32, _ int, eps float64) {
		k.scale(y, x, w, float32(1/math.Sqrt(k.squares(x, 0)/float64(len(x))+eps)))
	}), nil
}

func (rmsNorm) reference(e *executable, n *plan.Node) ([]kernel, error) {
	w, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	a := n.Attr.(plan.NormAttr)
	return []kernel{one(func() {
		for r := range e.size(n.Out) {
			x, y := e.row(n.In[0], r), e.row(n.Out, r)
			for g := 0; g < len(x); g += a.Group {
				var squares float64
				for i := range a.Group {
					squares += float64(x[g+i]) * float64(x[g+i])
				}
				rms := math.Sqrt(squares/float64(a.Group) + a.Eps)
				for i := range a.Group {
					y[g+i] = float32(float64(x[g+i]) / rms * float64(w[i]))
				}
			}
		}
	})}, nil
}

func (rmsNorm) bound(e *executable, n *plan.Node) (func(r int), error) { return e.normBound(n, false) }

// layerNorm centers groups of columns, and divides them by their deviation.
type layerNorm struct{ ordinary }

// kernels computes the variance about the mean, after the mean: the difference of two large sums
// would be inaccurate.
func (layerNorm) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	w, bias, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	if bias == nil {
		bias = make([]float32, len(w))
	}
	k := e.tier.vector
	return e.groups(n, func(y, x []float32, at int, eps float64) {
		mean := k.sum(x) / float64(len(x))
		at %= len(w)
		k.center(y, x, w[at:at+len(x)], bias[at:at+len(x)], mean, 1/math.Sqrt(k.squares(x, mean)/float64(len(x))+eps))
	}), nil
}

func (layerNorm) reference(e *executable, n *plan.Node) ([]kernel, error) {
	w, bias, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	a := n.Attr.(plan.NormAttr)
	return []kernel{one(func() {
		for r := range e.size(n.Out) {
			x, y := e.row(n.In[0], r), e.row(n.Out, r)
			for g := 0; g < len(x); g += a.Group {
				var sum, squares float64
				for i := range a.Group {
					sum += float64(x[g+i])
				}
				mean := sum / float64(a.Group)
				for i := range a.Group {
					squares += (float64(x[g+i]) - mean) * (float64(x[g+i]) - mean)
				}
				deviation := math.Sqrt(squares/float64(a.Group) + a.Eps)
				for i := range a.Group {
					v := (float64(x[g+i]) - mean) / deviation * float64(w[(g+i)%len(w)])
					if bias != nil {
						v += float64(bias[(g+i)%len(w)])
					}
					y[g+i] = float32(v)
				}
			}
		}
	})}, nil
}

func (layerNorm) bound(e *executable, n *plan.Node) (func(r int), error) { return e.normBound(n, true) }

// groups returns a kernel that calls norm for each group of columns; at is the index of the group's
// first weight.
func (e *executable) groups(n *plan.Node, norm func(y, x []float32, at int, eps float64)) []kernel {
	a := n.Attr.(plan.NormAttr)
	return e.rows(n, 4, func(r int) {
		x, y := e.row(n.In[0], r), e.row(n.Out, r)
		for g := 0; g < len(x); g += a.Group {
			norm(y[g:g+a.Group], x[g:g+a.Group], g, a.Eps)
		}
		e.wrote(n.Out, r, 0, len(y))
	})
}

// normBound bounds the error by the size of the result: apart from the mean and the bias, the
// result is proportional to the input.
func (e *executable) normBound(n *plan.Node, centered bool) (func(r int), error) {
	w, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	return func(r int) {
		x, to, in := e.row(n.In[0], r), e.bound(n.Out, r), e.bound(n.In[0], r)
		a := n.Attr.(plan.NormAttr)
		count := float64(a.Group)
		for g := 0; g < len(x); g += a.Group {
			var mean, meanOff, squares, off, top float64
			if centered {
				for i := g; i < g+a.Group; i++ {
					mean += float64(x[i]) / count
					meanOff += at(in, i) / count
				}
			}
			for i := g; i < g+a.Group; i++ {
				c := float64(x[i]) - mean
				squares += c * c
				off += math.Abs(c) * (at(in, i) + meanOff)
				top = max(top, math.Abs(c))
			}
			size := math.Sqrt(squares/count + a.Eps)
			off /= count * size * size // relative to the size
			for i := g; i < g+a.Group; i++ {
				c := math.Abs(float64(x[i]) - mean)
				bound := fewRoundings*c + c*off + at(in, i) + meanOff
				if centered {
					bound += fewRoundings * top / 4
				}
				to[i] = float32(bound / size * math.Abs(float64(w[i%len(w)])))
				if centered {
					to[i] += fewRoundings * float32(math.Abs(float64(e.row(n.Out, r)[i]))+c/size*math.Abs(float64(w[i%len(w)])))
				}
			}
		}
	}, nil
}

func sumGeneric(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v)
	}
	return sum
}

func squaresGeneric(x []float32, center float64) float64 {
	var sum float64
	for _, v := range x {
		d := float64(v) - center
		sum += d * d
	}
	return sum
}

func scaleGeneric(y, x, w []float32, by float32) {
	for i, v := range x {
		y[i] = v * by * w[i]
	}
}

func centerGeneric(y, x, w, b []float32, mean, by float64) {
	for i, v := range x {
		y[i] = float32((float64(v)-mean)*by)*w[i] + b[i]
	}
}
