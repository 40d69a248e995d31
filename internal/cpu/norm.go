package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

func rmsNorm(e *executable, n *plan.Node) ([]kernel, error) {
	w, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	k := e.tier.vector
	return e.groups(n, func(y, x []float32, _ int, eps float64) {
		k.scale(y, x, w, float32(1/math.Sqrt(k.squares(x, 0)/float64(len(x))+eps)))
	}), nil
}

// layerNorm finds the variance about the mean that it found before: the difference
// of two large sums would be inaccurate.
func layerNorm(e *executable, n *plan.Node) ([]kernel, error) {
	w, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	bias := make([]float32, len(w))
	if n.Bias != nil {
		if bias, err = floats(n.Bias); err != nil {
			return nil, err
		}
	}
	k := e.tier.vector
	return e.groups(n, func(y, x []float32, at int, eps float64) {
		mean := k.sum(x) / float64(len(x))
		at %= len(w)
		k.center(y, x, w[at:at+len(x)], bias[at:at+len(x)], mean, 1/math.Sqrt(k.squares(x, mean)/float64(len(x))+eps))
	}), nil
}

// groups is the work of a norm, norm for each group, which begins at element at.
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
