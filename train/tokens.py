"""The tokenizer: byte-level BPE of 4,096 tokens that cuts text as Qwen2's does, digits one by one."""

import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from .text.conversation import CHAT_TEMPLATE

VOCAB = 4096
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")


def bare(text: str) -> str:
    """Text to learn merges from: without the tokens that are whole anyway."""
    for token in SPECIAL + MARKS:
        text = text.replace(token, "\n")
    return text


def learn(texts) -> Tokenizer:
    """The tokenizer that texts make."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - len(SPECIAL) - len(MARKS), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, min_frequency=2,
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in MARKS])
    if tokenizer.get_vocab_size() != VOCAB:
        raise ValueError(f"the tokenizer has {tokenizer.get_vocab_size()} tokens, want {VOCAB}: give it more text")
    return tokenizer


def write(tokenizer: Tokenizer, folder: Path) -> None:
    """tokenizer.json, tokenizer_config.json and generation_config.json."""
    tokenizer.save(str(folder / "tokenizer.json"))
    end, start, text_end = (tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|im_start|>", "<|endoftext|>"))
    added = {
        str(tokenizer.token_to_id(t)): {"content": t, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": t in SPECIAL}
        for t in SPECIAL + MARKS
    }  # fmt: skip
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": False, "added_tokens_decoder": dict(sorted(added.items(), key=lambda kv: int(kv[0]))),
        "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": None, "model_max_length": 1024,
        "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE,
    }  # fmt: skip
    assert start is not None
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    generation = {"do_sample": False, "temperature": 0.0, "eos_token_id": [end, text_end], "bos_token_id": text_end, "pad_token_id": text_end}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
