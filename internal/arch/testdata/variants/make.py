"""Writes tiny decoders of random weights, in other shapes and with other options than the
conformance data, and what transformers computes with them.

    python3 make.py FOLDER
    REALIZAR_VARIANTS=FOLDER go test ./internal/arch -run Variants

Each case is a folder FOLDER/hf/NAME as those of the conformance data: config.json, model.safetensors and
expected.safetensors with input_ids [40], logits [40, vocab] in float64 arithmetic, and the
greedy continuation [24] with its margins. Weights are rounded to the format they are stored in.
Made with torch 2.11 and transformers 5.17.
"""

import pathlib
import sys

import torch
import transformers as hf
from safetensors.torch import save_file

VOCAB = 96
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
SHAPE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)
GPT2 = dict(vocab_size=VOCAB, n_embd=64, n_positions=128, bos_token_id=1, eos_token_id=2)
WIDE = {k: v for k, v in SHAPE.items() if k != "num_key_value_heads"}
FALCON = {k: v for k, v in WIDE.items() if k != "intermediate_size"} | dict(alibi=False)
GRANITE = dict(embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.5, attention_multiplier=0.3)


def partial(share):
    return dict(rope_parameters=ROPE | {"partial_rotary_factor": share})


def yarn(base, **more):
    return {"rope_type": "yarn", "factor": 4.0, "rope_theta": base, "original_max_position_embeddings": 32, "beta_fast": 32.0, "beta_slow": 1.0} | more


def kinds(text):
    return dict(layer_types=[{"f": "full_attention", "s": "sliding_attention"}[c] for c in text])


