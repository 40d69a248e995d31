package arch

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A DeltaNet holds the numbers of a model's gated delta nets (Yang, Kautz and Hatamizadeh, "Gated
// Delta Networks", 2024).
type DeltaNet struct {
	Recurrent []bool // by layer, or nil for none: whether it has a delta net, states or a convolution in place of attention
	Delta     plan.DeltaAttr
	DeltaTaps int             // tokens that its convolutions read
	DeltaAct  plan.Activation // of the gate of its output
	DeltaEps  float64         // of the norm of its output; 0: Eps
}

// deltaNames are the names of a delta net's tensors in checkpoints of Qwen's.
var deltaNames = names{
	"attn_qkv":   "*layers.#.linear_attn.in_proj_qkv",
	"attn_gate":  "*layers.#.linear_attn.in_proj_z",
	"ssm_in":     "*layers.#.linear_attn.in_proj_qkvz",
	"ssm_ba":     "*layers.#.linear_attn.in_proj_ba",
	"ssm_beta":   "*layers.#.linear_attn.in_proj_b",
	"ssm_alpha":  "*layers.#.linear_attn.in_proj_a",
	"ssm_conv1d": "*layers.#.linear_attn.conv1d",
	"ssm_a":      "*layers.#.linear_attn.A_log.",
	"ssm_dt":     "*layers.#.linear_attn.dt_bias.",
	"ssm_norm":   "*layers.#.linear_attn.norm",
	"ssm_out":    "*layers.#.linear_attn.out_proj",

	"ffn_gate_inp_shexp": "*layers.#.mlp.shared_expert_gate",
	"ffn_gate_shexp":     "*layers.#.mlp.shared_expert.gate_proj",
	"ffn_up_shexp":       "*layers.#.mlp.shared_expert.up_proj",
	"ffn_down_shexp":     "*layers.#.mlp.shared_expert.down_proj",
}

// deltaGGUF are the names in GGUF that are not the short ones.
var deltaGGUF = names{"ssm_a": "blk.#.ssm_a.", "ffn_norm": "blk.#.post_attention_norm"}

// deltaNet reads the numbers of delta nets. def has those that a checkpoint's file may lack. Value
// heads that share a key follow each other in checkpoints; def.Tiled says that they do not in GGUF.
func (s *Spec) deltaNet(c *config, def plan.DeltaAttr) {
	a := &s.Delta
	a.Beta, s.DeltaAct = 1, plan.SiLU
	if c.gguf {
		a.KeyHeads, a.Heads = c.integer("ssm.group_count", -1), c.integer("ssm.time_step_rank", -1)
		a.KeyDim, a.ValueDim = c.integer("ssm.state_size", -1), c.integer("ssm.inner_size", -1)/max(1, a.Heads)
		s.DeltaTaps, a.Tiled = c.integer("ssm.conv_kernel", -1), def.Tiled
	} else {
		a.KeyHeads, a.Heads = c.integer("linear_num_key_heads", cmp.Or(def.KeyHeads, -1)), c.integer("linear_num_value_heads", cmp.Or(def.Heads, -1))
		a.KeyDim, a.ValueDim = c.integer("linear_key_head_dim", cmp.Or(def.KeyDim, -1)), c.integer("linear_value_head_dim", cmp.Or(def.ValueDim, -1))
		s.DeltaTaps = c.integer("linear_conv_kernel_dim", -1)
		if s.Act != plan.SiLU {
			c.failf("%s is %v; delta nets are supported with silu", c.key("hidden_act"), s.Act)
		}
	}
	if a.Heads%max(1, a.KeyHeads) != 0 {
		c.failf("%d value heads cannot share %d keys of a delta net", a.Heads, a.KeyHeads)
	}
	if a.ValueDim < 1 {
		c.failf("%s leaves nothing for each of %d heads", c.key("ssm.inner_size"), a.Heads)
	}
	s.recurrent(c, 4)
}

