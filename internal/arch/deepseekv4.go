package arch

import (
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// DeepSeek-V4 (DeepSeek-AI, "DeepSeek-V4", 2026): a residual of several streams, collapsed for each
// part of a layer and spread by it (hyper-connections). Attention has keys of one head, which are
// also the values, and sinks; it sees a window and, beyond it, rows that are made of several tokens
// each: all of them, or those that an indexer chooses. Its result is turned back and projected in
// groups of heads. Experts are chosen by the root of a softplus and a bias, in the first layers by
// token. The layers that predict further tokens are omitted.
func init() {
	register(architecture{
		title: "DeepSeek-V4", about: "hyper-connections; attention to a window and to compressed rows, of which an indexer may choose; experts by the root of softplus with a bias to choose by, in the first layers by token, and shared ones",
		gguf: "deepseek4", hub: "DeepseekV4ForCausalLM", kind: "deepseek_v4", adapt: deepseekV4, block: deepseekV4Layer,
		keys:     map[string]string{"intermediate_size": "moe_intermediate_size", "rope_theta": "compress_rope_theta", "local_rope_theta": "rope_theta"},
		ggufKeys: deepseekV4Keys,
		defaults: map[string]int{"head_dim": 512, "num_key_value_heads": 1, "sliding_window": 128},
		hubNames: deepseekV4Names,
	})
}

// deepseekV4Names are the names in DeepSeek's files, and, where they differ, in those of transformers.
var deepseekV4Names = names{
	"token_embd":      "*embed|*embed_tokens",
	"output":          "head",
	"output_hc_fn":    "*hc_head_fn.|*hc_head.hc_fn.",
	"output_hc_base":  "*hc_head_base.|*hc_head.hc_base.",
	"output_hc_scale": "*hc_head_scale.|*hc_head.hc_scale.",

	"attn_norm":     "*layers.#.attn_norm",
	"ffn_norm":      "*layers.#.ffn_norm",
	"attn_q_a":      "*layers.#.attn.wq_a",
	"attn_q_b":      "*layers.#.attn.wq_b",
	"attn_kv":       "*layers.#.attn.wkv",
	"attn_output_a": "*layers.#.attn.wo_a",
	"attn_output_b": "*layers.#.attn.wo_b",
	"attn_sinks":    "*layers.#.attn.attn_sink.",

	"attn_q_a_norm":  "*layers.#.attn.q_norm",
	"attn_kv_a_norm": "*layers.#.attn.kv_norm|*layers.#.attn.norm",

	"attn_compressor_ape":  "*layers.#.attn.compressor.ape.",
	"attn_compressor_norm": "*layers.#.attn.compressor.norm",
	"attn_compressor_gate": "*layers.#.attn.compressor.wgate",
	"attn_compressor_kv":   "*layers.#.attn.compressor.wkv",

	"indexer_compressor_ape":  "*layers.#.attn.indexer.compressor.ape.",
	"indexer_compressor_norm": "*layers.#.attn.indexer.compressor.norm",
	"indexer_compressor_gate": "*layers.#.attn.indexer.compressor.wgate",
	"indexer_compressor_kv":   "*layers.#.attn.indexer.compressor.wkv",

	"indexer.attn_q_b": "*layers.#.attn.indexer.wq_b",
	"indexer.proj":     "*layers.#.attn.indexer.weights_proj",

	"hc_attn_fn":    "*layers.#.hc_attn_fn.",
	"hc_attn_base":  "*layers.#.hc_attn_base.",
	"hc_attn_scale": "*layers.#.hc_attn_scale.",
	"hc_ffn_fn":     "*layers.#.hc_ffn_fn.",
	"hc_ffn_base":   "*layers.#.hc_ffn_base.",
	"hc_ffn_scale":  "*layers.#.hc_ffn_scale.",

	"ffn_gate_inp":     "*layers.#.ffn.gate",
	"exp_probs_b":      "*layers.#.ffn.gate.bias.",
	"ffn_gate_tid2eid": "*layers.#.ffn.gate.tid2eid.",
	"ffn_gate_exp":     "*layers.#.ffn.experts.@.w1",
	"ffn_up_exp":       "*layers.#.ffn.experts.@.w3",
	"ffn_down_exp":     "*layers.#.ffn.experts.@.w2",
	"ffn_gate_shexp":   "*layers.#.ffn.shared_experts.w1",
	"ffn_up_shexp":     "*layers.#.ffn.shared_experts.w3",
	"ffn_down_shexp":   "*layers.#.ffn.shared_experts.w2",
}

// deepseekV4Keys are the keys of GGUF. Its base of rotary positions is that of layers that see a window
// alone.
var deepseekV4Keys = map[string]string{
	"sliding_window":    "attention.sliding_window",
	"q_lora_rank":       "attention.q_lora_rank",
	"o_groups":          "attention.output_group_count",
	"o_lora_rank":       "attention.output_lora_rank",
	"index_n_heads":     "attention.indexer.head_count",
	"index_head_dim":    "attention.indexer.key_length",
	"index_topk":        "attention.indexer.top_k",
	"compress_ratios":   "attention.compress_ratios",
	"hc_mult":           "hyper_connection.count",
	"hc_sinkhorn_iters": "hyper_connection.sinkhorn_iterations",
	"hc_eps":            "hyper_connection.epsilon",
	"qk_rope_head_dim":  "rope.dimension_count",
	"num_hash_layers":   "hash_layer_count",
	"swiglu_limit":      "swiglu_clamp_exp",
	"local_rope_theta":  "rope.freq_base",
	"rope.freq_base":    "attention.compress_rope_freq_base",
}

// Compressed holds the numbers of compressed attention.
type Compressed struct {
	Rates     []int  // by layer: tokens that a compressed row is made of; 0: attention has a window alone
	Chosen    []bool // by layer: an indexer chooses rows, which overlap
	Window    int    // tokens that attention sees beside
	QueryRank int    // length of the row that queries are computed from
	Groups    int    // groups of heads that are projected apart
	GroupRank int    // length of a group's projection
	Index     Indexer
	Given     []bool // by layer: a table has the experts of each token
	Unscaled  bool   // YaRN's magnitude does not count
}

func deepseekV4(c *config, s *Spec) {
	x := &Compressed{
		Window: c.integer("sliding_window", -1), QueryRank: c.integer("q_lora_rank", 1024),
		Groups: c.integer("o_groups", 8), GroupRank: c.integer("o_lora_rank", 1024),
		Index: Indexer{Heads: c.integer("index_n_heads", 64), HeadDim: c.integer("index_head_dim", 128), Top: c.chosen("index_topk", 512)},
	}
	s.Compressed, s.Sinks, s.QKVBias, s.OutBias, s.MLPBias = x, true, without, without, without
	for _, key := range []string{"attention_bias", "mlp_bias"} {
		c.only(key, false)
	}
	s.Hyper = plan.ConnectAttr{Streams: c.integer("hc_mult", 4), Iterations: c.integer("hc_sinkhorn_iters", 20), Eps: c.number("hc_eps", 1e-6)}
	s.AttentionScale = 1 / math.Sqrt(float64(s.HeadDim))
	turned := float64(c.integer("qk_rope_head_dim", 0))
	if !c.has("qk_rope_head_dim") {
		turned = float64(s.HeadDim) / 8
	}
	s.Partial = turned / float64(max(1, s.HeadDim))
	s.Rope.Interleaved, s.RopeParts = true, [2]string{"compress", "main"}
	if s.RopeBase = 160000; !c.hasAny("rope_parameters.compress.") {
		x.Unscaled = !c.has(c.ropeKeys() + "attention_factor")
		s.LocalBase = c.number("local_rope_theta", 10000)
	}
	if s.Predicting = c.first("num_nextn_predict_layers", 1); c.gguf {
		s.predicting(c)
	}
	x.layers(c, s)
	s.mixture(c, Mixture{
		Experts: 256, ExpertFFN: 2048, ChoiceBias: required, Always: true,
		Route:     plan.RouteAttr{Used: 6, Score: plan.SqrtSoftplus, Scale: 1.5},
		ExpertGLU: plan.GLUAttr{Act: s.Act, Limit: c.gateLimit()},
	})
	s.Route.Normalize, s.SharedFFN = true, s.ExpertFFN // as in transformers, whatever norm_topk_prob and n_shared_experts say
	if s.Heads%x.Groups != 0 {
		c.failf("o_groups is %d, which does not divide %d heads", x.Groups, s.Heads)
	}
	if s.KVHeads != 1 {
		c.failf("num_key_value_heads is %d; supported is 1", s.KVHeads)
	}
	if int(turned) > x.Index.HeadDim {
		c.failf("heads of the indexer have %d elements, of which %v are rotated", x.Index.HeadDim, turned)
	}
}

// gateLimit returns the limit of the experts' gates, which is the same in all layers and for the shared
// expert.
func (c *config) gateLimit() float64 {
	const key, shared = "swiglu_limit", "swiglu_clamp_shexp"
	limit, all := 0.0, []float64(nil)
	for _, k := range []string{c.key(key), c.key(shared)} {
		list, listed := c.m.Floats(k)
		if all = append(all, list...); !listed {
			continue
		}
		if limit = all[0]; slices.ContainsFunc(all, func(v float64) bool { return v != limit || !positive(v) }) {
			c.failf("%s and %s: limits of %v; supported is one positive limit for all layers", c.key(key), c.key(shared), slices.Compact(all))
		}
	}
	if len(all) > 0 {
		return limit
	}
	return c.number(key, 10)
}

// layers reads the kinds of layers.
func (x *Compressed) layers(c *config, s *Spec) {
	const sliding, sparse, heavy = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
	rates := map[string]int{
		sliding: 0, sparse: c.integer("compress_rates."+sparse, c.integer("compress_rate_csa", 4)),
		heavy: c.integer("compress_rates."+heavy, c.integer("compress_rate_hca", 128)),
	}
	n := min(s.Layers, maxLayers)
	kinds, ok := c.m.Strings("layer_types")
	if ratios, listed := c.m.Ints(c.key("compress_ratios")); !ok && listed {
		for _, r := range ratios {
			kind, known := map[int64]string{0: sliding, 4: sparse, 128: heavy}[r]
			if !known {
				c.failf("%s has %d; supported are 0, 4 and 128", c.key("compress_ratios"), r)
			}
			kinds = append(kinds, kind)
		}
	} else if !ok {
		for i := range n {
			kinds = append(kinds, heavy)
			if i >= 2 && i%2 == 1 {
				kinds[i] = sparse
			}
		}
	}
	mlps, ok := c.m.Strings("mlp_layer_types")
	if hashed := c.first("num_hash_layers", 3); !ok {
		for i := range n {
			mlps = append(mlps, "moe")
			if i < hashed {
				mlps[i] = "hash_moe"
			}
		}
	}
	if len(kinds) < n || len(mlps) < n {
		c.failf("layer_types names %d layers and mlp_layer_types %d, of %d", len(kinds), len(mlps), n)
		return
	}
	s.Windows = make([]int, n)
	for i := range n {
		rate, known := rates[kinds[i]]
		if !known {
			c.failf("layer_types[%d] is %q, want %q, %q or %q", i, kinds[i], sliding, sparse, heavy)
		}
		if mlps[i] != "moe" && mlps[i] != "hash_moe" {
			c.failf("mlp_layer_types[%d] is %q, want %q or %q", i, mlps[i], "moe", "hash_moe")
		}
		x.Rates, x.Chosen, x.Given = append(x.Rates, rate), append(x.Chosen, kinds[i] == sparse), append(x.Given, mlps[i] == "hash_moe")
		if rate == 0 {
			s.Windows[i] = x.Window
		}
	}
}

func deepseekV4Layer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if w.index == 0 {
		w.streams = slices.Repeat([]plan.Value{x}, s.Hyper.Streams)
	}
	connected(b, s, w, "hc_attn", func(x plan.Value) plan.Value {
		return compressedAttention(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden))
	})
	connected(b, s, w, "hc_ffn", func(x plan.Value) plan.Value {
		return limitedExperts(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden))
	})
	if w.index < s.Layers-1 {
		return w.streams[0]
	}
	last := s.Hyper
	last.Last = true
	return b.Mix(coefficients(b, s, layer{w.weights, noLayer}, "output_hc", last), 0, w.streams...)
}

