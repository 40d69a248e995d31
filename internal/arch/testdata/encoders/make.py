"""Writes tiny encoders with random weights and what transformers computes with them.

    python3 make.py FOLDER

Each case is a folder with config.json, model.safetensors and expected.safetensors:

    input_ids [40], hidden [40, d], mean [d], cls [d]       a text, all of token type 0
    pair_ids [24], pair_types [24], pair_hidden [24, d]     two texts, the second of type 1 where the model has types
    logits [labels], pair_logits [labels]                   where the model has a classification head

Weights are rounded to the format they are stored in; everything is computed in float64.
Made with torch 2.11 and transformers 5.17.
"""

import json
import pathlib
import sys

import torch
import transformers as hf
from safetensors.torch import save_file

BERT = dict(
    vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=64, type_vocab_size=2,
)
ROBERTA = BERT | dict(max_position_embeddings=66, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5)
# Every second layer sees 4 tokens to either side.
MODERN = dict(
    vocab_size=96, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=64, local_attention=8, global_attn_every_n_layers=2,
    layer_types=["full_attention", "sliding_attention", "full_attention"],
    rope_parameters={
        "full_attention": {"rope_type": "default", "rope_theta": 160000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    },
    pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
)

# name: class, its configuration, arguments of the class, format of the weights
CASES = {
    "bert": (hf.BertModel, hf.BertConfig(**BERT), {}, torch.float32),
    "bert-plain": (hf.BertModel, hf.BertConfig(**BERT | dict(hidden_act="gelu_new", layer_norm_eps=1e-6)), dict(add_pooling_layer=False), torch.float16),
    "bert-rank": (hf.BertForSequenceClassification, hf.BertConfig(**BERT, num_labels=1), {}, torch.float32),
    "bert-classes": (hf.BertForSequenceClassification, hf.BertConfig(**BERT, num_labels=3), {}, torch.float16),
    "roberta": (hf.RobertaModel, hf.RobertaConfig(**ROBERTA), dict(add_pooling_layer=False), torch.float32),
    "roberta-classes": (hf.RobertaForSequenceClassification, hf.RobertaConfig(**ROBERTA, num_labels=3), {}, torch.float16),
    "xlm-roberta-rank": (hf.XLMRobertaForSequenceClassification, hf.XLMRobertaConfig(**ROBERTA, num_labels=1), {}, torch.float32),
    "modernbert": (hf.ModernBertModel, hf.ModernBertConfig(**MODERN), {}, torch.float16),
    "modernbert-rank": (hf.ModernBertForSequenceClassification, hf.ModernBertConfig(**MODERN, num_labels=1, classifier_pooling="mean"), {}, torch.float16),
    "modernbert-classes": (
        hf.ModernBertForSequenceClassification,
        hf.ModernBertConfig(**MODERN | dict(norm_bias=True, attention_bias=True, mlp_bias=True), num_labels=3, classifier_pooling="cls", classifier_bias=True),
        {}, torch.float16,
    ),
}

# These say the same in the words of older checkpoints.
OLDER = {"modernbert", "modernbert-classes"}


def randomize(model, seed):
    """Gives every weight values that matter: biases that are not 0, norms that are not 1."""
    g = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        noise = torch.randn(p.shape, generator=g)
        if p.dim() == 1 and name.endswith("bias"):
            value = 0.3 * noise
        elif p.dim() == 1:
            value = 1 + 0.3 * noise
        elif "embeddings" in name:
            value = noise
        else:
            value = 1.5 * noise / p.shape[1] ** 0.5
        p.data.copy_(value)


def store(model, dtype):
    """Changes the format of the weights alone: frequencies of rotary positions keep theirs."""
    for p in model.parameters():
        p.data = p.data.to(dtype)
    return model


def older(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config.pop("layer_types")
    config["global_rope_theta"] = rope["full_attention"]["rope_theta"]
    config["local_rope_theta"] = rope["sliding_attention"]["rope_theta"]
    config["global_attn_every_n_layers"] = MODERN["global_attn_every_n_layers"]
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def expected(model, config, seed):
    g = torch.Generator().manual_seed(seed + 1000)
    ids = lambda n: torch.randint(4, config.vocab_size, (1, n), generator=g)  # the first are special
    typed = getattr(config, "type_vocab_size", 0) > 1

    def run(tokens, types):
        kwargs = dict(input_ids=tokens, attention_mask=torch.ones_like(tokens))
        if typed:
            kwargs["token_type_ids"] = types
        base = model.base_model if hasattr(model, "classifier") else model
        hidden = base(**kwargs).last_hidden_state[0]
        logits = model(**kwargs).logits[0] if hasattr(model, "classifier") else None
        return hidden, logits

    tokens, pair = ids(40), ids(24)
    types = torch.zeros_like(pair)
    if typed:
        types[0, 13:] = 1
    hidden, logits = run(tokens, torch.zeros_like(tokens))
    pair_hidden, pair_logits = run(pair, types)
    out = {
        "input_ids": tokens[0], "hidden": hidden, "mean": hidden.mean(0), "cls": hidden[0],
        "pair_ids": pair[0], "pair_types": types[0], "pair_hidden": pair_hidden,
    }
    if logits is not None:
        out |= {"logits": logits, "pair_logits": pair_logits}
    return {k: (v if v.dtype == torch.int64 else v.to(torch.float32)).contiguous() for k, v in out.items()}


def main(root):
    torch.use_deterministic_algorithms(True)
    for seed, (name, (cls, config, kwargs, dtype)) in enumerate(CASES.items()):
        folder = root / name
        config._attn_implementation = "eager"
        model = cls(config, **kwargs).eval()
        randomize(model, seed)
        store(model, dtype).save_pretrained(folder)
        if name in OLDER:
            older(folder)
        with torch.no_grad():
            save_file(expected(store(model, torch.float64), config, seed), folder / "expected.safetensors")
        size = sum(p.stat().st_size for p in folder.iterdir())
        print(f"{name}: {size} bytes")


main(pathlib.Path(sys.argv[1]))
