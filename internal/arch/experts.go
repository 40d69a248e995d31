package arch

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Mixture holds the numbers of a model's mixtures of experts (Shazeer et al., "Outrageously Large
// Neural Networks", 2017).
type Mixture struct {
	Experts   int    // 0: no mixtures
	Identity  int    // experts after these, whose result is their input
	ExpertFFN int    // width of an expert
	SharedFFN int    // width of the shared expert, which all tokens use; 0: none
	Always    bool   // all layers have experts, whatever the file's keys say
	Sparse    []bool // by layer, or nil for all: whether it has experts; other layers have a feed-forward layer

	Route      plan.RouteAttr
	ExpertGLU  plan.GLUAttr
	Alternate  bool // a fused weight has gate in its even rows and up in its odd rows
	RouterBias bias // bias of the router's logits
	ChoiceBias bias // bias added to scores to choose experts
	ExpertBias bias // bias of the experts' projections
	SharedGate bias // bias of the shared expert's gate

	RouterCap  float64 // softcap of the router's logits; 0: none
	SharedMean bool    // the result is the mean of the experts' and the shared expert's instead of their sum
}

// mixture reads the keys about experts. m holds the architecture's defaults; an ExpertFFN of 0
// stands for the width of a feed-forward layer.
func (s *Spec) mixture(c *config, m Mixture) {
	r := &m.Route
	if m.ExpertFFN == 0 {
		m.ExpertFFN = s.FFN
	}
	if r.Scale == 0 {
		r.Scale = 1
	}
	if m.ExpertGLU == (plan.GLUAttr{}) {
		m.ExpertGLU.Act = s.Act
	}
	if c.gguf {
		m.readGGUF(c, s)
	} else {
		m.readHub(c, s)
	}
	switch {
	case c.err != nil:
	case r.Used > m.Experts+m.Identity:
		c.failf("%d experts for each token, of %d experts", r.Used, m.Experts)
	case r.Groups > 1 && (m.Experts%r.Groups != 0 || r.GroupsUsed > r.Groups || r.GroupsUsed*(m.Experts/r.Groups) < r.Used):
		c.failf("%d of %d experts cannot be chosen from %d of %d groups", r.Used, m.Experts, r.GroupsUsed, r.Groups)
	default:
		r.GroupTop = min(r.GroupTop, m.Experts/max(1, r.Groups))
	}
	s.Mixture = m
}

// scores are the router's scores by their numbers in GGUF, from 1 on.
var scores = []plan.Score{plan.SoftmaxAll, plan.SigmoidEach, plan.SoftmaxChosen, plan.SqrtSoftplus}

func (m *Mixture) readGGUF(c *config, s *Spec) {
	r := &m.Route
	m.Experts = c.integer("expert_count", -1)
	r.Used = c.integer("expert_used_count", -1)
	m.ExpertFFN = c.integer("expert_feed_forward_length", m.ExpertFFN)
	if shared := c.first("expert_shared_count", 0); shared > 0 {
		m.SharedFFN = shared * m.ExpertFFN
	}
	m.SharedFFN = c.first("expert_shared_feed_forward_length", m.SharedFFN)
	if n := c.first("expert_gating_func", 0); n > len(scores) {
		c.failf("%s is %d; the nearest known are 1 (softmax), 2 (sigmoid), 3 (softmax of the chosen) and 4 (root of softplus)", c.key("expert_gating_func"), n)
	} else if n > 0 {
		r.Score = scores[n-1]
	}
	r.Normalize = c.flag("expert_weights_norm", r.Normalize)
	if scale := c.optional("expert_weights_scale"); scale > 0 {
		r.Scale = scale
	}
	r.Groups, r.GroupsUsed = c.first("expert_group_count", r.Groups), c.first("expert_group_used_count", r.GroupsUsed)
	if first := c.first("leading_dense_block_count", 0); first > 0 {
		s.sparse(m, func(i int) bool { return i >= first })
	}
}

// scoreNames are the names of scores in config.json. dots.llm1 names the method of DeepSeek-V3.
var scoreNames = map[string]plan.Score{"softmax": plan.SoftmaxAll, "sigmoid": plan.SigmoidEach, "noaux_tc": plan.SigmoidEach, "sqrtsoftplus": plan.SqrtSoftplus}

