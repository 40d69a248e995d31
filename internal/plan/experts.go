package plan

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// Experts is a mixture of experts (Shazeer et al., "Outrageously Large Neural
// Networks", 2017), see [ExpertsAttr].
var Experts = &Op{Name: "experts"}

// ExpertsAttr holds the parameters of [Experts]. A router's logits choose experts for every token;
// each expert is a gated feed-forward layer:
//
//	y = sum over the chosen e, the best first, of weight(e) * (down(e)·h(e) + its bias)
//	h(e) = GLU(gate(e)·x + its bias, up(e)·x + its bias)
//
// The order of the sum is fixed, so that a token's bits do not depend on the other tokens of the
// step. Each list has one tensor per expert, all of the same dtype and shape. The lists of biases
// may be nil.
type ExpertsAttr struct {
	Route RouteAttr
	GLU   GLUAttr

	Gate, Up, Down             []*tensor.Tensor // [ffn, d], [ffn, d], [d, ffn]
	GateBias, UpBias, DownBias []*tensor.Tensor // [ffn], [ffn], [d]; each list may be nil
}

func (a *ExpertsAttr) lists() [6]*[]*tensor.Tensor {
	return [6]*[]*tensor.Tensor{&a.Gate, &a.Up, &a.Down, &a.GateBias, &a.UpBias, &a.DownBias}
}

// weights implements weighted. It returns Gate, Up and Down of all experts, then their biases in
// the same order.
func (a ExpertsAttr) weights() []Weight {
	var all []Weight
	for i, list := range a.lists() {
		role := Matrix
		if i >= 3 {
			role = Vector
		}
		for _, w := range *list {
			all = append(all, Weight{w, role, a.Route.Used, len(a.Gate)})
		}
	}
	return all
}

func (a ExpertsAttr) replace(f func(*tensor.Tensor) *tensor.Tensor) any {
	for _, list := range a.lists() {
		*list = slices.Clone(*list)
		for i, w := range *list {
			(*list)[i] = f(w)
		}
	}
	return a
}

func (a ExpertsAttr) String() string {
	return fmt.Sprintf("{%d of %d, %v, %v}", a.Route.Used, len(a.Gate), a.Route, a.GLU)
}

// A Score is a way to turn a router's logits into the scores of experts.
type Score uint8

// The scores.
const (
	SoftmaxAll    Score = iota // softmax over all logits
	SoftmaxChosen              // the logits themselves; the weights are a softmax over the chosen experts
	SigmoidEach                // the sigmoid of each logit

	numScores
)

// String returns the score's name as a program prints it.
func (s Score) String() string {
	return [numScores]string{"softmax", "softmax of the chosen", "sigmoid"}[s]
}

// RouteAttr says how a router chooses a token's experts and computes their weights. Experts are
// chosen by their scores plus the node's biases; the weight is the score without the bias. Of equal
// experts the one with the lower number is better.
//
// With groups of consecutive experts (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024), only
// experts of the best GroupsUsed groups can be chosen. A group's score is the sum of its GroupTop
// best experts.
type RouteAttr struct {
	Used      int // experts per token
	Score     Score
	Normalize bool    // weights are divided by their sum
	Scale     float64 // weights are multiplied by Scale, after Normalize

	Groups, GroupsUsed, GroupTop int // with 0 or 1 groups, all experts can be chosen
}

func (a RouteAttr) String() string {
	s := a.Score.String()
	if a.Groups > 1 {
		s += fmt.Sprintf(", %d of %d groups by %d", a.GroupsUsed, a.Groups, a.GroupTop)
	}
	if a.Normalize {
		s += ", normalized"
	}
	if a.Scale != 1 {
		s += fmt.Sprintf(", scale %.6g", a.Scale)
	}
	return s
}

// Experts adds a mixture of experts for x [T, d], routed by logits [T, experts]. bias is [experts]
// or nil; it is added to the scores to choose experts, not to their weights.
func (b *Builder) Experts(x, logits Value, bias *tensor.Tensor, a ExpertsAttr) Value {
	n, d, r := len(a.Gate), b.Cols(x), a.Route
	if n == 0 || b.Cols(logits) != n || b.Rows(logits) != b.Rows(x) {
		b.Failf("experts: %d experts for logits of %d columns", n, b.Cols(logits))
	}
	switch {
	case r.Used < 1 || r.Used > n:
		b.Failf("experts: %d of %d experts cannot be chosen", r.Used, n)
	case r.Score >= numScores:
		b.Failf("experts: unknown score %d", r.Score)
	case !(r.Scale > 0 && r.Scale < 1e30):
		b.Failf("experts: weights cannot be scaled by %v, want a positive number", r.Scale)
	case r.Groups > 1 && (n%r.Groups != 0 || r.GroupsUsed < 1 || r.GroupsUsed > r.Groups || r.GroupTop < 1 || r.GroupTop > n/r.Groups || r.GroupsUsed*(n/r.Groups) < r.Used):
		b.Failf("experts: cannot choose %d of %d experts from %d of %d groups by their %d best", r.Used, n, r.GroupsUsed, r.Groups, r.GroupTop)
	}
	if bias != nil {
		b.vector(bias, n)
	}
	b.glu(a.GLU)
	b.matrix(a.Gate[0])
	ffn := a.Gate[0].Shape[0]
	shapes := [6][]int{{ffn, d}, {ffn, d}, {d, ffn}, {ffn}, {ffn}, {d}}
	for i, kind := range a.lists() {
		list := *kind
		if len(list) == 0 && i >= 3 {
			continue
		}
		if len(list) != n {
			b.Failf("experts: %d weights of a kind for %d experts", len(list), n)
		}
		for _, w := range list {
			b.weight(w)
			if fmt.Sprint(w.Shape) != fmt.Sprint(shapes[i]) || w.DType != list[0].DType {
				b.Failf("%s: want %v of shape %v, as the first expert's, is %v of shape %v", w.Name, list[0].DType, shapes[i], w.DType, w.Shape)
			}
		}
	}
	return b.add(Node{Op: Experts, In: []Value{x, logits}, Bias: bias, State: NoState, Attr: a}, b.Rows(x), Dim(d))
}
