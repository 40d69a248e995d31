package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// reference are the lowerings that say what each operation means. They share
// with the others only what has one meaning: where states lie, and how a weight
// is dequantised.
var reference = map[*plan.Op]lowering{
	plan.Embed:         embed,
	plan.Position:      position,
	plan.Linear:        referenceLinear,
	plan.RMSNorm:       referenceRMSNorm,
	plan.LayerNorm:     referenceLayerNorm,
	plan.Rope:          referenceRope,
	plan.Attention:     referenceAttention,
	plan.Bidirectional: referenceBidirectional,
	plan.GLU:           referenceGLU,
	plan.Map:           referenceMap,
	plan.Experts:       referenceExperts,
	plan.Add:           add,
	plan.Pick:          pick,
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

func referenceLayerNorm(e *executable, n *plan.Node) ([]kernel, error) {
	w, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	bias, err := floats(n.Bias)
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

func referenceGLU(e *executable, n *plan.Node) ([]kernel, error) {
	f := unitOf(n.Attr.(plan.GLUAttr))
	return []kernel{one(func() {
		for r := range e.size(n.Out) {
			gate, up, y := e.row(n.In[0], r), e.row(n.In[1], r), e.row(n.Out, r)
			for i := range y {
				y[i] = float32(f(float64(gate[i%len(gate)]), float64(up[i])))
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	})}, nil
}

func referenceMap(e *executable, n *plan.Node) ([]kernel, error) {
	f := functionOf(n.Attr.(plan.MapAttr))
	return []kernel{one(func() {
		for r := range e.size(n.Out) {
			y := e.row(n.Out, r)
			for i, x := range e.row(n.In[0], r) {
				y[i] = float32(f(float64(x)))
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	})}, nil
}
