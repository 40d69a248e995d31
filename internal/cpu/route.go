package cpu

import (
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A router chooses a token's experts.
type router struct {
	a    plan.RouteAttr
	bias []float32 // [experts], or nil

	scores, choice []float64 // [experts]
	groups         []float64 // of the best experts of a group
}

func newRouter(a plan.RouteAttr, bias []float32, experts int) *router {
	return &router{a: a, bias: bias, scores: make([]float64, experts), choice: make([]float64, experts), groups: make([]float64, max(1, a.Groups))}
}

// route writes the experts that logits choose and their weights, the best first; both
// have the length of [plan.RouteAttr.Used]. Logits that are not finite choose the
// first experts, with weights that are not finite either.
func (r *router) route(logits []float32, experts []int32, weights []float32) {
	r.score(logits)
	copy(r.choice, r.scores)
	for i, b := range r.bias {
		r.choice[i] += float64(b)
	}
	if r.a.Groups > 1 {
		r.limit()
	}
	for k := range experts {
		experts[k] = int32(best(r.choice))
		r.choice[experts[k]] = math.Inf(-1)
	}
	r.weigh(experts, weights)
}

// score is what each expert is weighed by.
func (r *router) score(logits []float32) {
	for i, v := range logits {
		r.scores[i] = float64(v)
	}
	switch r.a.Score {
	case plan.SoftmaxAll:
		top, sum := slices.Max(r.scores), 0.0
		for i, s := range r.scores {
			r.scores[i] = math.Exp(s - top)
			sum += r.scores[i]
		}
		for i := range r.scores {
			r.scores[i] /= sum
		}
	case plan.SigmoidEach:
		for i, s := range r.scores {
			r.scores[i] = 1 / (1 + math.Exp(-s))
		}
	}
}

// limit leaves only the experts of the best groups.
func (r *router) limit() {
	size := len(r.choice) / r.a.Groups
	for g := range r.groups {
		group := slices.Clone(r.choice[g*size : (g+1)*size])
		slices.SortFunc(group, func(a, b float64) int {
			switch {
			case a > b:
				return -1
			case a < b:
				return 1
			}
			return 0
		})
		r.groups[g] = 0
		for _, v := range group[:r.a.GroupTop] {
			r.groups[g] += v
		}
	}
	for range r.a.Groups - r.a.GroupsUsed {
		worst := 0
		for g, v := range r.groups {
			if v <= r.groups[worst] { // of equals the later one
				worst = g
			}
		}
		r.groups[worst] = math.Inf(1)
		for i := range size {
			r.choice[worst*size+i] = math.Inf(-1)
		}
	}
}

// weigh computes the weights of those chosen.
func (r *router) weigh(experts []int32, weights []float32) {
	top, sum := r.scores[experts[0]], 0.0
	for _, e := range experts {
		top = max(top, r.scores[e])
	}
	for _, e := range experts {
		if r.a.Score == plan.SoftmaxChosen {
			r.scores[e] = math.Exp(r.scores[e] - top)
		}
		sum += r.scores[e]
	}
	for k, e := range experts {
		w := r.scores[e]
		if r.a.Score == plan.SoftmaxChosen || r.a.Normalize {
			w /= sum
		}
		weights[k] = float32(w * r.a.Scale)
	}
}

// best is the first of the largest values.
func best(x []float64) int {
	at := 0
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}