func (m *Mixture) readHub(c *config, s *Spec) {
	r := &m.Route
	for _, b := range []*bias{&m.RouterBias, &m.ChoiceBias, &m.ExpertBias, &m.SharedGate} {
		*b = max(*b, without) // GGUF has no keys for biases
	}
	m.Experts = c.among(m.Experts, "num_experts", "num_local_experts", "n_routed_experts")
	r.Used = c.among(r.Used, "num_experts_per_tok", "experts_per_token", "num_experts_per_token")
	m.ExpertFFN = c.integer("moe_intermediate_size", m.ExpertFFN)
	if shared := c.first("n_shared_experts", 0); shared > 0 {
		m.SharedFFN = shared * m.ExpertFFN
	}
	m.SharedFFN = c.first("shared_expert_intermediate_size", c.first("shared_intermediate_size", m.SharedFFN))
	if name := c.text("scoring_func", ""); name != "" {
		score, ok := scoreNames[name]
		if !ok {
			c.failf("%s is %q; the nearest known are %s", c.key("scoring_func"), name, nearestOf(name, []string{"softmax", "sigmoid"}))
		}
		r.Score = score
	}
	r.Normalize = c.flag("norm_topk_prob", r.Normalize)
	r.Scale = c.number("routed_scaling_factor", r.Scale)
	r.Groups, r.GroupsUsed = c.first("n_group", r.Groups), c.first("topk_group", r.GroupsUsed)

	if m.Always {
		return
	}
	first, step := c.first("first_k_dense_replace", 0), c.integer("decoder_sparse_step", 1)
	dense, _ := c.m.Ints(c.key("mlp_only_layers"))
	if kinds, ok := c.m.Strings("mlp_layer_types"); ok {
		m.layerTypes(c, s, kinds)
	} else if first > 0 || step > 1 || len(dense) > 0 {
		s.sparse(m, func(i int) bool { return i >= first && (i+1)%step == 0 && !slices.Contains(dense, int64(i)) })
	}
}

// layerTypes reads config.json's mlp_layer_types.
func (m *Mixture) layerTypes(c *config, s *Spec, kinds []string) {
	if len(kinds) != s.Layers {
		c.failf("mlp_layer_types names %d layers of %d", len(kinds), s.Layers)
		return
	}
	for i, k := range kinds {
		if k != "dense" && k != "sparse" {
			c.failf("mlp_layer_types[%d] is %q, want %q or %q", i, k, "dense", "sparse")
		}
	}
	s.sparse(m, func(i int) bool { return kinds[i] == "sparse" })
}

// sparse sets the layers that have experts.
func (s *Spec) sparse(m *Mixture, has func(layer int) bool) {
	m.Sparse = make([]bool, min(max(s.Layers, 0), maxLayers))
	for i := range m.Sparse {
		m.Sparse[i] = has(i)
	}
}

// among returns the number, at least 1, under the first of keys that the file has, or def.
func (c *config) among(def int, keys ...string) int {
	for _, key := range keys {
		if c.has(key) {
			return c.integer(key, def)
		}
	}
	if def < 1 {
		c.failf("%s is missing", keys[0])
	}
	return def
}

// experts returns the result of a layer's mixture of experts and its shared expert.
func experts(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	logits := b.Softcap(linear(b, w, x, "ffn_gate_inp", s.Experts+s.Identity, s.RouterBias), s.RouterCap)
	y := routed(b, s, w, x, logits, nil)
	if s.SharedFFN == 0 {
		return y
	}
	shared := glu(b, s, w, x, "_shexp", s.SharedFFN)
	if gate := w.sharedGate(s); gate != nil {
		shared = b.GLU(b.Linear(x, gate, nil), shared, plan.GLUAttr{Act: plan.Sigmoid})
	}
	if y = b.Add(y, shared); s.SharedMean {
		y = b.Scale(y, 0.5)
	}
	return y
}

// routed returns the result of the experts that logits choose. scales is [experts] or nil.
func routed(b *plan.Builder, s *Spec, w layer, x, logits plan.Value, scales *tensor.Tensor) plan.Value {
	a := plan.ExpertsAttr{Route: s.Route, GLU: s.ExpertGLU, Identity: s.Identity, Scales: scales}
	a.Gate, a.Up, a.GateBias, a.UpBias = w.gates(s)
	a.Down, a.DownBias = w.matrices("ffn_down", s.Experts, s.Hidden, s.ExpertFFN), w.vectors("ffn_down", s.Experts, s.Hidden, s.ExpertBias)
	return b.Experts(x, logits, w.bias("exp_probs_b", s.ChoiceBias), a)
}