# name: configuration class and what differs from SHAPE
CASES = {
    "gpt2-inverse": ("GPT2Config", GPT2 | dict(n_layer=3, n_head=4, scale_attn_by_inverse_layer_idx=True, n_inner=96, activation_function="gelu")),
    "gpt2-unscaled": ("GPT2Config", GPT2 | dict(n_layer=2, n_head=2, scale_attn_weights=False, activation_function="relu")),
    "gpt-neox-serial": ("GPTNeoXConfig", WIDE | dict(use_parallel_residual=False) | partial(1.0)),
    "gpt-neox-unbiased": ("GPTNeoXConfig", WIDE | dict(attention_bias=False, hidden_act="gelu_new", tie_word_embeddings=True)),
    "falcon-7b": ("FalconConfig", FALCON | dict(new_decoder_architecture=False, multi_query=True, parallel_attn=True, bias=False)),
    "falcon-rw": ("FalconConfig", FALCON | dict(new_decoder_architecture=False, multi_query=False, parallel_attn=False, bias=True, tie_word_embeddings=False)),
    "falcon-11b": ("FalconConfig", FALCON | dict(num_kv_heads=2, new_decoder_architecture=True, num_ln_in_parallel_attn=1, bias=False)),
    "phi-norm": ("PhiConfig", SHAPE | dict(num_key_value_heads=4, qk_layernorm=True) | partial(0.25)),
    "phi-gqa": ("PhiConfig", SHAPE | partial(0.5)),
    "starcoder2-window": ("Starcoder2Config", SHAPE | dict(use_bias=False, sliding_window=8, tie_word_embeddings=False)),
    "stablelm-parallel": ("StableLmConfig", SHAPE | dict(use_parallel_residual=True, qk_layernorm=True, use_qkv_bias=False)),
    "nemotron-bias": ("NemotronConfig", SHAPE | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "gemma-wide": ("GemmaConfig", SHAPE | dict(head_dim=24, num_key_value_heads=1)),
    "gemma2-other": ("Gemma2Config", SHAPE | dict(num_hidden_layers=4, head_dim=16, query_pre_attn_scalar=48, sliding_window=6, attn_logit_softcapping=5.0, final_logit_softcapping=3.0)),
    "gemma2-uncapped": ("Gemma2Config", SHAPE | dict(num_hidden_layers=4, head_dim=32, query_pre_attn_scalar=32, sliding_window=6, attn_logit_softcapping=None, final_logit_softcapping=None)),
    "gemma3-scaled": ("Gemma3TextConfig", SHAPE | dict(num_hidden_layers=7, head_dim=32, query_pre_attn_scalar=20, sliding_window=6, final_logit_softcapping=4.0,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}, "sliding_attention": ROPE})),
    "gemma3-pattern": ("Gemma3TextConfig", SHAPE | dict(head_dim=32, query_pre_attn_scalar=32, sliding_window=6) | kinds("fsf")),
    "olmo2-bias": ("Olmo2Config", SHAPE | dict(attention_bias=True)),
    "olmo3-yarn": ("Olmo3Config", SHAPE | dict(num_hidden_layers=4, sliding_window=6, rope_parameters={"full_attention": yarn(500000.0, attention_factor=1.2), "sliding_attention": ROPE})),
    "cohere-norm": ("CohereConfig", SHAPE | dict(use_qk_norm=True, attention_bias=True, logit_scale=0.5)),
    "cohere2-bias": ("Cohere2Config", SHAPE | dict(attention_bias=True, sliding_window=6, logit_scale=0.3) | kinds("sfs")),
    "granite-bias": ("GraniteConfig", SHAPE | GRANITE | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "smollm3-window": ("SmolLM3Config", SHAPE | dict(use_sliding_window=True, sliding_window=6, no_rope_layers=[1, 0, 1], attention_bias=True, mlp_bias=True) | kinds("fsf")),
    "glm4-plain": ("Glm4Config", SHAPE | dict(head_dim=16, attention_bias=False) | partial(1.0)),
    "exaone4-full": ("Exaone4Config", SHAPE | dict(sliding_window=None, sliding_window_pattern=None) | kinds("fff")),
    "exaone4-kinds": ("Exaone4Config", SHAPE | dict(num_hidden_layers=5, sliding_window=6) | kinds("sfsfs")),
    "ernie-bias": ("Ernie4_5Config", SHAPE | dict(use_bias=True, head_dim=16, tie_word_embeddings=False)),
    "seed-bias": ("SeedOssConfig", SHAPE | dict(head_dim=32, attention_out_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "seed-unbiased": ("SeedOssConfig", SHAPE | dict(head_dim=32, attention_bias=False, attention_out_bias=False)),
    "hunyuan-dynamic": ("HunYuanDenseV1Config", SHAPE | dict(head_dim=16, attention_bias=True, rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0})),
    "phi3-window": ("Phi3Config", SHAPE | dict(sliding_window=8) | partial(0.5)),
    "mixtral-window": ("MixtralConfig", SHAPE | dict(num_local_experts=5, num_experts_per_tok=3, sliding_window=8, tie_word_embeddings=True)),
    "qwen2-moe-mixed": ("Qwen2MoeConfig", SHAPE | dict(num_hidden_layers=4, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32, shared_expert_intermediate_size=48,
        norm_topk_prob=True, decoder_sparse_step=2, mlp_only_layers=[3], qkv_bias=False)),
    "qwen2-moe-window": ("Qwen2MoeConfig", SHAPE | dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=48,
        use_sliding_window=True, sliding_window=6, max_window_layers=1)),
    "qwen3-moe-mixed": ("Qwen3MoeConfig", SHAPE | dict(head_dim=32, num_experts=8, num_experts_per_tok=4, moe_intermediate_size=32, norm_topk_prob=False, mlp_only_layers=[1], attention_bias=True)),
    "granitemoe-bias": ("GraniteMoeConfig", SHAPE | GRANITE | dict(num_local_experts=6, num_experts_per_tok=4, attention_bias=True, tie_word_embeddings=True)),
    "granitemoe-shared": ("GraniteMoeSharedConfig", SHAPE | GRANITE | dict(num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=40)),
    "glm4-moe-groups": ("Glm4MoeConfig", SHAPE | dict(head_dim=16, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, moe_intermediate_size=32, n_shared_experts=2,
        routed_scaling_factor=2.5, norm_topk_prob=True, use_qk_norm=False, attention_bias=True, first_k_dense_replace=0)),
    "glm4-moe-plain": ("Glm4MoeConfig", SHAPE | dict(head_dim=16, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=32, n_shared_experts=1,
        routed_scaling_factor=1.5, norm_topk_prob=False, first_k_dense_replace=2)),
    "minimax-partial": ("MiniMaxM2Config", SHAPE | dict(head_dim=32, num_local_experts=6, num_experts_per_tok=3) | partial(0.5)),
    "gpt-oss-plain": ("GptOssConfig", SHAPE | dict(head_dim=32, num_local_experts=6, num_experts_per_tok=3, sliding_window=6, rope_parameters=ROPE) | kinds("fsf")),
    "gpt-oss-yarn": ("GptOssConfig", SHAPE | dict(head_dim=16, num_local_experts=4, num_experts_per_tok=4, sliding_window=6, rope_parameters=yarn(150000.0, truncate=False))),
    "qwen2-tied": ("Qwen2Config", SHAPE | dict(tie_word_embeddings=True)),
    "qwen3-bias": ("Qwen3Config", SHAPE | dict(head_dim=32, attention_bias=True)),
    "llama-bias": ("LlamaConfig", SHAPE | dict(attention_bias=True, mlp_bias=True)),
    "mistral-full": ("MistralConfig", SHAPE | dict(head_dim=24, sliding_window=None)),
    "arcee-bias": ("ArceeConfig", SHAPE | dict(attention_bias=True, mlp_bias=True, head_dim=24, hidden_act="gelu", rope_parameters=yarn(10000.0))),
    "apertus-bias": ("ApertusConfig", SHAPE | dict(attention_bias=True, tie_word_embeddings=True, rope_parameters=ROPE)),
    "helium-bias": ("HeliumConfig", SHAPE | dict(head_dim=16, attention_bias=True, mlp_bias=True)),
    "ministral3-window": ("Ministral3Config", SHAPE | dict(head_dim=16, sliding_window=9, rope_parameters=yarn(1e6, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.3) | {"original_max_position_embeddings": 8})),
    "olmoe-clip": ("OlmoeConfig", SHAPE | dict(num_experts=6, num_experts_per_tok=3, clip_qkv=1.0, norm_topk_prob=True, attention_bias=True)),
    "flex-olmo-normed": ("FlexOlmoConfig", SHAPE | dict(num_experts=6, num_experts_per_tok=3, norm_topk_prob=True)),
    "dots1-groups": ("Dots1Config", SHAPE | dict(n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=3, moe_intermediate_size=32, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5, sliding_window=7, max_window_layers=1, attention_bias=True)),
    "ernie4-5-moe-bias": ("Ernie4_5_MoeConfig", SHAPE | dict(num_hidden_layers=5, moe_num_experts=6, moe_k=3, moe_intermediate_size=32, moe_num_shared_experts=0, moe_layer_start_index=1, moe_layer_end_index=3, moe_layer_interval=2, use_bias=True)),
    "exaone-moe-full": ("ExaoneMoeConfig", SHAPE | dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, num_shared_experts=2, n_group=2, topk_group=1, sliding_window=None, sliding_window_pattern=None, first_k_dense_replace=2) | kinds("fff")),
    "hunyuan-moe-one": ("HunYuanMoEV1Config", SHAPE | dict(head_dim=16, num_experts=4, moe_topk=1, attention_bias=True)),
    "hy-v3-two": ("HYV3Config", SHAPE | dict(head_dim=24, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32, num_shared_experts=2, mlp_layer_types=["sparse", "dense", "sparse"])),
    "laguna-heads": ("LagunaConfig", SHAPE | dict(head_dim=16, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32, shared_expert_intermediate_size=40, num_attention_heads_per_layer=[4, 6, 2], moe_router_logit_softcapping=2.0, moe_routed_scaling_factor=2.5, sliding_window=7, attention_bias=True) | kinds("sfs")),
    "phimoe-bias": ("PhimoeConfig", SHAPE | dict(num_local_experts=6, router_jitter_noise=0.4, attention_bias=True, lm_head_bias=True, sliding_window=9)),
    "solar-open-bias": ("SolarOpenConfig", SHAPE | dict(head_dim=24, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=32, attention_bias=True) | partial(0.5)),
    "afmoe-plain": ("AfmoeConfig", SHAPE | dict(head_dim=16, num_experts=6, num_experts_per_tok=3, num_shared_experts=2, moe_intermediate_size=32, num_dense_layers=2, global_attn_every_n_layers=2, sliding_window=7, mup_enabled=False)),
    "cohere2-moe-sum": ("Cohere2MoeConfig", SHAPE | dict(num_hidden_layers=4, head_dim=16, num_experts=6, num_experts_per_tok=3, num_shared_experts=2, expert_selection_fn="sigmoid", norm_topk_prob=False, shared_expert_combination_strategy="sum", rms_norm_eps=1e-6, prefix_dense_intermediate_size=80, mlp_layer_types=["dense", "sparse", "sparse", "sparse"], sliding_window=7) | kinds("fsfs")),
}