// recurrent sets which layers have a delta net: those that the file says, or all but every nth.
func (s *Spec) recurrent(c *config, nth int) {
	s.Recurrent = make([]bool, min(max(s.Layers, 0), maxLayers))
	nth = c.integer("full_attention_interval", nth)
	for i := range s.Recurrent {
		s.Recurrent[i] = (i+1)%nth != 0
	}
	const listed = "attention.recurrent_layers"
	if flags, ok := c.m.Bools(c.key(listed)); c.gguf && ok {
		if len(flags) < len(s.Recurrent) {
			c.failf("%s has %d values for %d layers", c.key(listed), len(flags), len(s.Recurrent))
			return
		}
		copy(s.Recurrent, flags)
	}
	if c.gguf {
		return
	}
	if kinds := c.kinds("layer_types", s, "linear_attention", "full_attention"); kinds != nil {
		s.stateLayers(func(i int) bool { return kinds[i] == "linear_attention" })
	}
}

// hybrid is prenorm with a delta net, states, or attention with a gate in place of attention.
func hybrid(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	x = b.Add(x, b.Scale(mixed(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden)), s.ResidualScale))
	return b.Add(x, b.Scale(feedForward(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden)), s.ResidualScale))
}

// mixed returns what a layer's delta net, states or attention makes of x.
func mixed(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	switch {
	case s.States > 0:
		return mixer(b, s, w, x)
	case s.Recurrent[w.index]:
		return deltaNet(b, s, w, x)
	}
	return attention(b, s, w, x)
}

// deltaNet convolves queries, keys and values, applies the delta rule to them, normalizes each head
// of the result and multiplies it with a gate.
func deltaNet(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	a := s.Delta
	keys, values, shared := a.KeyHeads*a.KeyDim, a.Heads*a.ValueDim, a.Heads/a.KeyHeads
	var in []plan.Value // queries, keys, values and the gate
	switch {
	case w.has("attn_qkv"):
		in = append(split(b, w, x, "attn_qkv", without, keys, keys, values), linear(b, w, x, "attn_gate", values, without))
	case w.has("ssm_in"):
		in = splitHeads(b, w, x, "ssm_in", a.KeyHeads, a.KeyDim, a.KeyDim, shared*a.ValueDim, shared*a.ValueDim)
	default:
		in = []plan.Value{linear(b, w, x, "delta_q", keys, without), linear(b, w, x, "delta_k", keys, without), linear(b, w, x, "delta_v", values, without), narrowed(b, w, x, "attn_gate", "ssm_g", values)}
	}
	var beta, gate plan.Value
	if w.has("ssm_ba") {
		parts := splitHeads(b, w, x, "ssm_ba", a.KeyHeads, shared, shared)
		beta, gate = parts[0], parts[1]
	} else {
		beta, gate = linear(b, w, x, "ssm_beta", a.Heads, without), narrowed(b, w, x, "ssm_alpha", "ssm_f", a.Heads*a.Gates())
	}
	taps, at := w.taps(2*keys+values, s.DeltaTaps), 0
	for i, what := range []string{"q", "k", "v"} {
		n := b.Cols(in[i])
		state := b.State(plan.State{Name: fmt.Sprintf("conv.%s.%d", what, w.index), Kind: plan.PerSequence, Size: (s.DeltaTaps - 1) * n})
		in[i] = b.Activate(b.Conv(in[i], w.rows(taps, at, at+n), nil, state), plan.SiLU)
		at += n
	}
	matrices, rows := a.States()
	matrices.Name, rows.Name = fmt.Sprintf("delta.%d", w.index), fmt.Sprintf("delta.rows.%d", w.index)
	state := b.State(matrices)
	a.Rows = b.State(rows)
	y := b.Delta(in[0], in[1], in[2], beta, gate, w.rates(a.Heads), w.bias("ssm_dt", required), state, a)
	weight := w.weight("ssm_norm")
	if weight.Elems() != a.ValueDim {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d]", ErrTensor, weight.Name, weight.Shape, a.ValueDim))
	}
	y = b.GLU(in[3], b.RMSNorm(y, weight, cmp.Or(s.DeltaEps, s.Eps)), plan.GLUAttr{Act: s.DeltaAct})
	return linear(b, w, y, "ssm_out", s.Hidden, without)
}

// narrowed is the projection short, or if the file has none the product of two through a few
// columns, whose names begin with narrow.
func narrowed(b *plan.Builder, w layer, x plan.Value, short, narrow string, rows int) plan.Value {
	if w.has(short) || !w.has(narrow+"_a") {
		return linear(b, w, x, short, rows, without)
	}
	return linear(b, w, b.Linear(x, w.weight(narrow+"_a"), nil), narrow+"_b", rows, without)
}

