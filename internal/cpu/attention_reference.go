package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A headContext is what one head of a token attends to: n positions with their keys [headDim] and
// values [valueLen], each valid until the next call.
type headContext struct {
	n          int
	key, value func(i int) []float32
	cache      tensor.DType // format of keys and values
	sink       *float32     // nil, or the logit of the sink, which has no value
}

// attend writes the result of a head's query on s to out, in float64. If bound is not nil, attend
// writes how far a correct executor may be from it; qBound is the bound of q, or nil.
func (s *headContext) attend(out, bound, q, qBound []float32, a *plan.AttentionAttr) {
	scores, doubts, top := make([]float64, s.n), make([]float64, s.n), math.Inf(-1)
	grain := make([]float64, max(len(out), a.HeadDim))
	query, weights, values, steps := s.halves()
	for p := range scores {
		var score, squares, size float64
		key := s.key(p)
		for i, k := range key {
			t := float64(q[i]) * float64(k)
			score += t
			squares += t * t
			size += float64(k) * float64(k)
		}
		if bound != nil {
			storedErrors(grain, key, s.cache)
			var kept, most float64
			for i := range key {
				g := grain[i] * math.Abs(float64(q[i]))
				kept += g * g
				most = max(most, g)
			}
			rounded := query*math.Sqrt(squares) + steps*math.Sqrt(size)
			doubts[p] = math.Abs(a.Scale) * (roundings*math.Sqrt(squares) + rounded + fewErrors(kept, most) + absDot(qBound, key))
		}
		if score *= a.Scale; a.Softcap > 0 {
			score = a.Softcap * math.Tanh(score/a.Softcap)
		}
		scores[p] = score
		top = max(top, score)
	}
	sum, weighted := 0.0, make([]float64, len(out))
	if s.sink != nil {
		top = max(top, float64(*s.sink))
		sum = math.Exp(float64(*s.sink) - top)
	}
	for p, score := range scores {
		scores[p] = math.Exp(score - top)
		doubts[p] += roundings * (math.Abs(score) + top - score)
		sum += scores[p]
		for j, v := range s.value(p) {
			weighted[j] += scores[p] * float64(v)
		}
	}
	for j := range out {
		out[j] = float32(weighted[j] / sum)
	}
	if bound == nil {
		return
	}
	// An error in one weight moves the mean towards its value or away from it. An error in the sum
	// of weights is an error in all weights.
	sinkDoubt := roundings
	if s.sink != nil {
		sinkDoubt += roundings * (math.Abs(float64(*s.sink)) + top - float64(*s.sink))
	}
	off, spread, most, rounded := make([]float64, len(out)), make([]float64, len(out)), make([]float64, len(out)), make([]float64, len(out))
	for p, weight := range scores {
		weight /= sum
		by := math.Expm1(min(doubts[p]+roundings, 10))
		value := s.value(p)
		storedErrors(grain, value, s.cache)
		for j, v := range value {
			off[j] += weight * (by*math.Abs(float64(v)-float64(out[j])) + roundings*math.Abs(float64(v)))
			rounded[j] += square(weights*weight*(float64(v)-float64(out[j]))) + square(values*weight*float64(v))
			spread[j] += weight * grain[j] * weight * grain[j]
			most[j] = max(most[j], weight*grain[j])
		}
	}
	for j, v := range out {
		if s.sink != nil {
			off[j] += math.Exp(float64(*s.sink)-top) / sum * sinkDoubt * math.Abs(float64(v))
		}
		bound[j] = float32(off[j] + math.Sqrt(rounded[j]) + fewErrors(spread[j], most[j]))
	}
}

// halves returns the bounds for products in which a correct executor rounds to f16, unless the
// cache is float32: the queries, the weights and, with a Q8_0 or F8_E4M3 cache, each number times its
// scale.
// query, weights and values are fractions of the root of the terms' squares; steps is in steps of
// queries.
func (s *headContext) halves() (query, weights, values, steps float64) {
	switch s.cache {
	case tensor.F32:
		return 0, 0, 0, 0
	case tensor.F16:
		return halves, halves, 0, halfStep
	}
	return math.Sqrt2 * halves, halves, halves, halfStep
}

func square(x float64) float64 { return x * x }

// absDot returns the sum of |x|·|y|; 0 if x is nil.
func absDot(x, y []float32) (sum float64) {
	for i, v := range x {
		sum += math.Abs(float64(v)) * math.Abs(float64(y[i]))
	}
	return sum
}

