"""Writes what the sentencepiece library computes, and what transformers' conversions of its models compute.

    python3 gen_sentencepiece.py OUT [--workers 16] [--only NAME]

OUT/sentencepiece/*.json holds one model each, OUT/converted/*.json a tokenizer.json that a conversion made
of one, OUT/charsmaps.json the precompiled charsmaps of all rules; OUT/sentencepiece.tar.xz holds all.
It needs gen_tokenizers.py beside it.
"""

import argparse
import base64
import inspect
import io
import json
import os
import random
import sys
import tempfile
import time
import traceback

import gen_tokenizers as gen

RULES = ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"]
USER = ["<user>", "wd", "ab cd", "▁x▁", "é", "😀", "ABC", "42", "aa"]
CONTROL = ["<ctrl>", "<2de>", "[MASK]"]


def plans():
    """Returns options of the trainer by name: every rule with each kind of model, and random options."""
    out = {}
    rng = random.Random(77)
    n = 0
    for kind in ("unigram", "bpe", "char", "word"):
        for rule in RULES + ["custom"]:
            for round_ in range({"unigram": 8, "bpe": 8, "char": 2, "word": 2}[kind]):
                o = {"model_type": kind, "normalization_rule_name": rule, "seed": 3000 + n}
                o["vocab_size"] = rng.choice([700, 800, 1000, 1200])
                o["byte_fallback"] = kind in ("unigram", "bpe") and round_ % 2 == 1
                o["character_coverage"] = rng.choice([0.98, 0.9995, 1.0]) if not o["byte_fallback"] else 0.98
                # The first two rounds have the defaults.
                pick = (lambda p: False) if round_ < 2 else (lambda p: rng.random() < p)
                o["add_dummy_prefix"] = not pick(0.35)
                o["remove_extra_whitespaces"] = not pick(0.45)
                if pick(0.12) and kind != "unigram":
                    o["escape_whitespaces"] = False
                if pick(0.2):
                    o["treat_whitespace_as_suffix"] = True
                if pick(0.4):
                    o["split_digits"] = True
                if pick(0.3):
                    o["allow_whitespace_only_pieces"] = True
                if pick(0.3):
                    o["split_by_unicode_script"] = False
                if pick(0.2):
                    o["split_by_whitespace"] = False
                if pick(0.2):
                    o["split_by_number"] = False
                if pick(0.4):
                    o["user_defined_symbols"] = rng.sample(USER, rng.randint(1, 5))
                if pick(0.4):
                    o["control_symbols"] = rng.sample(CONTROL, rng.randint(1, 3))
                if pick(0.25):
                    o.update(rng.choice([{"pad_id": 0, "unk_id": 3, "bos_id": 1, "eos_id": 2}, {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, {"bos_id": -1, "eos_id": -1}, {"pad_id": 3}]))
                if pick(0.15):
                    o["unk_surface"] = rng.choice(["<?>", "", " \u2047 "])
                if pick(0.15) and kind in ("char", "word"):
                    o["use_all_vocab"] = True
                if kind == "char" or kind == "word" or pick(0.5):
                    o["hard_vocab_limit"] = False
                name = f"{n:03d}-{kind}-{rule}" + ("-bytes" if o["byte_fallback"] else "")
                out[name] = o
                n += 1
    return out


def train(options, lines, folder):
    import sentencepiece
    o = dict(options)
    del o["seed"]
    if o["normalization_rule_name"] == "custom":
        rules = os.path.join(folder, "rules.tsv")
        with open(rules, "w") as f:
            f.writelines(f"{a}\t{b}\n" for a, b in gen.CUSTOM)
        del o["normalization_rule_name"]
        o["normalization_rule_tsv"] = rules
    # The limit on the vocabulary is not known before: one that fits is looked for.
    sizes = [o["vocab_size"], 600, 500, 450, 400, 1200, 1600, 2400, 800]
    for i, size in enumerate(sizes):
        o["vocab_size"] = size
        if i == len(sizes) - 1:
            o["hard_vocab_limit"] = False
        out = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, minloglevel=2, num_threads=1, **o)
            return out.getvalue()
        except (RuntimeError, OSError) as e:
            last = e
    raise last


