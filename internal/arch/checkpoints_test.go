package arch_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// Configurations and names of tensors as published checkpoints have them are accepted, where they differ
// from those of the plans: keys that change nothing, other parts beside a language model, and heads that
// predict further tokens. They give the plan's program.
func TestCheckpoints(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		keys       string           // JSON, of the whole configuration
		text       string           // JSON, of that of the language model; "": there is none
		names      []string         // pairs: what tensors' names begin with in the plan, and here
		more       map[string][]int // further tensors
	}{
		{"Ministral-3-8B-Instruct-2512", "ministral3",
			`{"architectures": ["Mistral3ForConditionalGeneration"], "dtype": "bfloat16", "image_token_index": 10, "model_type": "mistral3", "multimodal_projector_bias": false,
			  "projector_hidden_act": "gelu", "spatial_merge_size": 2, "vision_feature_layer": -1, "vision_config": {"head_dim": 8, "hidden_size": 8, "model_type": "pixtral"}}`,
			`{"attention_dropout": 0.0, "initializer_range": 0.02, "model_type": "ministral3", "use_cache": true, "vocab_size": 32}`,
			[]string{"model.", "language_model.model.", "lm_head", "language_model.lm_head"},
			map[string][]int{"vision_tower.patch_conv.weight": {8, 3, 2, 2}, "multi_modal_projector.patch_merger.merging_layer.weight": {8, 32}}},
		{"Ministral 3 as transformers 5 writes it", "ministral3",
			`{"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "vision_config": {"hidden_size": 8, "model_type": "pixtral"}}`,
			`{"model_type": "ministral3", "vocab_size": 32}`,
			[]string{"model.", "model.language_model."},
			map[string][]int{"model.vision_tower.patch_conv.weight": {8, 3, 2, 2}, "model.multi_modal_projector.linear_1.weight": {16, 8}}},
		{"Mistral-Small-3.2-24B-Instruct-2506", "mistral",
			`{"architectures": ["Mistral3ForConditionalGeneration"], "image_token_index": 10, "model_type": "mistral3", "vision_config": {"hidden_size": 8, "model_type": "pixtral"}}`,
			`{"attention_dropout": 0.0, "initializer_range": 0.02, "model_type": "mistral", "use_cache": true, "vocab_size": 32}`,
			[]string{"model.", "language_model.model.", "lm_head", "language_model.lm_head"},
			map[string][]int{"vision_tower.ln_pre.weight": {8}, "multi_modal_projector.norm.weight": {8}}},
		{"Llama-4-Maverick", "llama4", `{}`, `{"attn_temperature_tuning": true, "pretraining_tp": 1, "layer_types": ["chunked_attention", "full_attention"]}`, nil, nil},
		{"ERNIE-4.5-21B-A3B-PT", "ernie4-5-moe",
			`{"bos_token_id": 1, "compression_ratio": 1.0, "moe_norm_min": 1e-12, "output_router_logits": false, "pad_token_id": 0, "router_aux_loss_coef": 0.001, "use_cache": false, "vocab_size": 32}`, "", nil,
			map[string][]int{"model.mtp_block.0.self_attn.q_proj.weight": {8, 8}, "model.mtp_emb_norm.0.weight": {16}, "model.mtp_hidden_norm.0.weight": {16}, "model.mtp_linear_proj.0.weight": {16, 32}}},
		{"Hunyuan-A13B-Instruct", "hunyuan-moe",
			`{"add_classification_head": false, "anyres_pooling_size": 2, "attention_dropout": 0.0, "class_num": 0, "dense_list": [16, 0], "enable_lm_head_fp32": true, "group_limited_greedy": false,
			  "kv_lora_rank": null, "q_lora_rank": null, "qk_nope_head_dim": null, "qk_rope_head_dim": null, "v_head_dim": null, "norm_type": "rms", "num_media_embeds": 257,
			  "pool_type": "last", "position_embedding_xdrope": false, "pretraining_tp": 1, "use_mla": false, "use_rotary_pos_emb": true, "vit_type": null, "vocab_size": 32}`, "", nil, nil},
		{"K-EXAONE-236B-A23B", "exaone-moe-first",
			`{"attention_dropout": 0.0, "bos_token_id": 1, "mtp_loss_weight": 0.1, "mtp_share_layers": true, "topk_method": "noaux_tc", "tie_word_embeddings": false, "use_cache": true, "vocab_size": 32}`, "", nil,
			map[string][]int{"mtp.fc.weight": {16, 32}, "mtp.layers.0.self_attn.q_proj.weight": {32, 16}}},
		{"Apertus-8B-Instruct-2509", "apertus", `{"attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": [2], "initializer_range": 0.02, "pad_token_id": 3, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 32}`, "", nil, nil},
		{"OLMoE-1B-7B-0924", "olmoe", `{"output_router_logits": false, "router_aux_loss_coef": 0.01, "num_key_value_heads": 2, "tie_word_embeddings": false, "vocab_size": 32}`, "", nil, nil},
		{"Seed-OSS-36B-Instruct", "seed-oss",
			`{"attention_dropout": 0.1, "attention_bias": true, "attention_out_bias": false, "hidden_act": "silu", "mlp_bias": false, "model_type": "seed_oss", "pretraining_tp": 1, "residual_dropout": 0.1,
			  "rope_scaling": {"rope_type": "default"}, "tie_word_embeddings": false, "use_cache": true, "vocab_size": 32}`, "", nil, nil},
		{"Ling-mini-2.0", "bailing-moe-v2",
			`{"attention_dropout": 0.0, "auto_map": {"AutoConfig": "configuration_bailing_moe_v2.BailingMoeV2Config"}, "embedding_dropout": 0.0, "hidden_act": "silu", "initializer_range": 0.02,
			  "max_window_layers": 20, "model_type": "bailing_moe", "mtp_loss_scaling_factor": 0, "output_dropout": 0.0, "router_dtype": "fp32", "sliding_window": 4096, "tie_word_embeddings": false,
			  "use_rmsnorm": true, "use_sliding_window": false, "vocab_size": 32}`, "", nil, nil},
		{"Ling-lite-1.5", "bailing-moe",
			`{"attention_dropout": 0.0, "embedding_dropout": 0.0, "ep_size": 1, "eos_token_id": 2, "hidden_act": "silu", "moe_layer_freq": 1, "model_type": "bailing_moe", "multi_gate": false,
			  "num_hidden_layers": 2, "output_dropout": 0, "pad_token_id": 2, "pretraining_tp": 1, "sliding_window": 32768, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 32}`, "", nil, nil},
		{"Step-3.5-Flash", "step35",
			`{"att_impl_type": "GQA", "bos_token_id": 0, "eos_token_id": [1, 2], "max_seq_len": 64, "sink": false, "tie_word_embeddings": false, "use_cache": true, "use_mfa": false, "use_moe": true,
			  "moe_layer_offset": 0, "moe_every_n_layer": 1, "vocab_size": 32}`, "", nil,
			map[string][]int{"model.layers.2.transformer.shared_head.output.weight": {32, 16}, "model.layers.2.eh_proj.weight": {16, 32}}},
		{"MiniMax-Text-01", "minimax-text-01",
			`{"attention_dropout": 0.0, "bos_token_id": null, "eos_token_id": null, "hidden_act": "silu", "initializer_range": 0.02, "max_position_embeddings": 131072, "model_type": "minimax_text_01",
			  "num_experts_per_tok": 2, "output_router_logits": false, "rms_norm_eps": 1e-05, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "tie_word_embeddings": false, "use_cache": true, "vocab_size": 32}`, "", nil, nil},
		{"recurrentgemma-2b", "recurrent-gemma",
			`{"attention_bias": false, "attention_dropout": 0.0, "embeddings_scale_by_sqrt_dim": true, "final_w_init_variance_scale": 0.07, "head_dim": 12, "model_type": "recurrent_gemma", "pad_token_id": 0,
			  "torch_dtype": "float32", "use_cache": true, "vocab_size": 32, "w_init_variance_scale": 0.01}`, "", nil, nil},
	} {
		m := goldenModel(t, c.plan)
		changed := maps.Clone(m.config)
		inner, nested := m.config["text_config"].(map[string]any)
		if c.text != "" {
			if !nested {
				inner = maps.Clone(m.config)
				delete(inner, "architectures")
				changed = map[string]any{}
			}
			changed["text_config"] = merged(t, inner, c.text)
		}
		m.config = merged(t, changed, c.keys)
		tensors := maps.Clone(c.more)
		if tensors == nil {
			tensors = map[string][]int{}
		}
		for name, shape := range m.tensors {
			for i := 0; i < len(c.names); i += 2 {
				if rest, ok := strings.CutPrefix(name, c.names[i]); ok {
					name = c.names[i+1] + rest
					break
				}
			}
			tensors[name] = shape
		}
		m.tensors = tensors
		built, err := buildFile(t, m.write(t))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		names := strings.NewReplacer(swapped(c.names)...)
		if got, want := names.Replace(built.Program.String()), readPlan(t, c.plan).program; got != want {
			t.Errorf("%s: the program is not that of %s:\n%s", c.name, c.plan, got)
		}
	}
}

// merged returns an object with the members of another, which is JSON.
func merged(t *testing.T, object map[string]any, more string) map[string]any {
	t.Helper()
	all := maps.Clone(object)
	if err := json.Unmarshal([]byte(more), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// swapped returns pairs with each two swapped.
func swapped(pairs []string) []string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, pairs[i+1], pairs[i])
	}
	return all
}