// storedErrors writes how far each element of x may be from the element that a correct executor has
// stored in a cache of dtype d: one step, because a value that was rotated in float32 may round in
// the other direction.
func storedErrors(dst []float64, x []float32, d tensor.DType) {
	// The step of subnormal numbers of F8_E4M3 is 2^-9 units, and a unit is less than 1/224 of the
	// largest number. A rotated number may have made it twice as large.
	subnormal := 2 * 0x1p-9 / 224 * largest(x)
	for lo := 0; lo < len(x); lo += cacheBlock {
		block := x[lo:min(len(x), lo+cacheBlock)]
		step := largest(block) / 127
		for i, v := range block {
			switch d {
			case tensor.F8_E4M3:
				step = max(math.Abs(float64(v))/(1<<3), subnormal)
			case tensor.F16:
				step = math.Abs(float64(v)) / (1 << 10)
			case tensor.F32:
				step = roundings * math.Abs(float64(v))
			}
			dst[lo+i] = step
		}
	}
}

// fewErrors bounds the error of a sum if a few of its terms are wrong by one step. squares is the
// sum of all squared errors, most the largest error.
func fewErrors(squares, most float64) float64 { return math.Sqrt(squares)/4 + most }

func (attention) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a, pool := n.Attr.(plan.AttentionAttr), e.kv(n.State)
	sinks, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	store := one(func() {
		if e.reach(pool.pagePool); !stores(n) {
			return
		}
		if a.Rate > 0 {
			e.storeEvery(n, n.In[2], e.kv(a.Compressed), a.Rate, nil)
		}
		desk := &attentionDesk{half: make([]uint16, a.HeadDim)}
		for t, s := range e.seq {
			past := e.past(pool, s)
			for g := range a.KVHeads {
				if !e.storeHead(n, past.slot(int(e.batch.Positions[t]), g), t, desk) && e.overflow[s] < 0 {
					e.overflow[s] = n.Layer
				}
			}
		}
	})
	return []kernel{store, {size: func() int { return len(e.seq) }, run: func(_, lo, hi int) {
		row := make([]float32, max(a.HeadDim, a.Values()))
		for t := lo; t < hi; t++ {
			past := e.past(pool, e.seq[t])
			far := past
			if a.Rate > 0 {
				far = e.past(e.kv(a.Compressed), e.seq[t])
			}
			rows, seen, known := e.attended(n, &a, t)
			at := func(i, g int) slot {
				if i < len(rows) {
					return far.slot(rows[i], g)
				}
				return past.slot(seen[i-len(rows)], g)
			}
			for h := range a.Heads {
				g := h / (a.Heads / a.KVHeads)
				s := headContext{
					n: len(rows) + len(seen), cache: pool.dtype,
					key:   func(i int) []float32 { return at(i, g).floatKey(row[:a.HeadDim]) },
					value: func(i int) []float32 { return at(i, g).floatValue(row[:a.Values()]) },
				}
				if sinks != nil {
					s.sink = &sinks[h]
				}
				e.attendHead(n, t, h, &s, &a)
			}
			if !known {
				for _, x := range [][]float32{e.row(n.Out, t), e.bound(n.Out, t)} {
					for i := range x {
						x[i] = float32(math.NaN())
					}
				}
			}
		}
	}}}, nil
}

// attended returns the listed rows and the positions that token t attends to. known is false if the
// rows are not those of a choice.
func (e *executable) attended(n *plan.Node, a *plan.AttentionAttr, t int) (rows, seen []int, known bool) {
	pos := int(e.batch.Positions[t])
	if a.Top == 0 || a.Rate > 0 {
		for p := a.FirstSeen(pos); p <= pos; p++ {
			seen = append(seen, p)
		}
	}
	count := listedRows(a, pos)
	if a.Top == 0 {
		for r := range count {
			rows = append(rows, r)
		}
		return rows, seen, true
	}
	for i, p := range e.chosenOf(n, a, t, pos) {
		if at(e.bound(n.Chosen(), t), i) != 0 || !(p >= 0 && p < float32(count)) {
			return nil, seen, false
		}
		rows = append(rows, int(p))
	}
	return rows, seen, true
}

// attendHead computes head h of token t of n on s.
func (e *executable) attendHead(n *plan.Node, t, h int, s *headContext, a *plan.AttentionAttr) {
	head := func(x []float32, dim int) []float32 {
		if x == nil {
			return nil
		}
		return x[h*dim:][:dim]
	}
	s.attend(head(e.row(n.Out, t), a.Values()), head(e.bound(n.Out, t), a.Values()), head(e.row(n.In[0], t), a.HeadDim), head(e.bound(n.In[0], t), a.HeadDim), a)
}