// coefficients returns those of the streams' hyper-connections.
func coefficients(b *plan.Builder, s *Spec, w layer, short string, a plan.ConnectAttr) plan.Value {
	all := w.streams[0]
	for _, x := range w.streams[1:] {
		all = b.Concat(all, x)
	}
	all = b.RMSNorm(all, ones(b.Cols(all)), s.Eps)
	return b.Connect(linear(b, w, all, short+"_fn", a.Columns(), without), w.weight(short+"_scale"), w.weight(short+"_base"), a)
}

// connected replaces the streams by those after part f of a layer.
func connected(b *plan.Builder, s *Spec, w layer, short string, f func(x plan.Value) plan.Value) {
	c := coefficients(b, s, w, short, s.Hyper)
	y := f(b.Mix(c, 0, w.streams...))
	var after []plan.Value
	for k := range w.streams {
		after = append(after, b.Mix(c, s.Hyper.Of(k), append([]plan.Value{y}, w.streams...)...))
	}
	w.streams = after
}

// compressedAttention is a layer's attention to a window and to compressed rows.
func compressedAttention(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	l := s.Compressed
	rate, turn := l.Rates[w.index], *s.ropeOf(w.index)
	if rate > 0 && l.Unscaled {
		turn.Scale = 1
	}
	turn.First = s.HeadDim - turn.Dims
	from := norm(b, s, w, linear(b, w, x, "attn_q_a", l.QueryRank, without), "attn_q_a_norm", l.QueryRank)
	q := b.Rope(b.RMSNorm(linear(b, w, from, "attn_q_b", s.Heads*s.HeadDim, without), ones(s.HeadDim), s.Eps), turn)
	kv := b.Rope(norm(b, s, w, linear(b, w, x, "attn_kv", s.HeadDim, without), "attn_kv_a_norm", s.HeadDim), turn)

	a := plan.AttentionAttr{Heads: s.Heads, KVHeads: 1, HeadDim: s.HeadDim, Window: l.Window, Scale: s.AttentionScale, Rate: rate}
	state := b.State(plan.State{Name: fmt.Sprintf("kv.%d", w.index), Kind: plan.PerToken, KVHeads: 1, HeadDim: s.HeadDim, Window: l.Window})
	var y plan.Value
	if rate == 0 {
		y = b.SharedAttention(q, kv, w.sinks(s), state, a)
	} else {
		far := compressed(b, s, w, x, "attn_compressor", s.HeadDim, turn)
		a.Compressed = b.State(plan.State{Name: fmt.Sprintf("far.%d", w.index), Kind: plan.PerToken, KVHeads: 1, HeadDim: s.HeadDim, Every: rate})
		var chosen []plan.Value
		if l.Chosen[w.index] {
			a.Top = l.Index.Top
			chosen = []plan.Value{compressedChoice(b, s, w, x, from, turn)}
		}
		y = b.CompressedAttention(q, kv, far, w.sinks(s), state, a, chosen...)
	}
	turn.Freqs = slices.Clone(turn.Freqs)
	for i := range turn.Freqs {
		turn.Freqs[i] = -turn.Freqs[i]
	}
	groups := w.byHead("attn_output_a", l.Groups, l.GroupRank, s.Heads/l.Groups*s.HeadDim)
	return linear(b, w, b.HeadLinear(b.Rope(y, turn), groups), "attn_output_b", s.Hidden, without)
}

