package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
)

func routeOf(a plan.RouteAttr, bias, logits []float32) (experts []int32, weights []float32) {
	d := newRouteDesk(len(logits), a.Groups)
	experts, weights = make([]int32, a.Used), make([]float32, a.Used)
	(&router{a: a, bias: bias}).route(&d, logits, experts, weights)
	return experts, weights
}

func TestRouteBreaksTiesByNumber(t *testing.T) {
	for _, c := range []struct {
		a      plan.RouteAttr
		bias   []float32
		logits []float32
		want   []int32
	}{
		{plan.RouteAttr{Used: 3}, nil, []float32{1, 2, 1, 2, 1}, []int32{1, 3, 0}},
		{plan.RouteAttr{Used: 2, Score: plan.SoftmaxChosen}, nil, []float32{-5, -5, -5}, []int32{0, 1}},
		{plan.RouteAttr{Used: 2, Score: plan.SigmoidEach}, []float32{0, 0, 1, 1}, []float32{3, 3, 0, 0}, []int32{2, 3}},
		// Of equal groups the first stays, and only its experts.
		{plan.RouteAttr{Used: 2, Groups: 3, GroupsUsed: 1, GroupTop: 2}, nil, []float32{0, 1, 2, 1, 1, 2}, []int32{2, 3}},
		{plan.RouteAttr{Used: 2, Groups: 3, GroupsUsed: 2, GroupTop: 1}, nil, []float32{2, 0, 2, 1, 2, 1.5}, []int32{0, 2}},
		// The sum of a group's two best outweighs the single best.
		{plan.RouteAttr{Used: 1, Score: plan.SoftmaxChosen, Groups: 2, GroupsUsed: 1, GroupTop: 2}, nil, []float32{5, -9, 3, 3}, []int32{2}},
		{plan.RouteAttr{Used: 1, Score: plan.SoftmaxChosen, Groups: 2, GroupsUsed: 1, GroupTop: 1}, nil, []float32{5, -9, 3, 3}, []int32{0}},
		// The worst expert of a chosen group comes before the best of another group.
		{plan.RouteAttr{Used: 2, Score: plan.SoftmaxChosen, Groups: 2, GroupsUsed: 1, GroupTop: 1}, nil, []float32{5, float32(math.Inf(-1)), 3, 3}, []int32{0, 1}},
	} {
		c.a.Scale = 1
		if got, _ := routeOf(c.a, c.bias, c.logits); !slices.Equal(got, c.want) {
			t.Errorf("%v of %v with %v: %v, want %v", c.a, c.logits, c.bias, got, c.want)
		}
	}
}

func TestRouteWeighs(t *testing.T) {
	logits := []float32{0, float32(math.Log(2)), float32(math.Log(5))} // softmax 1/8, 2/8, 5/8
	for _, c := range []struct {
		a    plan.RouteAttr
		bias []float32
		want []float32
	}{
		{plan.RouteAttr{Used: 2, Scale: 1}, nil, []float32{5. / 8, 2. / 8}},
		{plan.RouteAttr{Used: 2, Scale: 1, Normalize: true}, nil, []float32{5. / 7, 2. / 7}},
		{plan.RouteAttr{Used: 2, Scale: 3, Score: plan.SoftmaxChosen}, nil, []float32{15. / 7, 6. / 7}},
		{plan.RouteAttr{Used: 1, Scale: 1, Score: plan.SoftmaxChosen}, nil, []float32{1}},
		{plan.RouteAttr{Used: 2, Scale: 2, Score: plan.SigmoidEach}, nil, []float32{10. / 6, 4. / 3}},
		// A bias affects the choice, not the weight.
		{plan.RouteAttr{Used: 2, Scale: 1, Score: plan.SigmoidEach}, []float32{1, 0, 0}, []float32{1. / 2, 5. / 6}},
	} {
		_, got := routeOf(c.a, c.bias, logits)
		for i, w := range c.want {
			if math.Abs(float64(got[i]-w)) > 1e-6 {
				t.Errorf("%v with %v: %v, want %v", c.a, c.bias, got, c.want)
			}
		}
	}
}

