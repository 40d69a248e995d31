package arch_test

import (
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

const ofLayer = "model.layers.#."

// Configurations with missing keys, or with other ways to say the same.
func TestDenseVariants(t *testing.T) {
	largest := goldenModel(t, "gemma2-gguf").with(map[string]any{"block_count": 46}, nil)
	largest.tensors = expand(largest.tensors, "#", 46)
	tinyPrograms(t, []variant{
		{name: "two bases, nested", model: goldenModel(t, "gemma3").with(map[string]any{"rope_scaling": nil, "rope_theta": nil, "rope_parameters": map[string]any{
			"full_attention": map[string]any{"rope_type": "default", "rope_theta": 1e8}, "sliding_attention": map[string]any{"rope_type": "default"}}}, nil),
			has: []string{"freqs 1 to 0.001}", "freqs 1 to 1e-06}"}},
		{name: "a pattern by another name", model: goldenModel(t, "gemma3").with(map[string]any{"sliding_window_pattern": nil, "_sliding_window_pattern": 1}, nil), without: "window"},
		{name: "no window", model: goldenModel(t, "gemma3").with(map[string]any{"sliding_window": nil, "layer_types": []string{"full_attention", "full_attention"}}, nil), without: "window"},
		{name: "no window in GGUF", model: goldenModel(t, "gemma3-gguf").with(map[string]any{"attention.sliding_window": nil}, nil), without: "window"},
		{name: "a local base in GGUF", model: goldenModel(t, "gemma3-gguf").with(map[string]any{"rope.freq_base_swa": 1e8}, nil), has: []string{"freqs 1 to 1e-06}"}},
		{name: "the largest Gemma 2", model: largest, has: []string{"{heads 4/2, dim 8, scale 0.5, softcap 20, window 4096} @44", "{heads 4/2, dim 8, scale 0.5, softcap 20} @45"}},
		{name: "a window by default in GGUF", model: goldenModel(t, "gemma2-gguf"), has: []string{"scale 0.35355339, softcap 20, window 4096"}},
		{name: "capped by default", model: goldenModel(t, "gemma2"), has: []string{"softcap 50", "{softcap 30}"}},
		{name: "capped by nothing", model: nulls(goldenModel(t, "gemma2"), "attn_logit_softcapping", "final_logit_softcapping"), without: "softcap"},
		{name: "a gate by name", model: goldenModel(t, "gemma").with(map[string]any{"hidden_activation": "gelu"}, nil), has: []string{"{gelu}"}},
		{name: "a gate by null", model: nulls(goldenModel(t, "gemma"), "hidden_activation"), has: []string{"{gelu_tanh}"}},
		{name: "half of a head by default", model: goldenModel(t, "glm4"), has: []string{"{norm, dim 8, turned 4"}},
		{name: "positions of parts", model: goldenModel(t, "glm4-gguf").with(map[string]any{"rope.dimension_sections": []int32{1, 1, 0, 0}}, nil), has: []string{"{neox, dim 8, turned 4"}},
		{name: "positions everywhere without windows", model: nulls(goldenModel(t, "exaone4"), "sliding_window"), has: []string{"%22 [T 32] = rope"}, without: "window"},
		{name: "no positions without windows", model: nulls(goldenModel(t, "cohere2"), "sliding_window"), without: "rope"},
		{name: "no positions by GGUF's flag", model: goldenModel(t, "granite-gguf").with(map[string]any{"rope.scaling.finetuned": false}, nil), without: "rope"},
		{name: "no positions by interval", model: goldenModel(t, "smollm3").with(map[string]any{"no_rope_layers": nil, "no_rope_layer_interval": 1}, nil), without: "rope"},
		{name: "windows without positions", model: goldenModel(t, "smollm3").with(map[string]any{"use_sliding_window": true, "sliding_window": 5}, nil), has: []string{"window 5"}},
		{name: "windows that are not used", model: goldenModel(t, "smollm3").with(map[string]any{"sliding_window": 5}, nil), without: "window"},
		{name: "no scale of scores", model: goldenModel(t, "granite-gguf").with(map[string]any{"attention.scale": nil}, nil), has: []string{"scale 0.35355339"}},
		{name: "all multipliers are 1", model: goldenModel(t, "granite").with(map[string]any{
			"embedding_multiplier": nil, "attention_multiplier": nil, "residual_multiplier": nil, "logits_scaling": nil}, nil), has: []string{"dim 8, scale 1}"}, without: "map"},
		{name: "the class's former name", model: goldenModel(t, "ernie4-5").with(map[string]any{"architectures": []string{"Ernie4_5_ForCausalLM"}}, map[string][]int{"lm_head.weight": {32, 16}}), has: []string{"{norm, dim 8"}},
		{name: "yarn that is longrope", model: goldenModel(t, "phi3").with(map[string]any{"rope_scaling": map[string]any{
			"type": "yarn", "short_factor": []float64{1, 1, 1, 1}, "long_factor": []float64{2, 2, 2, 2}}}, nil), has: []string{"beyond 16"}},
		{name: "another activation", model: goldenModel(t, "arcee").with(map[string]any{"hidden_act": "gelu"}, nil), has: []string{"{gelu}"}},
		{name: "an activation by default", model: goldenModel(t, "arcee").with(map[string]any{"hidden_act": nil}, nil), has: []string{"{relu2}"}},
		{name: "another activation than xIELU", model: goldenModel(t, "apertus").with(map[string]any{"hidden_act": "relu2"}, map[string][]int{
			ofLayer + "mlp.act_fn.alpha_n": nil, ofLayer + "mlp.act_fn.alpha_p": nil, ofLayer + "mlp.act_fn.beta": nil, ofLayer + "mlp.act_fn.eps": nil}),
			has: []string{"{relu2}"}, without: "xielu"},
		{name: "queries that do not grow", model: goldenModel(t, "ministral3-gguf").with(map[string]any{"attention.temperature_scale": nil}, nil), without: "position"},
		{name: "queries that grow with a window", model: goldenModel(t, "ministral3").with(map[string]any{"sliding_window": 5, "rope_parameters": nil, "rope_theta": 1e6, "rope_scaling": map[string]any{
			"type": "yarn", "factor": 2.0, "llama_4_scaling_beta": 0.2, "original_max_position_embeddings": 32}}, nil), has: []string{"position factors", "window 5"}},
		{name: "queries that grow in a context too long for a table", model: goldenModel(t, "llama4-text").with(map[string]any{"max_position_embeddings": 10 << 20}, nil),
			has: []string{"temper"}, without: "factors"},
	})
}

// A variant is a model, parts that its program has, and one that it has not.
type variant struct {
	name    string
	model   tiny
	has     []string
	without string
}

func tinyPrograms(t *testing.T, cases []variant) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, err := buildFile(t, c.model.write(t))
			if err != nil {
				t.Fatal(err)
			}
			text := m.Program.String()
			for _, want := range c.has {
				if !strings.Contains(text, want) {
					t.Errorf("the program lacks %q:\n%s", want, text)
				}
			}
			if c.without != "" && strings.Contains(text, c.without) {
				t.Errorf("the program has %q:\n%s", c.without, text)
			}
		})
	}
}

