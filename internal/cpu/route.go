package cpu

import (
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A router chooses a token's experts.
type router struct {
	a      plan.RouteAttr
	bias   []float32 // [experts], or nil
	scales []float32 // [experts], or nil: multiply the weights
}

// routerOf returns the router of a node.
func routerOf(n *plan.Node) (*router, error) {
	a := n.Attr.(plan.ExpertsAttr)
	bias, err := floats(n.Bias)
	if err != nil {
		return nil, err
	}
	scales, err := floats(a.Scales)
	return &router{a.Route, bias, scales}, err
}

// A routeDesk is the scratch memory of one worker.
type routeDesk struct {
	scores, choice []float64 // [experts]
	out            []bool    // [experts]: cannot be chosen, or already chosen
	groups         []float64 // score of each group
	counted        []bool    // [experts]: already counted for its group
}

func newRouteDesk(experts, groups int) routeDesk {
	return routeDesk{
		scores: make([]float64, experts), choice: make([]float64, experts), out: make([]bool, experts),
		groups: make([]float64, groups), counted: make([]bool, experts),
	}
}

// route writes the experts that logits choose and their weights, best first. Both have the length
// [plan.RouteAttr.Used]; with Given it only computes weights. NaN ranks above all numbers, so that it becomes a weight and reaches the
// token's result. No expert is chosen twice, whatever the logits.
func (r *router) route(d *routeDesk, logits []float32, experts []int32, weights []float32) {
	n := len(logits)
	scores, choice, out := d.scores[:n], d.choice[:n], d.out[:n]
	r.score(scores, logits)
	if r.a.Given {
		r.weigh(scores, experts, weights)
		return
	}
	copy(choice, scores)
	for i, b := range r.bias {
		choice[i] += float64(b)
	}
	clear(out)
	if r.a.Groups > 1 {
		r.limit(d, choice, out)
	}
	for k := range experts {
		at := best(choice, out)
		experts[k], out[at] = int32(at), true
	}
	if r.a.Score == plan.SparseMixer {
		r.mix(scores, out, experts, weights)
	} else {
		r.weigh(scores, experts, weights)
	}
}

// mix computes the weights of [plan.SparseMixer]. out marks the chosen experts, before and after.
func (r *router) mix(scores []float64, out []bool, experts []int32, weights []float32) {
	for _, e := range experts {
		out[e] = false
	}
	for k, e := range experts {
		s, sum := scores[e], 0.0
		for i, t := range scores {
			if !out[i] && !((s-t)/max(math.Abs(t), s) > 2*r.a.Jitter) {
				sum += math.Exp(t - s)
			}
		}
		out[e] = true
		weights[k] = float32(r.a.Scale / sum)
	}
}

// clearly reports whether a correct executor, whose logits differ by at most off, must choose the
// same experts as the last call of route: the chosen experts are better than the others by more
// than rounding explains.
func (r *router) clearly(d *routeDesk, experts []int32, off float64) bool {
	choice, size := d.choice, 0.0
	for _, c := range choice {
		size = max(size, math.Abs(c))
	}
	least, next := math.Inf(1), math.Inf(-1)
	for _, i := range experts {
		least = min(least, choice[i])
	}
	for i, c := range choice {
		if !d.out[i] {
			next = max(next, c)
		}
	}
	margin := roundings*size + 2*off
	if !(least-next > margin) || r.a.Score == plan.SparseMixer && !r.clearlyMixed(d, experts, margin) {
		return false
	}
	if r.a.Groups <= 1 {
		return true
	}
	least, next = math.Inf(1), math.Inf(-1)
	for g, sum := range d.groups[:r.a.Groups] {
		if d.counted[g] {
			least = min(least, sum)
		} else {
			next = max(next, sum)
		}
	}
	return least-next > float64(r.a.GroupTop)*margin
}

// clearlyMixed reports whether the order of the experts of [plan.SparseMixer] is clear, and which
// logits count.
func (r *router) clearlyMixed(d *routeDesk, experts []int32, margin float64) bool {
	chosen := make([]bool, len(d.choice))
	for _, e := range experts {
		s := d.choice[e]
		chosen[e] = true
		for i, t := range d.choice {
			if !chosen[i] && (!(s-t > margin) || math.Abs(s-t-2*r.a.Jitter*max(math.Abs(t), s)) <= margin*(1+2*r.a.Jitter)) {
				return false
			}
		}
	}
	return true
}

// score computes the scores of the experts.
func (r *router) score(scores []float64, logits []float32) {
	for i, v := range logits {
		scores[i] = float64(v)
	}
	switch r.a.Score {
	case plan.SoftmaxAll:
		top, sum := slices.Max(scores), 0.0
		for i, s := range scores {
			scores[i] = math.Exp(s - top)
			sum += scores[i]
		}
		for i := range scores {
			scores[i] /= sum
		}
	case plan.SigmoidEach:
		for i, s := range scores {
			scores[i] = 1 / (1 + math.Exp(-s))
		}
	case plan.SqrtSoftplus:
		for i, s := range scores {
			scores[i] = math.Sqrt(max(s, 0) + math.Log1p(math.Exp(-math.Abs(s))))
		}
	}
}

// limit excludes the experts that are not in the best groups.
func (r *router) limit(d *routeDesk, choice []float64, out []bool) {
	size, groups, counted := len(choice)/r.a.Groups, d.groups[:r.a.Groups], d.counted[:len(choice)]
	clear(counted)
	for g := range groups {
		of, known := choice[g*size:(g+1)*size], counted[g*size:(g+1)*size]
		groups[g] = 0
		for range r.a.GroupTop {
			at := best(of, known)
			groups[g] += of[at]
			known[at] = true
		}
	}
	for i := range out {
		out[i] = true
	}
	left := counted[:len(groups)]
	clear(left)
	for range r.a.GroupsUsed {
		g := best(groups, left)
		left[g] = true
		clear(out[g*size : (g+1)*size])
	}
}

// weigh computes the weights of the chosen experts.
func (r *router) weigh(scores []float64, experts []int32, weights []float32) {
	top, sum := scores[experts[0]], 0.0
	for _, e := range experts {
		top = max(top, scores[e])
	}
	for _, e := range experts {
		if r.a.Score == plan.SoftmaxChosen {
			scores[e] = math.Exp(scores[e] - top)
		}
		sum += scores[e]
	}
	for k, e := range experts {
		w := scores[e]
		if r.a.Score == plan.SoftmaxChosen || r.a.Normalize {
			w /= sum
		}
		if w *= r.a.Scale; r.scales != nil {
			w *= float64(r.scales[e])
		}
		weights[k] = float32(w)
	}
}

// best returns the index of the first of the largest values that are not out. NaN ranks above all.
func best(x []float64, out []bool) int {
	at := -1
	for i, v := range x {
		if !out[i] && (at < 0 || v > x[at] || v != v && x[at] == x[at]) {
			at = i
		}
	}
	return at
}
