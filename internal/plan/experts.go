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
// may be nil. Gate and Up may be the same tensors: with ReLU, h(e) is then the squared ReLU of
// up(e)·x (So et al., "Primer", 2021), without a gate.
//
// Identity experts follow these: their result is x (Meituan LongCat Team, "LongCat-Flash Technical
// Report", 2025, "zero-computation experts").
type ExpertsAttr struct {
	Route    RouteAttr
	GLU      GLUAttr
	Identity int

	Gate, Up, Down             []*tensor.Tensor // [ffn, d], [ffn, d], [d, ffn]
	GateBias, UpBias, DownBias []*tensor.Tensor // [ffn], [ffn], [d]; each list may be nil
	Scales                     *tensor.Tensor   // [experts], or nil: multiply the experts' weights, after Route.Scale

	// Hidden is nil unless the node is one of several parts, as in [GatherAttr]: part i has rows
	// Hidden[i] of Gate and Up and some rows of Down. The parts gather h(e) before they multiply it.
	Hidden Cut
}

func (a *ExpertsAttr) lists() [6]*[]*tensor.Tensor {
	return [6]*[]*tensor.Tensor{&a.Gate, &a.Up, &a.Down, &a.GateBias, &a.UpBias, &a.DownBias}
}

// Ungated reports whether Gate and Up are the same tensors.
func (a *ExpertsAttr) Ungated() bool { return len(a.Gate) > 0 && len(a.Up) > 0 && a.Gate[0] == a.Up[0] }

// weights implements weighted. It returns Gate, Up and Down of all experts, without Up if that is
// Gate, then their biases in the same order.
func (a ExpertsAttr) weights() []Weight {
	var all []Weight
	for i, list := range a.lists() {
		role := Matrix
		if i >= 3 {
			role = Vector
		}
		if i == 1 && a.Ungated() {
			continue
		}
		for _, w := range *list {
			all = append(all, Weight{w, role, a.Route.Used, len(a.Gate)})
		}
	}
	if a.Scales != nil {
		all = append(all, Weight{a.Scales, Vector, 1, 1})
	}
	return all
}

func (a ExpertsAttr) replace(f func(*tensor.Tensor) *tensor.Tensor) any {
	ungated := a.Ungated()
	for _, list := range a.lists() {
		*list = slices.Clone(*list)
		for i, w := range *list {
			(*list)[i] = f(w)
		}
	}
	if ungated {
		a.Up = a.Gate
	}
	if a.Scales != nil {
		a.Scales = f(a.Scales)
	}
	return a
}

func (a ExpertsAttr) String() string {
	glu := a.GLU.String()
	if a.Ungated() {
		glu += " of up alone"
	}
	identity := ""
	if a.Identity > 0 {
		identity = fmt.Sprintf(" and %d identities", a.Identity)
	}
	hidden := ""
	if a.Hidden != nil {
		hidden = fmt.Sprintf(", gathers %v", a.Hidden)
	}
	return fmt.Sprintf("{%d of %d%s, %v, %s%s}", a.Route.Used, len(a.Gate), identity, a.Route, glu, hidden)
}

// A Score is a way to turn a router's logits into the scores of experts.
type Score uint8

// The scores.
const (
	SoftmaxAll    Score = iota // softmax over all logits
	SoftmaxChosen              // the logits themselves; the weights are a softmax over the chosen experts
	SigmoidEach                // the sigmoid of each logit
	SparseMixer                // the logits themselves; see [RouteAttr.Jitter]
	SqrtSoftplus               // the root of ln(1 + exp(x)) of each logit x (DeepSeek-AI, "DeepSeek-V4", 2026)

	numScores
)

// String returns the score's name as a program prints it.
func (s Score) String() string {
	return [numScores]string{"softmax", "softmax of the chosen", "sigmoid", "sparse mixer", "root of softplus"}[s]
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
	Given     bool    // the experts are given by another value, see [Builder.GivenExperts]
	Before    bool    // weights multiply the experts' inputs instead of their outputs

	// With SparseMixer (Liu et al., "GRIN: GRadient-INformed MoE", 2024) the weight of an expert with
	// logit s is its part of a softmax over those that are not chosen before it and have logits t
	// with s-t <= 2*Jitter*max(|t|, s).
	Jitter float64

	Groups, GroupsUsed, GroupTop int // with 0 or 1 groups, all experts can be chosen
}