// compressed returns rows of dim elements, each made of several tokens and turned by the position of
// the first of its window.
func compressed(b *plan.Builder, s *Spec, w layer, x plan.Value, short string, dim int, turn plan.RopeAttr) plan.Value {
	a, cols := plan.CompressAttr{Rate: s.Compressed.Rates[w.index], Overlap: s.Compressed.Chosen[w.index]}, dim
	if a.Overlap {
		cols = 2 * dim
	}
	state := a.State(cols)
	state.Name = fmt.Sprintf("%s.%d", short, w.index)
	kv, gate := linear(b, w, x, short+"_kv", cols, without), linear(b, w, x, short+"_gate", cols, without)
	y := norm(b, s, w, b.Compress(kv, gate, w.weight(short+"_ape"), b.State(state), a), short+"_norm", dim)
	turn.HeadDim, turn.First, turn.Shift = dim, dim-turn.Dims, 1-a.Rate
	return b.Rope(y, turn)
}

// compressedChoice returns the compressed rows that a layer attends to. from are the rows that
// queries are computed from.
func compressedChoice(b *plan.Builder, s *Spec, w layer, x, from plan.Value, turn plan.RopeAttr) plan.Value {
	l := s.Compressed.Index
	k := compressed(b, s, w, x, "indexer_compressor", l.HeadDim, turn)
	turn.HeadDim, turn.First = l.HeadDim, l.HeadDim-turn.Dims
	q := b.Rope(linear(b, w, from, "indexer.attn_q_b", l.Heads*l.HeadDim, without), turn)
	a := plan.SelectAttr{Heads: l.Heads, HeadDim: l.HeadDim, Top: l.Top, Every: s.Compressed.Rates[w.index]}
	state := b.State(plan.State{Name: fmt.Sprintf("index.%d", w.index), Kind: plan.PerToken, KVHeads: 1, HeadDim: l.HeadDim, Every: a.Every})
	return b.Select(q, k, linear(b, w, x, "indexer.proj", l.Heads, without), state, a)
}

