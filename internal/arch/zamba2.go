package arch

import (
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Zamba2 (Glorioso et al., "The Zamba2 Suite: Technical Report", 2024): Mamba-2's layers. Before
// some of them comes one of a few blocks of attention and a feed-forward layer, which share their
// weights but for an adapter of each use. A block reads the stream beside the embeddings, and its
// projected result is added to what the layer's states read, not to the stream.
func init() {
	register(architecture{
		title: "Zamba2", about: "Mamba-2's layers, and blocks of attention that share weights, with an adapter for each use",
		hub: "Zamba2ForCausalLM", kind: "zamba2", adapt: zamba2, block: zamba2Block, ffn: 4,
		hubNames: dualNames("*layers.#.mamba.", zambaShared), layouts: stateLayouts,
		defaults: map[string]int{"num_hidden_layers": len(zambaPattern), "num_attention_heads": 32, "max_position_embeddings": 4096},
	})
}

// zambaShared are the names of tensors that all layers have alike.
var zambaShared = names{
	"output_norm": "*final_layernorm",
	"attn_norm":   "*layers.#.input_layernorm",
	"joined":      "*layers.#.linear",
	"joined_norm": "*layers.#.shared_transformer.input_layernorm",
	"attn_q":      "*layers.#.shared_transformer.self_attn.q_proj",
	"attn_k":      "*layers.#.shared_transformer.self_attn.k_proj",
	"attn_v":      "*layers.#.shared_transformer.self_attn.v_proj",
	"attn_output": "*layers.#.shared_transformer.self_attn.o_proj",
	"ffn_norm":    "*layers.#.shared_transformer.pre_ff_layernorm",
	"ffn_gate_up": "*layers.#.shared_transformer.feed_forward.gate_up_proj",
	"ffn_down":    "*layers.#.shared_transformer.feed_forward.down_proj",

	// The two products of adapters, by use.
	"attn_q.in":       "*layers.#.shared_transformer.self_attn.linear_q_adapter_list.@.0",
	"attn_q.out":      "*layers.#.shared_transformer.self_attn.linear_q_adapter_list.@.1",
	"attn_k.in":       "*layers.#.shared_transformer.self_attn.linear_k_adapter_list.@.0",
	"attn_k.out":      "*layers.#.shared_transformer.self_attn.linear_k_adapter_list.@.1",
	"attn_v.in":       "*layers.#.shared_transformer.self_attn.linear_v_adapter_list.@.0",
	"attn_v.out":      "*layers.#.shared_transformer.self_attn.linear_v_adapter_list.@.1",
	"ffn_gate_up.in":  "*layers.#.shared_transformer.feed_forward.gate_up_proj_adapter_list.@.0",
	"ffn_gate_up.out": "*layers.#.shared_transformer.feed_forward.gate_up_proj_adapter_list.@.1",
}

// zambaHybrid are the names in layers that a block precedes.
var zambaHybrid = func() names {
	all := dualNames("*layers.#.mamba_decoder.mamba.", zambaShared)
	all["attn_norm"] = "*layers.#.mamba_decoder.input_layernorm"
	return all
}()

// zambaPattern is transformers' value of a missing layers_block_type.
var zambaPattern = func() (kinds []string) {
	add := func(kind string, n int) { kinds = append(kinds, slices.Repeat([]string{kind}, n)...) }
	add("mamba", 1)
	for range 7 {
		add("mamba", 5)
		add("hybrid", 1)
	}
	for _, n := range []int{4, 3} {
		add("mamba", n)
		add("hybrid", 1)
	}
	add("mamba", 2)
	return kinds
}()

func zamba2(c *config, s *Spec) {
	c.only("use_long_context", false) // it changes the rotary frequencies
	s.epsilon(c, 1e-5)
	s.Act = c.activation("hidden_act", "gelu")
	s.HeadDim = c.integer("attention_head_dim", 2*s.Hidden/max(1, s.Heads))
	s.AttentionScale = 1 / math.Sqrt(float64(s.HeadDim)/2)
	if !c.flag("use_mem_rope", false) {
		s.positionless()
	}
	s.Inner = int(c.number("mamba_expand", 2) * float64(s.Hidden))
	s.States, s.Taps = c.integer("mamba_d_state", 64), c.integer("mamba_d_conv", 4)
	s.StateHeads, s.StateGroups = c.integer("n_mamba_heads", 8), c.integer("mamba_ngroups", 1)
	s.StepMin = c.number("time_step_min", 0.001)
	s.NormGroups, s.GateEps = s.StateGroups, 1e-5
	s.ConvBias, s.MLPBias = required, c.biasIf("add_bias_linear", false)
	s.projected(c, "add_bias_linear", false)

	kinds, ok := c.m.Strings("layers_block_type")
	if !ok {
		kinds = zambaPattern
	}
	if len(kinds) != s.Layers {
		c.failf("layers_block_type names %d layers of %d", len(kinds), s.Layers)
		return
	}
	for i, k := range kinds {
		switch k {
		case "mamba", "linear_attention":
		case "hybrid":
			s.Shared = append(s.Shared, i)
		default:
			c.failf("layers_block_type[%d] is %q, want %q or %q", i, k, "mamba", "hybrid")
		}
	}
	s.SharedBlocks = c.integer("num_mem_blocks", 1)
	s.Adapted = c.flag("use_shared_attention_adapter", false)
}

// zamba2Block is a layer of states, and the block before it.
func zamba2Block(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	in := x
	if use := slices.Index(s.Shared, w.index); use >= 0 {
		other := *w.weights
		other.names = zambaHybrid
		w = layer{&other, w.index}
		in = b.Add(x, linear(b, w, sharedBlock(b, s, w, x, use), "joined", s.Hidden, without))
	}
	return b.Add(x, dual(b, s, w, norm(b, s, w, in, "attn_norm", s.Hidden)))
}

// sharedBlock returns the result of the block that is used for the use-th time in layer w. Its
// weights are in that layer, or in the first one that uses the block.
func sharedBlock(b *plan.Builder, s *Spec, w layer, x plan.Value, use int) plan.Value {
	at := w
	if !at.has("joined_norm") {
		at.index = s.Shared[use%s.SharedBlocks]
	}
	h := norm(b, s, at, b.Concat(x, w.embedded), "joined_norm", 2*s.Hidden)
	adapted := func(x plan.Value, short string, has bool, biased bias, rows ...int) []plan.Value {
		parts := split(b, at, x, short, biased, rows...)
		if !has {
			return parts
		}
		low := b.Linear(x, at.adapter(short+".in", use), nil)
		out, from := at.adapter(short+".out", use), 0
		total := 0
		for _, n := range rows {
			total += n
		}
		if len(out.Shape) != 2 || out.Shape[0] != total {
			b.Fail(fmt.Errorf("%w: %s has shape %v, want %d rows", ErrTensor, out.Name, out.Shape, total))
		}
		for i, n := range rows {
			parts[i], from = b.Add(parts[i], b.Linear(low, at.rows(out, from, from+n), nil)), from+n
		}
		return parts
	}
	q := adapted(h, "attn_q", s.Adapted, without, s.Heads*s.HeadDim)[0]
	k := adapted(h, "attn_k", s.Adapted, without, s.KVHeads*s.HeadDim)[0]
	v := adapted(h, "attn_v", s.Adapted, without, s.KVHeads*s.HeadDim)[0]
	if r := s.ropeOf(w.index); r != nil {
		q, k = b.Rope(q, *r), b.Rope(k, *r)
	}
	state := b.State(plan.State{Name: fmt.Sprintf("kv.%d", w.index), Kind: plan.PerToken, KVHeads: s.KVHeads, HeadDim: s.HeadDim, ValueDim: s.HeadDim})
	y := b.Attention(q, k, v, nil, state, plan.AttentionAttr{Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, Scale: s.AttentionScale})
	h = norm(b, s, at, linear(b, at, y, "attn_output", s.Hidden, without), "ffn_norm", s.Hidden)
	parts := adapted(h, "ffn_gate_up", true, s.MLPBias, s.FFN, s.FFN)
	return linear(b, at, b.GLU(parts[0], parts[1], plan.GLUAttr{Act: s.Act}), "ffn_down", s.Hidden, s.MLPBias)
}

// adapter returns a weight of an adapter, by its use.
func (l layer) adapter(short string, use int) *tensor.Tensor {
	return l.named(l.numbered(short, ".weight", use))
}