func (a RouteAttr) String() string {
	s := a.Score.String()
	if a.Score == SparseMixer {
		s += fmt.Sprintf(", jitter %.6g", a.Jitter)
	}
	if a.Groups > 1 {
		s += fmt.Sprintf(", %d of %d groups by %d", a.GroupsUsed, a.Groups, a.GroupTop)
	}
	if a.Normalize {
		s += ", normalized"
	}
	if a.Scale != 1 {
		s += fmt.Sprintf(", scale %.6g", a.Scale)
	}
	if a.Before {
		s += ", before"
	}
	if a.Given {
		s += ", given"
	}
	return s
}

// Experts adds a mixture of experts for x [T, d], routed by logits [T, experts]. bias is [experts]
// or nil; it is added to the scores to choose experts, not to their weights.
func (b *Builder) Experts(x, logits Value, bias *tensor.Tensor, a ExpertsAttr) Value {
	if a.Route.Given {
		b.Failf("experts: no experts are given")
	}
	return b.experts(x, logits, bias, a)
}

// GivenExperts is Experts whose numbers are in chosen [T, Used], such as those that a table has for
// each token (Roller et al., "Hash Layers For Large Sparse Models", 2021). They are added in the order
// given; logits give their weights.
func (b *Builder) GivenExperts(x, logits, chosen Value, a ExpertsAttr) Value {
	r := &a.Route
	if r.Given = true; b.Cols(chosen) != r.Used || b.Rows(chosen) != b.Rows(x) || r.Groups > 1 || r.Score == SparseMixer || r.Score == SoftmaxChosen || a.Identity > 0 {
		b.Failf("experts: %d given of %d, %v", b.Cols(chosen), r.Used, r)
	}
	return b.experts(x, logits, nil, a, chosen)
}

func (b *Builder) experts(x, logits Value, bias *tensor.Tensor, a ExpertsAttr, given ...Value) Value {
	n, d, r := len(a.Gate), b.Cols(x), a.Route
	all := n + a.Identity
	if n == 0 || a.Identity < 0 || b.Cols(logits) != all || b.Rows(logits) != b.Rows(x) {
		b.Failf("experts: %d experts for logits of %d columns", all, b.Cols(logits))
	}
	switch {
	case r.Used < 1 || r.Used > all:
		b.Failf("experts: %d of %d experts cannot be chosen", r.Used, all)
	case r.Score >= numScores:
		b.Failf("experts: unknown score %d", r.Score)
	case !(r.Jitter >= 0 && r.Jitter < 1e30):
		b.Failf("experts: a jitter of %v, want a number of at least 0", r.Jitter)
	case !(r.Scale > 0 && r.Scale < 1e30):
		b.Failf("experts: weights cannot be scaled by %v, want a positive number", r.Scale)
	case r.Groups > 1 && (all%r.Groups != 0 || r.GroupsUsed < 1 || r.GroupsUsed > r.Groups || r.GroupTop < 1 || r.GroupTop > all/r.Groups || r.GroupsUsed*(all/r.Groups) < r.Used):
		b.Failf("experts: cannot choose %d of %d experts from %d of %d groups by their %d best", r.Used, all, r.GroupsUsed, r.Groups, r.GroupTop)
	}
	if r.Before && (len(a.GateBias) > 0 || len(a.UpBias) > 0) {
		b.Failf("experts: weights that multiply inputs, beside biases of gate and up, are not supported")
	}
	for _, v := range []*tensor.Tensor{bias, a.Scales} {
		if v != nil {
			b.vector(v, all)
		}
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
	in := append([]Value{x, logits}, given...)
	if a.Identity > 0 {
		in = append(in, x) // as the results of identities
	}
	return b.add(Node{Op: Experts, In: in, Bias: bias, State: NoState, Attr: a}, b.Rows(x), Dim(d))
}
