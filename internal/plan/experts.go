package plan

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// Experts is a mixture of experts (Shazeer et al., "Outrageously Large Neural
// Networks", 2017), see [ExpertsAttr].
var Experts = &Op{Name: "experts"}

// ExpertsAttr are the parameters of [Experts]: of every token, the experts that its
// router's logits choose, each a gated feed-forward layer of its own,
//
//	y = sum over the chosen e, the best first, of weight(e) * (down(e)·h(e) + its bias)
//	h(e) = GLU(gate(e)·x + its bias, up(e)·x + its bias)
//
// added in this order, so that a token's bits do not depend on who else is in the step.
// Each list has an entry for every expert, in the dtype and shape of the first; those
// of biases may be nil.
type ExpertsAttr struct {
	Route RouteAttr
	GLU   GLUAttr

	Gate, Up, Down             []*tensor.Tensor // [ffn, d], [ffn, d], [d, ffn]
	GateBias, UpBias, DownBias []*tensor.Tensor // [ffn], [ffn], [d], or no list
}

func (a *ExpertsAttr) lists() [6]*[]*tensor.Tensor {
	return [6]*[]*tensor.Tensor{&a.Gate, &a.Up, &a.Down, &a.GateBias, &a.UpBias, &a.DownBias}
}

// weights implements weighted: the gates of all experts, what they gate, the products
// back, and their biases likewise.
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

// A Score is how a router's logits become the scores of experts.
type Score uint8

// The scores.
const (
	SoftmaxAll    Score = iota // softmax over all logits
	SoftmaxChosen              // the logits themselves; the weights are a softmax over those that were chosen
	SigmoidEach                // the sigmoid of each

	numScores
)

// String is the score's name as a program prints it.
func (s Score) String() string {
	return [numScores]string{"softmax", "softmax of the chosen", "sigmoid"}[s]
}

// RouteAttr says which experts a token has, and with what weights. An expert's score,
// with the node's bias for it added, is what it is chosen by; the score itself is its
// weight. Of equals the lower number is better.
//
// With groups (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024), which are
// consecutive experts, those of the GroupsUsed best alone can be chosen; a group is as good as the
// sum of its GroupTop best experts.
type RouteAttr struct {
	Used      int // experts of a token
	Score     Score
	Normalize bool    // weights are divided by their sum
	Scale     float64 // weights are multiplied by this, after that

	Groups, GroupsUsed, GroupTop int // 0 or 1 group: all can be chosen
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

// Experts is the mixture of experts for x [T, d], chosen by logits [T, experts]. bias
// [experts], or nil, is added to scores to choose by.
func (b *Builder) Experts(x, logits Value, bias *tensor.Tensor, a ExpertsAttr) Value {
	n, d, r := len(a.Gate), b.Cols(x), a.Route
	if n == 0 || b.Cols(logits) != n || b.Rows(logits) != b.Rows(x) {
		b.Failf("experts: %d experts for logits of %d columns", n, b.Cols(logits))
	}
	switch {
	case r.Used < 1 || r.Used > n:
		b.Failf("experts: %d of %d experts cannot be chosen", r.Used, n)
	case r.Score >= numScores:
		b.Failf("experts: there is no score of kind %d", r.Score)
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
