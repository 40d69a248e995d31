package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// contextSegment is the length of the pieces that a context is cut into, at
// absolute multiples, so that the sums over it do not depend on where a prompt
// was cut into steps.
const contextSegment = 256

// attention shares tokens and key/value heads among the workers.
func attention(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.AttentionAttr)
	return []kernel{one(func() { e.storeKV(n) }), {
		size: func() int { return len(e.ids) * a.KVHeads },
		run: func(_, lo, hi int) {
			h := newHeads(&a)
			for i := lo; i < hi; i++ {
				h.attend(e, n, i/a.KVHeads, i%a.KVHeads)
			}
		},
	}}, nil
}

// heads is the work space of the query heads that share one key/value head.
type heads struct {
	a     *plan.AttentionAttr
	group int // query heads per key/value head
	row   []float32
	sum   []softSum
	score [][contextSegment]float32
	part  []float32 // [group, headDim] of the segment at hand
}

// softSum is a running softmax: values weighted by exp(score - max), as the
// online softmax of Milakov and Gimelshein (2018) keeps it.
type softSum struct {
	max, weight float32
}

func newHeads(a *plan.AttentionAttr) *heads {
	group := a.Heads / a.KVHeads
	return &heads{
		a: a, group: group,
		row:   make([]float32, a.HeadDim),
		sum:   make([]softSum, group),
		score: make([][contextSegment]float32, group),
		part:  make([]float32, group*a.HeadDim),
	}
}

// attend computes the heads of key/value head g for token t.
func (h *heads) attend(e *executable, n *plan.Node, t, g int) {
	d, pos := h.a.HeadDim, int(e.batch.Positions[t])
	keys := e.view(n, e.seq[t])
	q := e.row(n.In[0], t)[g*h.group*d:][:h.group*d]
	out := e.row(n.Out, t)[g*h.group*d:][:h.group*d]
	clear(out)
	for i := range h.sum {
		h.sum[i] = softSum{max: float32(math.Inf(-1))}
	}
	first := plan.Group{Window: h.a.Window}.FirstVisible(pos)
	for lo := first; lo <= pos; {
		hi := min(pos+1, (lo/contextSegment+1)*contextSegment)
		h.segment(&keys, q, out, g*d, lo, hi)
		lo = hi
	}
	for i, s := range h.sum {
		o := out[i*d : (i+1)*d]
		for j := range o {
			o[j] /= s.weight
		}
	}
}

// segment adds positions lo to hi, which lie in one segment of the context.
func (h *heads) segment(keys *keyView, q, out []float32, at, lo, hi int) {
	d := h.a.HeadDim
	for p := lo; p < hi; p++ {
		k := keys.key(p, at, h.row)
		for i := range h.group {
			h.score[i][p-lo] = dot(k, q[i*d:(i+1)*d]) * float32(h.a.Scale)
		}
	}
	clear(h.part)
	for i := range h.group {
		score := h.score[i][:hi-lo]
		top := score[0]
		for _, v := range score {
			top = max(top, v)
		}
		var weight float32
		for j, v := range score {
			score[j] = float32(math.Exp(float64(v - top)))
			weight += score[j]
		}
		s := &h.sum[i]
		largest := max(s.max, top)
		before := float32(math.Exp(float64(s.max - largest)))
		now := float32(math.Exp(float64(top - largest)))
		s.max, s.weight = largest, s.weight*before+weight*now
		for j := range score {
			score[j] *= now
		}
		for j := range d {
			out[i*d+j] *= before
		}
	}
	for p := lo; p < hi; p++ {
		v := keys.value(p, at, h.row)
		for i := range h.group {
			w, part := h.score[i][p-lo], h.part[i*d:(i+1)*d]
			for j, x := range v {
				part[j] += w * x
			}
		}
	}
	for i, v := range h.part {
		out[i] += v
	}
}