def model_and_texts(name, options):
    """Returns a trained model with the texts to run, the same for each use of the name."""
    rng = random.Random(options["seed"])
    # Tabs and line ends are for the texts alone: training lines have none.
    lines = [" ".join(line.split()) for line in gen.corpus(rng, 320)]
    with tempfile.TemporaryDirectory() as folder:
        model = train(options, lines, folder)
    added = options.get("user_defined_symbols", []) + options.get("control_symbols", []) + ["<s>", "</s>", "<unk>"]
    texts = gen.texts_for(rng, lines, added)
    texts += ["".join(rng.choice("ab ▁éa") for _ in range(rng.randint(1, 20))) for _ in range(6)]
    return rng, model, [t for t in dict.fromkeys(texts)]


def run_model(name, options):
    import sentencepiece
    rng, model, texts = model_and_texts(name, options)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    cases = []
    seen = []
    for t in texts:
        c = {"text": t, "ids": gen.attempt(lambda: sp.encode(t, out_type=int)), "pieces": gen.attempt(lambda: sp.encode(t, out_type=str))}
        ids = c["ids"] if isinstance(c["ids"], list) else []
        c["decoded"] = gen.attempt(lambda: sp.decode(ids))
        c["normalized"] = gen.attempt(lambda: sp.normalize(t))
        seen += ids
        cases.append(c)
    decodes = []
    for _ in range(30):
        ids = [rng.choice(seen) if seen and rng.random() < 0.5 else rng.randrange(sp.get_piece_size()) for _ in range(rng.randint(1, 12))]
        decodes.append({"ids": ids, "decoded": gen.attempt(lambda: sp.decode(ids))})
    return {"name": name, "options": options, "model": base64.b64encode(model).decode(), "size": sp.get_piece_size(), "cases": cases, "decodes": decodes}


class Original:
    """Stands for the slow tokenizer that a conversion starts from."""

    def __init__(self, vocab_file, ids):
        self.vocab_file, self.ids = vocab_file, ids
        self.add_prefix_space, self.legacy, self.keep_accents, self.do_lower_case, self.remove_space = True, True, False, True, True
        self._extra_ids, self.fairseq_offset, self.offset, self.padding_side = 5, 1, 3, "right"
        self.add_bos_token, self.add_eos_token = True, False
        self.additional_special_tokens, self.fairseq_tokens_to_ids, self.added_tokens_decoder = [], {}, {}
        self.num_madeup_words, self.madeup_words, self.split_by_punct, self.mask_token_sent, self.pad_token = 7, [f"<madeup{i}>" for i in range(7)], False, "<mask_1>", "<pad>"
        self.bos_token, self.eos_token, self.unk_token, self.cls_token, self.sep_token, self.mask_token = "<s>", "</s>", "<unk>", "<s>", "</s>", "<mask>"
        for t in ("bos", "eos", "unk", "cls", "sep", "pad", "mask"):
            setattr(self, t + "_token_id", ids.get(getattr(self, t + "_token"), 0))
        self.extra_special_tokens, self.vocab, self.lang_codes = [], ids, []

    def convert_tokens_to_ids(self, tokens):
        return [self.ids.get(t, 0) for t in tokens] if isinstance(tokens, (list, tuple)) else self.ids.get(tokens, 0)

    def convert_ids_to_tokens(self, ids):
        spelled = {i: t for t, i in self.ids.items()}
        return [spelled.get(i, self.unk_token) for i in ids] if isinstance(ids, (list, tuple)) else spelled.get(ids, self.unk_token)

    def __len__(self):
        return len(self.ids)


def merges_of(ids, scores):
    """Returns the merges that a model of scores stands for, in the order of the scores of what they make."""
    merges = []
    for piece, score in scores.items():
        local = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in ids and piece[i:] in ids]
        merges += [(a, b, score) for a, b in sorted(local, key=lambda m: (ids[m[0]], ids[m[1]]))]
    merges.sort(key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)
    return [(a, b) for a, b, _ in merges]


