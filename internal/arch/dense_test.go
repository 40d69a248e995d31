package arch_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// dense is a decoder in LLaMA's shape: 4 query and 2 key/value heads of 8.
func dense(name string, gguf bool) tiny {
	if gguf {
		return tiny{gguf: true, config: map[string]any{
			"general.architecture": name, "block_count": 2, "embedding_length": 16, "feed_forward_length": 24, "context_length": 64,
			"attention.head_count": 4, "attention.head_count_kv": 2, "attention.key_length": 8, "attention.value_length": 8,
			"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1000.0,
		}, tensors: map[string][]int{
			"token_embd.weight": {32, 16}, "output_norm.weight": {16}, "output.weight": {32, 16},
			"blk.#.attn_norm.weight": {16}, "blk.#.ffn_norm.weight": {16},
			"blk.#.attn_q.weight": {32, 16}, "blk.#.attn_k.weight": {16, 16}, "blk.#.attn_v.weight": {16, 16}, "blk.#.attn_output.weight": {16, 32},
			"blk.#.ffn_gate.weight": {24, 16}, "blk.#.ffn_up.weight": {24, 16}, "blk.#.ffn_down.weight": {16, 24},
		}}
	}
	return tiny{config: map[string]any{
		"architectures": []string{name}, "num_hidden_layers": 2, "hidden_size": 16, "intermediate_size": 24, "max_position_embeddings": 64,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rope_theta": 1000.0,
	}, tensors: map[string][]int{
		"model.embed_tokens.weight": {32, 16}, "model.norm.weight": {16}, "lm_head.weight": {32, 16},
		"model.layers.#.input_layernorm.weight": {16}, "model.layers.#.post_attention_layernorm.weight": {16},
		"model.layers.#.self_attn.q_proj.weight": {32, 16}, "model.layers.#.self_attn.k_proj.weight": {16, 16},
		"model.layers.#.self_attn.v_proj.weight": {16, 16}, "model.layers.#.self_attn.o_proj.weight": {16, 32},
		"model.layers.#.mlp.gate_proj.weight": {24, 16}, "model.layers.#.mlp.up_proj.weight": {24, 16}, "model.layers.#.mlp.down_proj.weight": {16, 24},
	}}
}

// shapes are tensors of every layer, by what is the same for a kind of file.
func shapes(prefix, suffix string, all map[string][]int) map[string][]int {
	named := map[string][]int{}
	for name, shape := range all {
		named[prefix+name+suffix] = shape
	}
	return named
}

// both joins shapes.
func both(a, b map[string][]int) map[string][]int {
	a = maps.Clone(a)
	maps.Copy(a, b)
	return a
}

const ofLayer = "model.layers.#."

// What differs from LLaMA's shape, by what architectures share.
var (
	hubTied      = map[string][]int{"lm_head.weight": nil}
	ggufTied     = map[string][]int{"output.weight": nil}
	hubHeadNorms = shapes(ofLayer+"self_attn.", "_norm.weight", map[string][]int{"q": {8}, "k": {8}})
	headNorms    = shapes("blk.#.attn_", "_norm.weight", map[string][]int{"q": {8}, "k": {8}})
	hubQKVBias   = shapes(ofLayer+"self_attn.", "_proj.bias", map[string][]int{"q": {32}, "k": {16}, "v": {16}})
	qkvBias      = shapes("blk.#.attn_", ".bias", map[string][]int{"q": {32}, "k": {16}, "v": {16}})
	hubSandwich  = shapes(ofLayer, "_feedforward_layernorm.weight", map[string][]int{"pre": {16}, "post": {16}})
	ggufSandwich = shapes("blk.#.post_", "_norm.weight", map[string][]int{"attention": {16}, "ffw": {16}})
	hubPostnorm  = both(shapes(ofLayer, "_layernorm.weight", map[string][]int{"input": nil, "post_feedforward": {16}}), hubWidthNorms)
	ggufPostnorm = both(both(shapes("blk.#.", "_norm.weight", map[string][]int{"attn": nil, "ffn": nil}), ggufSandwich), ggufWidthNorms)

	hubWidthNorms  = shapes(ofLayer+"self_attn.", "_norm.weight", map[string][]int{"q": {32}, "k": {16}})
	ggufWidthNorms = shapes("blk.#.attn_", "_norm.weight", map[string][]int{"q": {32}, "k": {16}})
	hubFused       = shapes(ofLayer, ".weight", map[string][]int{
		"self_attn.q_proj": nil, "self_attn.k_proj": nil, "self_attn.v_proj": nil, "self_attn.qkv_proj": {64, 16},
		"mlp.gate_proj": nil, "mlp.up_proj": nil, "mlp.gate_up_proj": {48, 16},
	})
	ggufFused = shapes("blk.#.", ".weight", map[string][]int{
		"attn_q": nil, "attn_k": nil, "attn_v": nil, "attn_qkv": {64, 16}, "ffn_gate": nil, "ffn_up": {48, 16},
	})
	ggufLayerNorm = map[string]any{"attention.layer_norm_rms_epsilon": nil, "attention.layer_norm_epsilon": 1e-5}
	hubParallel   = both(map[string][]int{ofLayer + "post_attention_layernorm.weight": nil}, hubTied)
	ggufParallel  = both(map[string][]int{"blk.#.ffn_norm.weight": nil}, ggufTied)
	hubGLM4       = both(both(shapes(ofLayer+"mlp.", "_proj.weight", map[string][]int{"gate": nil, "up": nil, "gate_up": {48, 16}}), hubQKVBias),
		shapes(ofLayer, "_layernorm.weight", map[string][]int{"post_self_attn": {16}, "post_mlp": {16}}))
	ggufGLM4 = both(both(shapes("blk.#.ffn_", ".weight", map[string][]int{"gate": nil, "up": {48, 16}}), qkvBias), ggufSandwich)
)