// splitHeads returns the projections by the parts of a weight that is stored by head.
func splitHeads(b *plan.Builder, w layer, x plan.Value, short string, heads int, sizes ...int) []plan.Value {
	var parts []plan.Value
	for i := range sizes {
		weight, _ := w.partOfHeads(short, without, i, heads, sizes...)
		parts = append(parts, b.Linear(x, weight, nil))
	}
	return parts
}

// partOfHeads returns a part of a weight and a bias whose rows are stored by head: of each head first
// some rows of the first part, then some of the second, and so on.
func (l layer) partOfHeads(short string, biased bias, part, heads int, sizes ...int) (weight, bias *tensor.Tensor) {
	weight, bias = l.weight(short), l.bias(short, biased)
	total, unit, at := 0, 0, 0
	for i, n := range sizes {
		if total, unit = total+n, divisor(unit, n); i < part {
			at += n
		}
	}
	if len(weight.Shape) != 2 || weight.Shape[0] != heads*total || bias != nil && bias.Elems() != heads*total {
		l.b.Fail(fmt.Errorf("%w: %s has shape %v, want %d rows for %d heads with parts of %v", ErrTensor, weight.Name, weight.Shape, heads*total, heads, sizes))
	}
	var blocks []int
	for first, n := range sizes {
		before := 0
		for _, m := range sizes[:first] {
			before += m
		}
		for h := range heads {
			for i := range n / unit {
				blocks = append(blocks, (h*total+before)/unit+i)
			}
		}
	}
	weight, bias = l.inBlocks(weight, blocks, unit), l.inBlocks(bias, blocks, unit)
	lo, hi := at*heads, (at+sizes[part])*heads
	if bias != nil {
		bias = vectorSlice(bias, lo, hi)
	}
	return l.rows(weight, lo, hi), bias
}

// inBlocks returns t, which may be nil, with its blocks of size rows or elements in that order.
func (w *weights) inBlocks(t *tensor.Tensor, blocks []int, size int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	if w.made[t] == nil {
		other, err := reordered(t, blocks, size)
		if err != nil {
			w.b.Fail(err)
		}
		w.made[t] = other
	}
	return w.made[t]
}

// divisor returns the greatest common divisor.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// taps returns the weights [columns, n] of the convolutions of queries, keys and values, from one
// tensor or from several, one after the other.
func (l layer) taps(columns, n int) *tensor.Tensor {
	if l.has("ssm_conv1d") {
		t := *l.weight("ssm_conv1d")
		if t.Elems() != columns*n || t.Cols() != n {
			l.b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d %d]", ErrTensor, t.Name, t.Shape, columns, n))
		}
		t.Shape = []int{columns, n}
		return &t
	}
	var all []float32
	var name string
	for _, what := range []string{"q", "k", "v"} {
		t := l.weight("ssm_conv1d_" + what)
		values, err := t.Float32s()
		if err != nil {
			l.b.Fail(fmt.Errorf("%w: %w", ErrTensor, err))
		}
		if t.Cols() != n {
			l.b.Fail(fmt.Errorf("%w: %s has shape %v, want rows of %d", ErrTensor, t.Name, t.Shape, n))
		}
		if all = append(all, values...); name == "" {
			name = t.Name
		}
	}
	if len(all) != columns*n {
		l.b.Fail(fmt.Errorf("%w: %s and the two after it have %d rows, want %d", ErrTensor, name, len(all)/n, columns))
	}
	t := vectorOf(name+" and 2 more", all)
	t.Shape = []int{columns, n}
	return t
}

// rates returns the rates of n heads' gates. Checkpoints have the logarithm of their size.
func (l layer) rates(n int) *tensor.Tensor {
	t := l.weight("ssm_a")
	values, err := t.Float32s()
	if err != nil || len(values) != n {
		l.b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d]", ErrTensor, t.Name, t.Shape, n))
	}
	if l.hub {
		for i, v := range values {
			values[i] = -float32(math.Exp(float64(v)))
		}
	}
	if i := slices.IndexFunc(values, func(v float32) bool { return !(v <= 0 && v >= -math.MaxFloat32) }); i >= 0 {
		l.b.Fail(fmt.Errorf("%w: %s: the gate of head %d has the rate %v, want at most 0", ErrTensor, t.Name, i, values[i]))
	}
	return vectorOf(t.Name, values)
}