def weights(model):
    """All parameters, and the biases that experts are chosen by."""
    return list(model.named_parameters()) + [(n, x) for n, x in model.named_buffers() if "correction_bias" in n]


def randomize(model, seed):
    """Gives every weight values that matter: biases that are not 0, norms that are not 1."""
    g = torch.Generator().manual_seed(seed)
    middle = 0 if any(s in type(model).__name__ for s in ("Gemma", "Nemotron")) else 1  # of norms
    for name, p in sorted(weights(model)):
        noise = torch.randn(p.shape, generator=g)
        if name.endswith("bias"):
            value = 0.3 * noise
        elif p.dim() == 1 and "sinks" not in name or "norm" in name:
            value = middle + 0.3 * noise
        elif any(s in name for s in ("sinks", "embed", "wte", "wpe")):
            value = noise
        else:
            value = 1.2 * noise / p.shape[-1] ** 0.5
        p.data.copy_(value)


def cast(model, dtype):
    for _, p in weights(model):
        p.data = p.data.to(dtype)


def expected(model, seed):
    ids = torch.randint(3, VOCAB, (1, 40), generator=torch.Generator().manual_seed(seed + 1000))
    logits = lambda ids: model(input_ids=ids, use_cache=False).logits[0]
    text, greedy, margin = ids, [], []
    for _ in range(24):
        best = logits(text)[-1].topk(2)
        greedy.append(best.indices[0])
        margin.append(best.values[0] - best.values[1])
        text = torch.cat([text, best.indices[None, :1]], 1)
    return {
        "input_ids": ids[0], "logits": logits(ids).float().contiguous(),
        "greedy": torch.stack(greedy), "margin": torch.stack(margin).float(),
    }


def main(root):
    for seed, (name, (config, values)) in enumerate(CASES.items()):
        config = getattr(hf, config)(**values)
        config._attn_implementation = config._experts_implementation = "eager" # others have no float64
        model = hf.AutoModelForCausalLM.from_config(config).eval()
        randomize(model, seed)
        cast(model, [torch.bfloat16, torch.float16, torch.float32][seed % 3])
        model.save_pretrained(root / "hf" / name)
        cast(model, torch.float64)
        with torch.no_grad():
            save_file(expected(model, seed), root / "hf" / name / "expected.safetensors")
        print(name)


main(pathlib.Path(sys.argv[1]))