// denseModels are the kin of LLaMA's, one for each kind of file.
func denseModels() map[string]tiny {
	longrope := map[string]any{
		"type": "su", "short_factor": []float64{1, 1, 1.5, 2}, "long_factor": []float64{1, 2, 4, 8},
	}
	return map[string]tiny{
		"gemma":      dense("GemmaForCausalLM", false).with(map[string]any{"hidden_act": "gelu", "hidden_activation": nil}, hubTied),
		"gemma-gguf": dense("gemma", true).with(nil, ggufTied),
		"gemma2": dense("Gemma2ForCausalLM", false).with(
			map[string]any{"query_pre_attn_scalar": 16, "sliding_window": 4}, both(hubSandwich, hubTied)),
		"gemma2-gguf": dense("gemma2", true).with(
			map[string]any{"attn_logit_softcapping": 20.0, "final_logit_softcapping": 10.0}, both(ggufSandwich, ggufTied)),
		"gemma3": dense("Gemma3ForCausalLM", false).with(map[string]any{
			"query_pre_attn_scalar": 16, "sliding_window": 4, "sliding_window_pattern": 2, "rope_theta": 1e6,
			"rope_scaling": map[string]any{"rope_type": "linear", "factor": 8.0}}, both(both(hubSandwich, hubHeadNorms), hubTied)),
		"gemma3-gguf": dense("gemma3", true).with(map[string]any{
			"attention.sliding_window": 4, "attention.sliding_window_pattern": []bool{true, false}, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0,
		}, both(both(ggufSandwich, headNorms), ggufTied)),
		"olmo2":      dense("Olmo2ForCausalLM", false).with(nil, hubPostnorm),
		"olmo2-gguf": dense("olmo2", true).with(nil, ggufPostnorm),
		"olmo3": dense("Olmo3ForCausalLM", false).with(map[string]any{
			"sliding_window": 4, "layer_types": []string{"sliding_attention", "full_attention"},
			"rope_scaling": map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}}, hubPostnorm),
		"olmo3-gguf": dense("olmo2", true).with(map[string]any{
			"attention.sliding_window": 4, "attention.sliding_window_pattern": []bool{true, false},
			"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}, ggufPostnorm),
		"cohere": dense("CohereForCausalLM", false).with(map[string]any{"use_qk_norm": true},
			both(hubParallel, shapes(ofLayer+"self_attn.", "_norm.weight", map[string][]int{"q": {4, 8}, "k": {2, 8}}))),
		"cohere-gguf": dense("command-r", true).with(map[string]any{"logit_scale": 0.0625}, ggufParallel).with(ggufLayerNorm,
			shapes("blk.#.attn_", "_norm.weight", map[string][]int{"q": {4, 8}, "k": {2, 8}})),
		"cohere2":      dense("Cohere2ForCausalLM", false).with(map[string]any{"logit_scale": 0.25, "sliding_window": 4, "sliding_window_pattern": 2}, hubParallel),
		"cohere2-gguf": dense("cohere2", true).with(map[string]any{"logit_scale": 0.25, "attention.sliding_window": 4, "attention.sliding_window_pattern": 2}, ggufParallel).with(ggufLayerNorm, nil),
		"granite": dense("GraniteForCausalLM", false).with(map[string]any{
			"embedding_multiplier": 12.0, "attention_multiplier": 0.0625, "residual_multiplier": 0.25, "logits_scaling": 8.0}, nil),
		"granite-gguf": dense("granite", true).with(map[string]any{
			"embedding_scale": 12.0, "attention.scale": 0.0625, "residual_scale": 0.25, "logit_scale": 8.0}, nil),
		"smollm3":       dense("SmolLM3ForCausalLM", false).with(map[string]any{"no_rope_layers": []int{1, 0}}, hubTied),
		"smollm3-gguf":  dense("smollm3", true).with(nil, ggufTied),
		"glm4":          dense("Glm4ForCausalLM", false).with(nil, hubGLM4),
		"glm4-gguf":     dense("glm4", true).with(map[string]any{"rope.dimension_count": 4}, ggufGLM4),
		"exaone4":       dense("Exaone4ForCausalLM", false).with(map[string]any{"sliding_window": 4, "sliding_window_pattern": 2}, both(hubPostnorm, hubHeadNorms)),
		"exaone4-gguf":  dense("exaone4", true).with(map[string]any{"attention.sliding_window": 4, "attention.sliding_window_pattern": []bool{true, false}}, both(ggufPostnorm, headNorms)),
		"ernie4-5":      dense("Ernie4_5ForCausalLM", false).with(nil, hubTied),
		"ernie4-5-gguf": dense("ernie4_5", true).with(nil, ggufTied),
		"seed-oss":      dense("SeedOssForCausalLM", false).with(nil, hubQKVBias),
		"seed-oss-gguf": dense("seed_oss", true).with(nil, both(qkvBias, map[string][]int{"blk.#.ffn_norm.weight": nil, "blk.#.post_attention_norm.weight": {16}})),
		"hunyuan": dense("HunYuanDenseV1ForCausalLM", false).with(
			map[string]any{"rope_scaling": map[string]any{"type": "dynamic", "alpha": 1000.0, "factor": 1.0}},
			shapes(ofLayer+"self_attn.", "_layernorm.weight", map[string][]int{"query": {8}, "key": {8}})),
		"hunyuan-gguf": dense("hunyuan-dense", true).with(map[string]any{"rope.scaling.type": "none", "rope.scaling.factor": 1.0}, headNorms),
		"phi3":         dense("Phi3ForCausalLM", false).with(map[string]any{"sliding_window": 6, "rope_scaling": longrope, "original_max_position_embeddings": 16}, hubFused),
		"phi3-gguf":    dense("phi3", true).with(map[string]any{"attention.sliding_window": 0}, ggufFused),
	}
}

func TestDensePrograms(t *testing.T) { tinyPrograms(t, denseModels()) }

// What a configuration leaves out or says in another way.
func TestDenseVariants(t *testing.T) {
	models := denseModels()
	largest := models["gemma2-gguf"].with(map[string]any{"block_count": 46}, nil)
	largest.tensors = expand(largest.tensors, "#", 46)
	for _, c := range []struct {
		name    string
		model   tiny
		has     []string
		without string
	}{
		{name: "two bases, nested", model: models["gemma3"].with(map[string]any{"rope_scaling": nil, "rope_theta": nil, "rope_parameters": map[string]any{
			"full_attention": map[string]any{"rope_type": "default", "rope_theta": 1e8}, "sliding_attention": map[string]any{"rope_type": "default"}}}, nil),
			has: []string{"freqs 1 to 0.001}", "freqs 1 to 1e-06}"}},
		{name: "a pattern by another name", model: models["gemma3"].with(map[string]any{"sliding_window_pattern": nil, "_sliding_window_pattern": 1}, nil), without: "window"},
		{name: "no window", model: models["gemma3"].with(map[string]any{"sliding_window": nil, "layer_types": []string{"full_attention", "full_attention"}}, nil), without: "window"},
		{name: "no window in GGUF", model: models["gemma3-gguf"].with(map[string]any{"attention.sliding_window": nil}, nil), without: "window"},
		{name: "a local base in GGUF", model: models["gemma3-gguf"].with(map[string]any{"rope.freq_base_swa": 1e8}, nil), has: []string{"freqs 1 to 1e-06}"}},
		{name: "the largest Gemma 2", model: largest, has: []string{"{heads 4/2, dim 8, scale 0.5, softcap 20, window 4096} @44", "{heads 4/2, dim 8, scale 0.5, softcap 20} @45"}},
		{name: "a window by default in GGUF", model: models["gemma2-gguf"], has: []string{"scale 0.35355339, softcap 20, window 4096"}},
		{name: "capped by default", model: models["gemma2"], has: []string{"softcap 50", "{softcap 30}"}},
		{name: "capped by nothing", model: nulls(models["gemma2"], "attn_logit_softcapping", "final_logit_softcapping"), without: "softcap"},
		{name: "a gate by name", model: models["gemma"].with(map[string]any{"hidden_activation": "gelu"}, nil), has: []string{"{gelu}"}},
		{name: "a gate by null", model: nulls(models["gemma"], "hidden_activation"), has: []string{"{gelu_tanh}"}},
		{name: "half of a head by default", model: models["glm4"], has: []string{"{norm, dim 8, turned 4"}},
		{name: "positions of parts", model: models["glm4-gguf"].with(map[string]any{"rope.dimension_sections": []int32{1, 1, 0, 0}}, nil), has: []string{"{neox, dim 8, turned 4"}},
		{name: "positions everywhere without windows", model: nulls(models["exaone4"], "sliding_window"), has: []string{"%22 [T 32] = rope"}, without: "window"},
		{name: "no positions without windows", model: nulls(models["cohere2"], "sliding_window"), without: "rope"},
		{name: "no positions by GGUF's flag", model: models["granite-gguf"].with(map[string]any{"rope.scaling.finetuned": false}, nil), without: "rope"},
		{name: "no positions by interval", model: models["smollm3"].with(map[string]any{"no_rope_layers": nil, "no_rope_layer_interval": 1}, nil), without: "rope"},
		{name: "windows without positions", model: models["smollm3"].with(map[string]any{"use_sliding_window": true, "sliding_window": 5}, nil), has: []string{"window 5"}},
		{name: "windows that are not used", model: models["smollm3"].with(map[string]any{"sliding_window": 5}, nil), without: "window"},
		{name: "no scale of scores", model: models["granite-gguf"].with(map[string]any{"attention.scale": nil}, nil), has: []string{"scale 0.35355339"}},
		{name: "all multipliers are 1", model: dense("GraniteForCausalLM", false), has: []string{"dim 8, scale 1}"}, without: "map"},
		{name: "the class's former name", model: dense("Ernie4_5_ForCausalLM", false), has: []string{"{norm, dim 8"}},
		{name: "yarn that is longrope", model: models["phi3"].with(map[string]any{"rope_scaling": map[string]any{
			"type": "yarn", "short_factor": []float64{1, 1, 1, 1}, "long_factor": []float64{2, 2, 2, 2}}}, nil), has: []string{"beyond 16"}},
	} {
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

// A configuration may bound the context below what the model was made for.
func TestContextBesideBound(t *testing.T) {
	m, err := buildFile(t, denseModels()["cohere"].with(map[string]any{"model_max_length": 1000}, nil).write(t))
	if err != nil {
		t.Fatal(err)
	}
	if m.Spec.Context != 1000 {
		t.Errorf("a context of %d, want 1000", m.Spec.Context)
	}
}

// nulls is the model with null for keys.
func nulls(m tiny, keys ...string) tiny {
	m = m.with(nil, nil)
	for _, key := range keys {
		m.config[key] = nil
	}
	return m
}

func TestDenseErrors(t *testing.T) {
	models := denseModels()
	with := func(name string, config map[string]any) tiny { return models[name].with(config, nil) }
	without := func(name, tensor string) tiny { return models[name].with(nil, map[string][]int{tensor: nil}) }
	shaped := func(name, tensor string, shape ...int) tiny {
		return models[name].with(nil, map[string][]int{tensor: shape})
	}
	tinyErrors(t, []refusal{
		{"a norm after attention", without("gemma2", ofLayer+"post_attention_layernorm.weight"), arch.ErrTensor, "model.layers.0.post_attention_layernorm.weight is missing"},
		{"a norm after all", without("olmo2-gguf", "blk.#.post_ffw_norm.weight"), arch.ErrTensor, "blk.0.post_ffw_norm.weight is missing"},
		{"a norm of queries", without("hunyuan", ofLayer+"self_attn.query_layernorm.weight"), arch.ErrTensor, "model.layers.0.self_attn.query_layernorm.weight is missing"},
		{"a norm by head", without("cohere", ofLayer+"self_attn.k_norm.weight"), arch.ErrTensor, "model.layers.0.self_attn.k_norm.weight is missing"},
		{"norms that are not used", with("cohere", map[string]any{"use_qk_norm": nil}), arch.ErrTensor, "no use for"},
		{"a fused weight", without("phi3", ofLayer+"self_attn.qkv_proj.weight"), arch.ErrTensor, "q_proj.weight is missing"},
		{"a bias", without("seed-oss", ofLayer+"self_attn.k_proj.bias"), arch.ErrTensor, "model.layers.0.self_attn.k_proj.bias is missing"},
		{"a bias by a flag", with("seed-oss", map[string]any{"attention_out_bias": true}), arch.ErrTensor, "model.layers.0.self_attn.o_proj.bias is missing"},
		{"every bias by a flag", with("ernie4-5", map[string]any{"use_bias": true}), arch.ErrTensor, "model.layers.0.self_attn.q_proj.bias is missing"},
		{"a bias that is not used", with("glm4", map[string]any{"attention_bias": false}), arch.ErrTensor, "no use for"},
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
		{"a base", with("hunyuan", map[string]any{"rope_scaling": map[string]any{"type": "dynamic", "alpha": -2.0}}), arch.ErrConfig, "rope_scaling.alpha is -2"},
	})
}