// For any logits, the chosen experts exist and are distinct, and a NaN becomes a weight.
func TestRouteOfNoNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, math.MaxFloat32, -math.MaxFloat32}
	for range 5000 {
		n := []int{4, 8, 64}[rng.IntN(3)]
		a := plan.RouteAttr{Used: 1 + rng.IntN(n/4), Score: plan.Score(rng.IntN(3)), Normalize: rng.IntN(2) == 0, Scale: 1}
		if rng.IntN(2) == 0 {
			a.Groups, a.GroupsUsed, a.GroupTop = 4, 1+rng.IntN(4), 1+rng.IntN(n/4)
		}
		logits, odd := make([]float32, n), rng.IntN(3)
		for i := range logits {
			if logits[i] = float32(rng.NormFloat64()); odd > 0 && rng.IntN(odd*3) == 0 {
				logits[i] = special[rng.IntN(len(special))]
			}
		}
		experts, weights := routeOf(a, nil, logits)
		seen := make([]bool, n)
		for _, e := range experts {
			if e < 0 || int(e) >= n || seen[e] {
				t.Fatalf("%v of %v: %v", a, logits, experts)
			}
			seen[e] = true
		}
		isNaN := func(v float32) bool { return v != v }
		if slices.ContainsFunc(logits, isNaN) != slices.ContainsFunc(weights, isNaN) && !slices.Contains(logits, special[1]) && !slices.Contains(logits, special[2]) {
			t.Fatalf("%v of %v: weights %v", a, logits, weights)
		}
	}
}

// A choice is clear if no rounding can change it; the order of the chosen experts does not matter.
func TestClearChoices(t *testing.T) {
	two := plan.RouteAttr{Used: 2, Score: plan.SoftmaxChosen, Scale: 1}
	all := plan.RouteAttr{Used: 2, Score: plan.SoftmaxAll, Scale: 1}
	groups := plan.RouteAttr{Used: 2, Score: plan.SigmoidEach, Scale: 1, Groups: 2, GroupsUsed: 1, GroupTop: 1}
	for _, test := range []struct {
		what   string
		route  plan.RouteAttr
		bias   []float32
		logits []float32
		off    float64 // bound of the logits' errors
		clear  bool
	}{
		{"far apart", two, nil, []float32{1, 2, 3, 4}, 0, true},
		{"equals are chosen", two, nil, []float32{4, 2, 1, 4}, 0, true},
		{"an equal is left", two, nil, []float32{3, 3, 1, 4}, 0, false},
		{"nearly equal", two, nil, []float32{3, 3.000001, 1, 4}, 0, false},
		{"logits that are off", two, nil, []float32{1, 2, 3, 4}, 0.6, false},
		{"probabilities", all, nil, []float32{1, 2, 3, 4}, 0, true},
		{"equal by bias", all, []float32{1, 1, 0, 0}, []float32{0, 0, 0, 0}, 0, true},
		{"equal to what is chosen by bias", all, []float32{1, 0, 0, 0}, []float32{0, 0, 0, 0}, 0, false},
		{"groups", groups, nil, []float32{5, 1, 4, 3}, 0, true},
		{"equal groups", groups, nil, []float32{5, 1, 5, 3}, 0, false},
		{"all are used", plan.RouteAttr{Used: 2, Score: plan.SoftmaxChosen, Scale: 1}, nil, []float32{1, 1}, 0, true},
	} {
		desk := newRouteDesk(len(test.logits), test.route.Groups)
		r := router{a: test.route, bias: test.bias}
		experts, weights := make([]int32, test.route.Used), make([]float32, test.route.Used)
		r.route(&desk, test.logits, experts, weights)
		if got := r.clearly(&desk, experts, test.off); got != test.clear {
			t.Errorf("%s: experts %v of %v are clear: %v", test.what, experts, test.logits, got)
		}
	}
}
