package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// reference are the lowerings that say what each operation means. They share
// with the others only what has one meaning: where states lie, and how a weight
// is dequantised.
var reference = map[plan.Op]lowering{
	plan.Embed:     embed,
	plan.Linear:    referenceLinear,
	plan.RMSNorm:   referenceRMSNorm,
	plan.Rope:      referenceRope,
	plan.Attention: referenceAttention,
	plan.GLU:       referenceGLU,
	plan.Add:       add,
	plan.Pick:      pick,
}

func referenceLinear(e *executable, n *plan.Node) ([]kernel, error) {
	bias, err := floats(n.Bias)
	if err != nil {
		return nil, err
	}
	w, dequantize := make([]float32, n.Weight.Cols()), generic.dequantizer(n.Weight.DType)
	return []kernel{one(func() {
		for o := range n.Weight.Rows() {
			dequantize(w, n.Weight.Row(o))
			for r := range e.size(n.Out) {
				var sum float64
				for i, x := range e.row(n.In[0], r) {
					sum += float64(w[i]) * float64(x)
				}
				if bias != nil {
					sum += float64(bias[o])
				}
				e.row(n.Out, r)[o] = float32(sum)
			}
		}
	})}, nil
}

func referenceRMSNorm(e *executable, n *plan.Node) ([]kernel, error) {
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

func referenceRope(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.RopeAttr)
	return []kernel{one(func() {
		for t := range e.ids {
			x, y := e.row(n.In[0], t), e.row(n.Out, t)
			copy(y, x)
			freqs := a.Frequencies(nil, e.batch.Length(int(e.seq[t]), t))
			for h := 0; h < len(x); h += a.HeadDim {
				for i, f := range freqs {
					sin, cos := math.Sincos(float64(e.batch.Positions[t]) * f)
					p, q := h+i, h+i+a.Dims/2
					if a.Interleaved {
						p, q = h+2*i, h+2*i+1
					}
					u, v := float64(x[p]), float64(x[q])
					y[p], y[q] = float32((u*cos-v*sin)*a.Scale), float32((v*cos+u*sin)*a.Scale)
				}
			}
		}
	})}, nil
}

func referenceAttention(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.AttentionAttr)
	return []kernel{one(func() {
		e.storeKV(n)
		row := make([]float32, a.HeadDim)
		for t, s := range e.seq {
			past := e.view(n, s)
			pos := int(e.batch.Positions[t])
			first := plan.Group{Window: a.Window}.FirstVisible(pos)
			for h := range a.Heads {
				at := h / (a.Heads / a.KVHeads) * a.HeadDim
				q, out := e.row(n.In[0], t)[h*a.HeadDim:][:a.HeadDim], e.row(n.Out, t)[h*a.HeadDim:][:a.HeadDim]
				scores, top := make([]float64, 0, pos+1-first), math.Inf(-1)
				for p := first; p <= pos; p++ {
					var score float64
					for i, k := range past.key(p, at, row) {
						score += float64(q[i]) * float64(k)
					}
					scores = append(scores, score*a.Scale)
					top = max(top, score*a.Scale)
				}
				sum, weighted := 0.0, make([]float64, a.HeadDim)
				for i, score := range scores {
					weight := math.Exp(score - top)
					sum += weight
					for j, v := range past.value(first+i, at, row) {
						weighted[j] += weight * float64(v)
					}
				}
				for j := range out {
					out[j] = float32(weighted[j] / sum)
				}
			}
		}
	})}, nil
}

func referenceGLU(e *executable, n *plan.Node) ([]kernel, error) {
	act, err := activation(n)
	if err != nil {
		return nil, err
	}
	return []kernel{one(func() {
		for r := range e.size(n.Out) {
			gate, up, y := e.row(n.In[0], r), e.row(n.In[1], r), e.row(n.Out, r)
			for i := range y {
				y[i] = float32(act(float64(gate[i])) * float64(up[i]))
			}
		}
	})}, nil
}