// sharedGate returns the row that computes the gate of the shared expert, or nil.
func (l layer) sharedGate(s *Spec) *tensor.Tensor {
	const short = "ffn_gate_inp_shexp"
	if s.SharedGate == without || s.SharedGate == asFound && !l.has(short) {
		return nil
	}
	gate := *l.weight(short)
	if gate.Elems() != s.Hidden || gate.Cols() != s.Hidden {
		l.b.Fail(fmt.Errorf("%w: %s has shape %v, want [1 %d]", ErrTensor, gate.Name, gate.Shape, s.Hidden))
	}
	gate.Shape = []int{1, s.Hidden}
	return &gate
}

// gates returns the experts' projections to gate and up, and their biases. Both may be fused in one
// weight, gate first or in alternate rows.
func (l layer) gates(s *Spec) (gate, up, gateBias, upBias []*tensor.Tensor) {
	const fused = "ffn_gate_up"
	n, ffn := s.Experts, s.ExpertFFN
	if !l.has(fused+"_exps") && !l.has(fused+"_exps_t") {
		return l.matrices("ffn_gate", n, ffn, s.Hidden), l.matrices("ffn_up", n, ffn, s.Hidden),
			l.vectors("ffn_gate", n, ffn, s.ExpertBias), l.vectors("ffn_up", n, ffn, s.ExpertBias)
	}
	part := func(t *tensor.Tensor, which int) *tensor.Tensor {
		switch {
		case s.Alternate && len(t.Shape) == 1:
			return alternateElements(t, which)
		case s.Alternate:
			return alternateRows(t, which)
		case len(t.Shape) == 1:
			return vectorSlice(t, which*ffn, (which+1)*ffn)
		}
		half := t.RowSlice(which*ffn, (which+1)*ffn)
		half.Name = fmt.Sprintf("%s[%d:%d]", t.Name, which*ffn, (which+1)*ffn)
		return half
	}
	for _, t := range l.matrices(fused, n, 2*ffn, s.Hidden) {
		gate, up = append(gate, part(t, 0)), append(up, part(t, 1))
	}
	for _, t := range l.vectors(fused, n, 2*ffn, s.ExpertBias) {
		gateBias, upBias = append(gateBias, part(t, 0)), append(upBias, part(t, 1))
	}
	return gate, up, gateBias, upBias
}

// matrices returns the weights [rows, cols] of n experts, from one tensor with all of them,
// transposed or not, or from one tensor each.
func (l layer) matrices(short string, n, rows, cols int) []*tensor.Tensor {
	var list []*tensor.Tensor
	one := func(e int) string { return l.numbered(short+"_exp", ".weight", e) }
	switch _, single := l.f.Tensor(one(0)); {
	case l.has(short + "_exps_t"):
		for _, t := range l.stacked(short+"_exps_t", n, cols, rows) {
			other, err := transposed(nil, t)
			if err != nil {
				l.b.Fail(err)
			}
			list = append(list, other)
		}
	case l.has(short+"_exps") || !l.hub && !single:
		return l.stacked(short+"_exps", n, rows, cols)
	default:
		for e := range n {
			t := l.named(one(e))
			if len(t.Shape) != 2 || t.Shape[0] != rows || t.Shape[1] != cols {
				l.b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d %d] by the configuration", ErrTensor, t.Name, t.Shape, rows, cols))
			}
			list = append(list, t)
		}
	}
	return list
}

// stacked returns the n matrices that a tensor holds one after the other.
func (l layer) stacked(short string, n, rows, cols int) []*tensor.Tensor {
	t := l.weight(short)
	if !slices.Equal(t.Shape, []int{n, rows, cols}) {
		l.b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d %d %d] by the configuration", ErrTensor, t.Name, t.Shape, n, rows, cols))
	}
	var list []*tensor.Tensor
	for e := range n {
		one := t.RowSlice(e*rows, (e+1)*rows)
		one.Name = fmt.Sprintf("%s[%d]", t.Name, e)
		list = append(list, one)
	}
	return list
}

// vectors returns the biases of n experts, which are in one tensor, or nil.
func (l layer) vectors(short string, n, size int, want bias) []*tensor.Tensor {
	t := l.bias(short+"_exps", want)
	if t == nil {
		return nil
	}
	if !slices.Equal(t.Shape, []int{n, size}) || t.DType.Quantized() || t.Source != nil {
		l.b.Fail(fmt.Errorf("%w: %s is %v of shape %v, want unquantized numbers of shape [%d %d]", ErrTensor, t.Name, t.DType, t.Shape, n, size))
	}
	var list []*tensor.Tensor
	for e := range n {
		one := flat(t.RowSlice(e, e+1))
		one.Name = fmt.Sprintf("%s[%d]", t.Name, e)
		list = append(list, one)
	}
	return list
}