// limitedExperts are a layer's experts and shared expert, whose gates are limited. A table may have
// the experts of each token.
func limitedExperts(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	logits := linear(b, w, x, "ffn_gate_inp", s.Experts, without)
	var y plan.Value
	if s.Compressed.Given[w.index] {
		a := plan.ExpertsAttr{Route: s.Route, GLU: s.ExpertGLU}
		a.Gate, a.Up, _, _ = w.gates(s)
		a.Down = w.matrices("ffn_down", s.Experts, s.Hidden, s.ExpertFFN)
		y = b.GivenExperts(x, logits, b.EmbedPart(w.expertTable(s), 0, s.Route.Used), a)
	} else {
		y = routed(b, s, w, x, logits, nil)
	}
	gate, up := linear(b, w, x, "ffn_gate_shexp", s.SharedFFN, without), linear(b, w, x, "ffn_up_shexp", s.SharedFFN, without)
	return b.Add(y, linear(b, w, b.GLU(gate, up, s.ExpertGLU), "ffn_down_shexp", s.Hidden, without))
}

// expertTable returns the numbers of each token's experts as float32.
func (l layer) expertTable(s *Spec) *tensor.Tensor {
	t := l.weight("ffn_gate_tid2eid")
	values, err := t.Float32s()
	if err != nil || len(t.Shape) != 2 || t.Shape[1] != s.Route.Used {
		l.b.Fail(fmt.Errorf("%w: %s is %v of shape %v, want %d numbers for each token", ErrTensor, t.Name, t.DType, t.Shape, s.Route.Used))
	}
	for i, v := range values {
		if !(v >= 0 && v < float32(s.Experts) && v == float32(int(v))) {
			l.b.Fail(fmt.Errorf("%w: %s has expert %v for token %d, want 0 to %d", ErrTensor, t.Name, v, i/s.Route.Used, s.Experts-1))
		}
	}
	table := vectorOf(t.Name, values)
	table.Shape = t.Shape
	return table
}
