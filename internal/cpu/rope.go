package cpu

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// rope rotates heads by the positions of tokens.
type rope struct{ ordinary }

// rotations are the cosines and sines of the tokens of a step. They depend only on positions and
// frequencies, so that the nodes of all layers share them.
type rotations struct {
	width    int       // values per token
	cos, sin []float32 // [T, width]
}

func (rope) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	a := n.Attr.(plan.RopeAttr)
	rotations, ks := e.rotations(&a)
	rotate := e.tier.vector.rotate
	return append(ks, e.rows(n, 4, func(t int) {
		x, y, at := e.row(n.In[0], t), e.row(n.Out, t), t*rotations.width
		rotate(y, x, rotations.cos[at:at+rotations.width], rotations.sin[at:at+rotations.width], &a)
		if a.Dims < a.HeadDim {
			for h := 0; h < len(x); h += a.HeadDim {
				copy(y[h:h+a.First], x[h:])
				copy(y[h+a.First+a.Dims:h+a.HeadDim], x[h+a.First+a.Dims:])
			}
		}
		e.wrote(n.Out, t, 0, len(y))
	})...), nil
}

func (rope) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.RopeAttr)
	return []kernel{one(func() {
		for t := range e.ids {
			x, y := e.row(n.In[0], t), e.row(n.Out, t)
			copy(y, x)
			freqs := a.Frequencies(nil, e.batch.Length(int(e.seq[t]), t))
			for h := a.First; h < len(x); h += a.HeadDim {
				for i, f := range freqs {
					sin, cos := math.Sincos(float64(int(e.batch.Positions[t])+a.Shift) * f)
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

func (rope) bound(e *executable, n *plan.Node) (func(r int), error) {
	a := n.Attr.(plan.RopeAttr)
	return func(r int) {
		x, to, in := e.row(n.In[0], r), e.bound(n.Out, r), e.bound(n.In[0], r)
		for i := range to {
			to[i] = float32(at(in, i))
		}
		for h := a.First; h < len(x); h += a.HeadDim {
			for i := range a.Dims / 2 {
				p, q := h+i, h+i+a.Dims/2
				if a.Interleaved {
					p, q = h+2*i, h+2*i+1
				}
				bound := math.Abs(a.Scale) * (at(in, p) + at(in, q) + fewRoundings*math.Hypot(float64(x[p]), float64(x[q])))
				to[p], to[q] = float32(bound), float32(bound)
			}
		}
	}, nil
}

// rotations returns the program's rotations for a, with a kernel that computes them if this is the
// first call.
func (e *executable) rotations(a *plan.RopeAttr) (*rotations, []kernel) {
	key := fmt.Sprint(a.Dims, a.Interleaved, a.Scale, a.Freqs, a.ByLength())
	if a.ByLength() {
		key += fmt.Sprint(a.LongFrom, a.LongFreqs, a.Dynamic != nil)
	}
	if a.Shift != 0 {
		key += fmt.Sprint(" shifted ", a.Shift)
	}
	if a.Dynamic != nil {
		key += fmt.Sprint(*a.Dynamic)
	}
	if t := e.code.rotations[key]; t != nil {
		return t, nil
	}
	t := &rotations{width: a.Dims / 2}
	if a.Interleaved {
		t.width = a.Dims
	}
	t.cos, t.sin = make([]float32, e.lim.Tokens*t.width), make([]float32, e.lim.Tokens*t.width)
	if e.code.rotations == nil {
		e.code.rotations = map[string]*rotations{}
	}
	e.code.rotations[key] = t
	frequencies := make([][]float64, len(e.desks)) // scratch memory by worker
	for i := range frequencies {
		frequencies[i] = make([]float64, 0, a.Dims/2)
	}
	return t, []kernel{{size: func() int { return len(e.ids) }, grain: 4, run: func(worker, lo, hi int) {
		for at := lo; at < hi; at++ {
			f := a.Frequencies(frequencies[worker], e.batch.Length(int(e.seq[at]), at))
			t.set(at, float64(int(e.batch.Positions[at])+a.Shift), f, a)
		}
	}}}
}

// set computes the rotations of a token.
func (t *rotations) set(token int, position float64, frequencies []float64, a *plan.RopeAttr) {
	cos, sin := t.cos[token*t.width:][:t.width], t.sin[token*t.width:][:t.width]
	for i, f := range frequencies {
		s, c := math.Sincos(position * f)
		if a.Interleaved {
			cos[2*i], sin[2*i] = float32(c*a.Scale), float32(s*a.Scale)
			cos[2*i+1], sin[2*i+1] = cos[2*i], sin[2*i]
		} else {
			cos[i], sin[i] = float32(c*a.Scale), float32(s*a.Scale)
		}
	}
}

func rotateGeneric(y, x, cos, sin []float32, a *plan.RopeAttr) {
	for h := a.First; h < len(x); h += a.HeadDim {
		x, y := x[h:h+a.Dims], y[h:h+a.Dims]
		if a.Interleaved {
			for i := 0; i < len(cos); i += 2 {
				u, v := x[i], x[i+1]
				y[i], y[i+1] = u*cos[i]-v*sin[i], v*cos[i]+u*sin[i]
			}
			continue
		}
		for i, c := range cos {
			u, v := x[i], x[i+len(cos)]
			y[i], y[i+len(cos)] = u*c-v*sin[i], v*c+u*sin[i]
		}
	}
}
