package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// referenceBidirectional attends in float64 to the tokens of the step.
func referenceBidirectional(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.AttentionAttr)
	return []kernel{one(func() {
		for t, s := range e.seq {
			lo, hi := int(e.batch.Start[s]), int(e.batch.Start[s+1])
			if a.Window > 0 {
				lo, hi = max(lo, t+1-a.Window), min(hi, t+a.Window)
			}
			for h := range a.Heads {
				g := h / (a.Heads / a.KVHeads) * a.HeadDim
				q, out := e.row(n.In[0], t)[h*a.HeadDim:][:a.HeadDim], e.row(n.Out, t)[h*a.HeadDim:][:a.HeadDim]
				scores, top := make([]float64, 0, hi-lo), math.Inf(-1)
				for p := lo; p < hi; p++ {
					var score float64
					for i, k := range e.row(n.In[1], p)[g:][:a.HeadDim] {
						score += float64(q[i]) * float64(k)
					}
					scores = append(scores, score*a.Scale)
					top = max(top, score*a.Scale)
				}
				sum, weighted := 0.0, make([]float64, a.HeadDim)
				for i, score := range scores {
					weight := math.Exp(score - top)
					sum += weight
					for j, v := range e.row(n.In[2], lo+i)[g:][:a.HeadDim] {
						weighted[j] += weight * float64(v)
					}
				}
				for j := range out {
					out[j] = float32(weighted[j] / sum)
				}
			}
			e.wrote(n.Out, t, 0, a.Heads*a.HeadDim)
		}
	})}, nil
}
