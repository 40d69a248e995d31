package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// parallel are the lowerings of the backend to run.
var parallel = map[plan.Op]lowering{
	plan.Embed:     embed,
	plan.Linear:    linear,
	plan.RMSNorm:   rmsNorm,
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
	return e.rows(n, 16, func(r int) { dequantize(e.row(n.Out, r), w.Row(int(e.ids[r]))) }), nil
}

func rmsNorm(e *executable, n *plan.Node) ([]kernel, error) {
	w, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	a := n.Attr.(plan.NormAttr)
	return e.rows(n, 4, func(r int) {
		x, y := e.row(n.In[0], r), e.row(n.Out, r)
		for g := 0; g < len(x); g += a.Group {
			normalize(y[g:g+a.Group], x[g:g+a.Group], w, a.Eps)
		}
	}), nil
}

// normalize sums the squares in float64: they are few, and may be large.
func normalize(y, x, w []float32, eps float64) {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	scale := float32(1 / math.Sqrt(sum/float64(len(x))+eps))
	for i, v := range x {
		y[i] = v * scale * w[i]
	}
}

func rope(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.RopeAttr)
	return []kernel{{size: func() int { return e.size(n.Out) }, grain: 4, run: func(_, lo, hi int) {
		angles := make([]float64, 0, a.Dims/2)
		turn := make([][2]float32, a.Dims/2)
		for t := lo; t < hi; t++ {
			pos := float64(e.batch.Positions[t])
			for i, f := range a.Frequencies(angles, e.batch.Length(int(e.seq[t]), t)) {
				sin, cos := math.Sincos(pos * f)
				turn[i] = [2]float32{float32(cos * a.Scale), float32(sin * a.Scale)}
			}
			rotate(e.row(n.Out, t), e.row(n.In[0], t), turn, &a)
		}
	}}}, nil
}

// rotate turns every head of x by turn [Dims/2] of cosine and sine.
func rotate(y, x []float32, turn [][2]float32, a *plan.RopeAttr) {
	for h := 0; h < len(x); h += a.HeadDim {
		x, y := x[h:h+a.HeadDim], y[h:h+a.HeadDim]
		for i, cs := range turn {
			p, q := i, i+len(turn)
			if a.Interleaved {
				p, q = 2*i, 2*i+1
			}
			u, v := x[p], x[q]
			y[p], y[q] = u*cs[0]-v*cs[1], v*cs[0]+u*cs[1]
		}
		copy(y[a.Dims:], x[a.Dims:])
	}
}

func glu(e *executable, n *plan.Node) ([]kernel, error) {
	act, err := activation(n)
	if err != nil {
		return nil, err
	}
	return e.rows(n, 1, func(r int) {
		gate, up, y := e.row(n.In[0], r), e.row(n.In[1], r), e.row(n.Out, r)
		for i, g := range gate {
			y[i] = float32(act(float64(g))) * up[i]
		}
	}), nil
}

func add(e *executable, n *plan.Node) ([]kernel, error) {
	return e.rows(n, 16, func(r int) {
		x, z, y := e.row(n.In[0], r), e.row(n.In[1], r), e.row(n.Out, r)
		for i, v := range x {
			y[i] = v + z[i]
		}
	}), nil
}

func pick(e *executable, n *plan.Node) ([]kernel, error) {
	return e.rows(n, 16, func(r int) { copy(e.row(n.Out, r), e.row(n.In[0], int(e.batch.Rows[r].Token))) }), nil
}