def extractor(module):
    """Returns an extractor of merges in the place of one that cannot read a BPE model."""
    class Extractor:
        def __init__(self, path):
            import sentencepiece
            self.sp = sentencepiece.SentencePieceProcessor(model_file=path)

        def extract(self, vocab_scores=None, *_, **__):
            ids = {self.sp.id_to_piece(i): i for i in range(self.sp.get_piece_size())}
            scores = dict(vocab_scores) if isinstance(vocab_scores, (list, tuple)) else {p: self.sp.get_score(i) for p, i in ids.items()}
            return ids, merges_of(ids, {p: s for p, s in scores.items() if p in ids})
    return Extractor


def converters():
    """Returns the names of the conversions from sentencepiece that this transformers has."""
    import importlib
    module = importlib.import_module("transformers.convert_slow_tokenizer")
    return sorted(n for n, c in vars(module).items() if inspect.isclass(c) and issubclass(c, module.SpmConverter))


def run_conversion(name, converter, options, legacy):
    import sentencepiece
    import importlib
    module = importlib.import_module("transformers.convert_slow_tokenizer")
    rng, model, texts = model_and_texts(name, options)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = {sp.id_to_piece(i): i for i in range(sp.get_piece_size())}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "spiece.model")
        with open(path, "wb") as f:
            f.write(model)
        original = Original(path, ids)
        original.legacy = legacy
        cls = getattr(module, converter)
        if options["model_type"] == "bpe" and hasattr(cls, "SpmExtractor"):
            cls.SpmExtractor = extractor(module)
        first = next(iter(list(inspect.signature(cls.__init__).parameters)[1:]), "")
        try:
            fast = cls(path if first == "vocab_file" else original).converted()
        except (AttributeError, TypeError):
            if first != "vocab_file":
                raise
            made = cls.__new__(cls)
            module.SpmConverter.__init__(made, original)
            fast = made.converted()
    text = fast.to_str()
    # What a slow tokenizer would add after the conversion.
    result = {"name": name, "options": options, "tokenizer": text}
    result.update(gen.evaluate(rng, text, texts))
    return result


def conversions(models):
    """Returns (name, arguments) of every conversion on some models of the kinds that fit."""
    try:
        names = converters()
    except BaseException as e:
        print("no conversions:", repr(e)[:300], file=sys.stderr)
        return []
    print("conversions:", *names, file=sys.stderr)
    unigram = [(n, o) for n, o in models.items() if o["model_type"] == "unigram" and not o.get("treat_whitespace_as_suffix") and o.get("escape_whitespaces", True)]
    bpe = [(n, o) for n, o in models.items() if o["model_type"] == "bpe" and o["byte_fallback"] and not o.get("treat_whitespace_as_suffix") and o.get("escape_whitespaces", True)]
    rng = random.Random(8)
    out = []
    for n in names:
        for m, o in rng.sample(unigram, min(2, len(unigram))) + rng.sample(bpe, min(2, len(bpe))):
            out.append((f"{n}-{m}", (n, o, rng.random() < 0.5)))
    return out


def child(job, path):
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    kind, name, args = job
    try:
        result = {"model": run_model, "conversion": run_conversion}[kind](name, *args)
    except BaseException as e:
        result = {"name": name, "error": f"{type(e).__name__}: {e}"[:500], "trace": traceback.format_exc()[-1500:]}
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(result, f)
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 4)
    parser.add_argument("--only", default="", help="part of a name")
    args = parser.parse_args()
    start = time.time()
    for folder in ("sentencepiece", "converted"):
        os.makedirs(os.path.join(args.out, folder), exist_ok=True)
    maps, errors = gen.charsmaps()
    with open(os.path.join(args.out, "charsmaps.json"), "w") as f:
        json.dump({"charsmaps": maps, "errors": errors}, f)
    models = plans()
    jobs = []

    def add(folder, kind, name, *job_args):
        path = os.path.join(args.out, folder, name + ".json")
        if args.only in name:
            if os.path.exists(path):
                os.remove(path)
            jobs.append((child, name, ((kind, name, job_args), path), path))

    for name, options in models.items():
        add("sentencepiece", "model", name, options)
    for name, job_args in conversions(models):
        add("converted", "conversion", name, *job_args)
    for line in gen.run_jobs(jobs, args.workers, 90):
        print(line, file=sys.stderr)
    gen.report(args.out, ("sentencepiece", "converted"))
    gen.pack(args.out, "sentencepiece.tar.xz", ("sentencepiece", "converted", "charsmaps.json"))
    print(f"done in {time.time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