// A configuration may bound the context below the model's own.
func TestContextBesideBound(t *testing.T) {
	m, err := buildFile(t, goldenModel(t, "cohere").with(map[string]any{"model_max_length": 1000}, nil).write(t))
	if err != nil {
		t.Fatal(err)
	}
	if m.Spec.Context != 1000 {
		t.Errorf("a context of %d, want 1000", m.Spec.Context)
	}
}

// nulls returns the model with null for keys.
func nulls(m tiny, keys ...string) tiny {
	m = m.with(nil, nil)
	for _, key := range keys {
		m.config[key] = nil
	}
	return m
}

func TestDenseErrors(t *testing.T) {
	with := func(name string, config map[string]any) tiny { return goldenModel(t, name).with(config, nil) }
	without := func(name, tensor string) tiny { return goldenModel(t, name).with(nil, map[string][]int{tensor: nil}) }
	shaped := func(name, tensor string, shape ...int) tiny {
		return goldenModel(t, name).with(nil, map[string][]int{tensor: shape})
	}
	tinyErrors(t, []refusal{
		{"a norm after attention", without("gemma2", ofLayer+"post_attention_layernorm.weight"), arch.ErrTensor, "model.layers.0.post_attention_layernorm.weight is missing"},
		{"a norm after all", without("olmo2-gguf", "blk.#.post_ffw_norm.weight"), arch.ErrTensor, "blk.0.post_ffw_norm.weight is missing"},
		{"a norm of queries", without("hunyuan", ofLayer+"self_attn.query_layernorm.weight"), arch.ErrTensor, "model.layers.0.self_attn.query_layernorm.weight is missing"},
		{"a norm by head", without("cohere", ofLayer+"self_attn.k_norm.weight"), arch.ErrTensor, "model.layers.0.self_attn.k_norm.weight is missing"},
		{"norms that are not used", with("cohere", map[string]any{"use_qk_norm": nil}), arch.ErrTensor, "does not use "},
		{"a fused weight", without("phi3", ofLayer+"self_attn.qkv_proj.weight"), arch.ErrTensor, "q_proj.weight is missing"},
		{"a bias", without("seed-oss", ofLayer+"self_attn.k_proj.bias"), arch.ErrTensor, "model.layers.0.self_attn.k_proj.bias is missing"},
		{"a bias by a flag", with("seed-oss", map[string]any{"attention_out_bias": true}), arch.ErrTensor, "model.layers.0.self_attn.o_proj.bias is missing"},
		{"every bias by a flag", with("ernie4-5", map[string]any{"use_bias": true}), arch.ErrTensor, "model.layers.0.self_attn.q_proj.bias is missing"},
		{"a bias that is not used", with("glm4", map[string]any{"attention_bias": false}), arch.ErrTensor, "does not use "},
		{"norms by head for norms of all", shaped("olmo2", ofLayer+"self_attn.q_norm.weight", 8), arch.ErrTensor, "model.layers.0.self_attn.q_norm.weight has shape [8], want [32]"},
		{"norms of all for norms by head", shaped("exaone4-gguf", "blk.#.attn_k_norm.weight", 16), arch.ErrTensor, "blk.0.attn_k_norm.weight has shape [16], want [8]"},
		{"norms of too few heads", shaped("cohere-gguf", "blk.#.attn_q_norm.weight", 2, 8), nil, "blk.0.attn_q_norm.weight"},
		{"a fused weight's rows", shaped("phi3-gguf", "blk.#.attn_qkv.weight", 48, 16), arch.ErrTensor, "blk.0.attn_qkv.weight has shape [48 16], want 64 rows"},
		{"gate and up", shaped("glm4", ofLayer+"mlp.gate_up_proj.weight", 24, 16), arch.ErrTensor, "model.layers.0.mlp.gate_up_proj.weight has shape [24 16], want 48 rows"},

		{"bidirectional", with("gemma3", map[string]any{"use_bidirectional_attention": true}), arch.ErrConfig, "use_bidirectional_attention is true"},
		{"a softcap of scores", with("gemma3", map[string]any{"attn_logit_softcapping": 50.0}), arch.ErrConfig, "attn_logit_softcapping is 50"},
		{"an activation", with("gemma2", map[string]any{"hidden_activation": "gelu_slow"}), arch.ErrConfig, `hidden_activation is "gelu_slow"; the nearest known are "gelu_new"`},
		{"layer types of too few", with("olmo3", map[string]any{"layer_types": []string{"full_attention"}}), arch.ErrConfig, "layer_types names 1 layers of 2"},
		{"a layer's type", with("cohere2", map[string]any{"layer_types": []string{"full_attention", "chunked_attention"}}), arch.ErrConfig, `layer_types[1] is "chunked_attention"`},
		{"a pattern in letters", with("exaone4", map[string]any{"sliding_window_pattern": "LG"}), arch.ErrConfig, "sliding_window_pattern is of type string, want one integer"},
		{"a pattern of too few", with("exaone4-gguf", map[string]any{"attention.sliding_window_pattern": []bool{true}}), arch.ErrConfig, "exaone4.attention.sliding_window_pattern has 1 values for 2 layers"},
		{"a window", with("phi3", map[string]any{"sliding_window": -1}), arch.ErrConfig, "sliding_window is -1"},
		{"layers with positions of too few", with("smollm3", map[string]any{"no_rope_layers": []int{1}}), arch.ErrConfig, "no_rope_layers has 1 numbers for 2 layers"},
		{"a multiplier", with("granite", map[string]any{"residual_multiplier": -0.5}), arch.ErrConfig, "residual_multiplier is -0.5, want a positive number"},
		{"a divisor", with("granite-gguf", map[string]any{"logit_scale": nil}), arch.ErrConfig, "granite.logit_scale is missing"},
		{"a parameter of xIELU", without("apertus", ofLayer+"mlp.act_fn.beta"), arch.ErrTensor, "model.layers.0.mlp.act_fn.beta is missing"},
		{"parameters of xIELU", shaped("apertus", ofLayer+"mlp.act_fn.beta", 2), arch.ErrTensor, "model.layers.0.mlp.act_fn.beta has shape [2], want one number"},
		{"parameters of xIELU of too few", with("apertus-gguf", map[string]any{"xielu.beta": []float32{0.5}}), arch.ErrConfig, "xielu.beta: want a list of 2 numbers, is 1"},
		{"xIELU with a gate", with("llama-hub", map[string]any{"hidden_act": "xielu"}), arch.ErrConfig, `hidden_act is "xielu"; this architecture has feed-forward layers with a gate`},
		{"no frequencies", with("apertus", map[string]any{"rope_scaling": nil, "rope_theta": nil}), arch.ErrConfig, "rope_parameters, rope_scaling and rope_theta are missing"},
		{"no frequencies of growing queries", with("ministral3", map[string]any{"rope_parameters": nil}), arch.ErrConfig, "both rope_parameters and rope_scaling are missing"},
		{"growth", with("ministral3-gguf", map[string]any{"attention.temperature_scale": -1.0}), arch.ErrConfig, "mistral3.attention.temperature_scale is -1"},
		{"a base", with("hunyuan", map[string]any{"rope_scaling": map[string]any{"type": "dynamic", "alpha": -2.0}}), arch.ErrConfig, "rope_scaling.alpha is -2"},
	})
}
