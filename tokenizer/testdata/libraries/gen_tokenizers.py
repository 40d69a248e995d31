"""Writes what the tokenizers library computes, for many tokenizers and texts.

    python3 gen_tokenizers.py OUT [--count 320] [--workers 16] [--only NAME]

OUT/tokenizers/*.json holds one tokenizer each, OUT/components/*.json single normalizers and
pre-tokenizers over all of Unicode; OUT/tokenizers.tar.xz holds both. Every case runs in a process of its
own: one that raises, dies or takes too long is recorded with its error.
"""

import argparse
import base64
import io
import json
import os
import random
import sys
import tarfile
import tempfile
import time
import traceback
import unicodedata
from multiprocessing import get_context
from multiprocessing.connection import wait

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

SPACE = "\u2581"

# ---------------------------------------------------------------- text

SCRIPTS = [
    "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz",
    "àáâãäåçèéêëìíîïñòóôõöøùúûüýÿšžœæßđłő", "абвгдежзийклмнопрстуфхцчшщыьэюяё",
    "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώ", "ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "אבגדהוזחטיכלמנסעפצקרשתםן",
    "अआइउकखगघचजटडतदनपबमयरलवशसह", "กขคงจชดตถทนบปพมยรลวสหอ", "的一是不了人我在有他这中大来上国个到说们",
    "あいうえおかきくけこさしすせそたちつてと", "アイウエオカキクケコサシスセソ", "가나다라마바사아자차카타파하한글국어",
    "აბგდევზთიკლმნ", "աբգդեզէըթ", "ءآأؤإئابة",
]


def lexicon(rng, n=700):
    words = []
    for _ in range(n):
        script = rng.choice(SCRIPTS)
        word = "".join(rng.choice(script) for _ in range(rng.randint(1, 8)))
        form = rng.random()
        if form < 0.15:
            word = word.capitalize()
        elif form < 0.2:
            word = word.upper()
        words.append(word)
    return words


MARKS = [".", ",", "!", "?", ";", ":", "'s", "n't", " - ", "...", '"', "(", ")", "/", "_", "=", "\u3002", "\uff0c"]


def corpus(rng, lines=260):
    words = lexicon(rng)
    common = [rng.choice(words) for _ in range(60)]
    out = []
    for _ in range(lines):
        parts = []
        for _ in range(rng.randint(3, 12)):
            r = rng.random()
            if r < 0.5:
                parts.append(rng.choice(common))
            elif r < 0.85:
                parts.append(rng.choice(words))
            elif r < 0.93:
                parts.append(str(rng.randint(0, 10 ** rng.randint(1, 6))))
            else:
                parts.append(rng.choice(["😀", "👍🏽", "e\u0301", "don't", "for(i=0;i<n;i++){", "\t", "x=1", "naïve", "ﬁn"]))
            if rng.random() < 0.2:
                parts[-1] += rng.choice(MARKS)
        out.append(" ".join(parts))
    return out


FIXED = [
    "", " ", "  ", "   a", "\n", "\r\n\r\n", "\t\t x", "a", " a ", "Hello, world!", "hello  world   again",
    "I don't, won't; we'll she'd THEY'RE 'S it's 'tis ' s", "x=1;\n\tif (a<b) {return a[0]; } // end\n", "3.14159 1,000,000 ½ ² ٣٤ ൫ Ⅷ 12345678",
    "naïve café Ångström ÅNGSTRÖM İstanbul ıI ß ẞ ǅ", "e\u0301a\u0308o\u0323\u0302 A\u030a q\u0307\u0323", "Привет, мир! Ёлка",
    "ὈΔΥΣΣΕΎΣ ς Σ ΑΣ. ΑΣΑ", "مرحبا بالعالم ١٢٣ ـــ", "שָׁלוֹם עולם", "नमस्ते दुनिया क्षि", "สวัสดีชาวโลก กำ", "你好，世界。中文ABC混排123",
    "こんにちは世界カタカナｶﾞｷﾞーー々", "안녕하세요 세계 \u1112\u1161\u11ab 각\u11a8", "😀👍🏽👩‍👩‍👧‍👦🇫🇷🏴\U000e0067\U000e0062☺️ ©®",
    "\x00\x01\x07\x1f\x7f\x80\x85\x9f\xad a\u200bb\u200cc\u200dd\ufeffe", "a\u00a0b\u2003c\u2028d\u2029e\u3000f\u1680g\u202fh\u205fi",
    "\ufffd \ufffe \U0010ffff \ue000 \U000f0000", "ﬁ ﬂ ﬃ ｆｕｌｌ Ｗｉｄｔｈ ① ㌔ ㎏ ™ … ‥ ℌ ﷺ ㈱", "--- *** ___ ### $$$ %%% ^^^ ~~~ ``` ''quoted''",
    "`` '' do not n't 'm . ? ! , a . b ' c", "A.B.C. U.S.A... what?!?! no--yes", "▁▁a▁b ▁ Ġa Ċ </w> ## ##a @@ | <0x41> <0x> <unk>",
    "<s> </s> [UNK] [CLS] [SEP] [PAD] <unk>[UNK]x", "don\u2019t \u2018a\u2019 \u201cb\u201d \u2013 \u2014 «c»", "CamelCaseString snake_case_name kebab-case HTTPServer2Go",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abcabcabcabcabcabc ababababab", "\u0301 \u0301a \u200d \ufe0f \u20e3 1\ufe0f\u20e3",
    "http://example.com/a?b=c&d=%20#e user@host.org", "  \n  \n\n   x  \t\r\n y \x0b\x0c z\u0085", "Ⅷ ⅷ Ⓐ ⓐ ʰ ᵃ ª º ﬀ ǆ Ǆ ŉ ẚ", "𝐀𝒜𝔸 𐐀𐐨 𞤀𞤢 𑜀 𒀀",
    "\u0f71\u0f72\u0f74 \u0344 \u2126 \u212b \uf900 \U0002f800 \u0958 \ufb1d \u09cb", "가각갂 ㄱㅏ ﾡￂ", "word 'word' \"word\" (word) [word] {word} <word>",
]


def assigned(rng):
    ranges = [(0, 0x250), (0x250, 0x600), (0x600, 0x1100), (0x1100, 0x2000), (0x2000, 0x3400), (0x3400, 0xa000),
              (0xa000, 0xd7a4), (0xe000, 0x10000), (0x10000, 0x11800), (0x1d000, 0x1fb00), (0x20000, 0x20100)]
    while True:
        lo, hi = rng.choice(ranges)
        c = chr(rng.randrange(lo, hi))
        if unicodedata.category(c) not in ("Cn", "Cs"):
            return c


BITS = [" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2003", "\u0301", "\u0308", "\u0323", "\u200d", "\ufe0f",
        "😀", "👍🏽", "🇩🇪", ".", ",", "!", "?", "'", "'s", "'LL", "n't", '"', "-", "_", "/", "(", ")", "#", "##", "$", "0", "42", "1234567",
        "½", "٣", "Ⅷ", "a", "B", "é", "e\u0301", "İ", "ß", "Σ", "ς", "ﬁ", "ｱﾞ", "ー", "漢", "か", "カ", "한", "ع", "א", "क्", "ก", "ำ",
        "▁", "Ġ", "\x00", "\x7f", "\u200b", "\ufeff", "\ufffd", "do not", " n't", "<0x41>", "|", "</w>", "`", "``", "''", "€", "+", "<", "=", "^", "~", "、", "。", "「", "¿", "·", "٪"]


def jumble(rng, words, added=()):
    parts = []
    for _ in range(rng.randint(1, 14)):
        r = rng.random()
        if added and r < 0.25:
            parts.append(rng.choice(added))
        elif r < 0.5:
            parts.append(rng.choice(words))
        elif r < 0.85:
            parts.append(rng.choice(BITS))
        else:
            parts.append(assigned(rng))
        if rng.random() < 0.3:
            parts.append(" ")
    return "".join(parts)


def texts_for(rng, lines, added=()):
    words = " ".join(lines[:80]).split()
    out = list(FIXED) + rng.sample(lines, 3)
    added = list(added)
    for t in rng.sample(added, min(7, len(added))):
        out += [f"a{t}b", f"x  {t} \n y{t}", rng.choice([t, t + t, f" {t}", f"{t} ", t.upper(), t.lower(), t[:-1] + " " + t, f"\n{t}\t", f"1{t}.", f"\u0301{t}\u0301", f"_{t}_"])]
    if added:
        out += ["".join(rng.choice(added) for _ in range(6)), " ".join(rng.choice(added) for _ in range(6))]
    out += [jumble(rng, words, added) for _ in range(18)]
    return list(dict.fromkeys(out))


# ---------------------------------------------------------------- charsmaps

def proto_fields(data):
    """Yields the fields of a protocol buffer message as (number, value)."""
    at = 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            b = data[at]
            at += 1
            n |= (b & 127) << shift
            shift += 7
            if b < 128:
                return n

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        elif kind == 1:
            yield key >> 3, data[at:at + 8]
            at += 8
        elif kind == 2:
            n = varint()
            yield key >> 3, data[at:at + n]
            at += n
        else:
            yield key >> 3, data[at:at + 4]
            at += 4


def charsmap_of(model):
    for number, value in proto_fields(model):
        if number == 3:
            for inner, content in proto_fields(value):
                if inner == 2:
                    return content
    return b""


RULES = ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity", "nfc", "nfd", "nfkd", "nfc_cf", "nfd_cf", "nfkd_cf"]

# A rule of one's own: code points in hexadecimal, what they become after a tab.
CUSTOM = [("41", "61 61"), ("41 42", "78"), ("E9", "65 301"), ("65 301", "E9"), ("20AC", ""), ("2019", "27"), ("3042 3044", "30A2"),
          ("1F600", "3A 29"), ("9", "20"), ("A", "20"), ("2581", "5F"), ("AD", "")]


def charsmaps():
    """Returns the precompiled charsmaps of sentencepiece by rule, in base64, and errors by rule."""
    maps, errors = {"empty": ""}, {}
    try:
        import sentencepiece
    except Exception as e:
        return maps, {"sentencepiece": repr(e)}
    rng = random.Random(5)
    lines = [" ".join("".join(rng.choice("abcdefgh") for _ in range(5)) for _ in range(6)) for _ in range(60)]
    with tempfile.TemporaryDirectory() as folder:
        rules = os.path.join(folder, "rules.tsv")
        with open(rules, "w") as f:
            f.writelines(f"{a}\t{b}\n" for a, b in CUSTOM)
        for rule in RULES + ["custom"]:
            out = io.BytesIO()
            how = {"normalization_rule_tsv": rules} if rule == "custom" else {"normalization_rule_name": rule}
            try:
                sentencepiece.SentencePieceTrainer.train(
                    sentence_iterator=iter(lines), model_writer=out, model_type="char", vocab_size=12, hard_vocab_limit=False,
                    minloglevel=2, num_threads=1, **how)
                maps[rule] = base64.b64encode(charsmap_of(out.getvalue())).decode()
            except BaseException as e:
                errors[rule] = repr(e)[:300]
    return maps, errors


# ---------------------------------------------------------------- components

BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def string(s):
    return {"String": s}


def regex(s):
    return {"Regex": s}


CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
TEKKEN = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"\p{N}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def byte_level(prefix=False, use_regex=True, trim=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": use_regex}


def metaspace(scheme="always", split=True, char=SPACE):
    return {"type": "Metaspace", "replacement": char, "prepend_scheme": scheme, "split": split}


def split(pattern, behavior, invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def bert(clean, chinese, accents, lower):
    return {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": accents, "lowercase": lower}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def pieces(*list_):
    return {"type": "Sequence", "pretokenizers": list(list_)}


def normal(*list_):
    return {"type": "Sequence", "normalizers": list(list_)}


def normalizer_options(maps):
    flags = (False, True)
    out = {
        "none": [None],
        "NFC": [{"type": "NFC"}], "NFD": [{"type": "NFD"}], "NFKC": [{"type": "NFKC"}], "NFKD": [{"type": "NFKD"}],
        "Nmt": [{"type": "Nmt"}], "Lowercase": [{"type": "Lowercase"}], "StripAccents": [{"type": "StripAccents"}],
        "Strip": [{"type": "Strip", "strip_left": l, "strip_right": r} for l in flags for r in flags],
        "ReplaceString": [replace(string(a), b) for a, b in [(" ", SPACE), ("``", '"'), ("a", ""), ("a", "aa"), ("é", "e"), ("\n", " "), ("ab", "ba"), (SPACE, " ")]],
        "ReplaceRegex": [replace(regex(a), b) for a, b in [
            (" {2,}", " "), (r"\s+", " "), (r"[0-9]", "0"), (r"\p{M}", ""), (r"(a|b)+", "c"), (r"\d+", "#"), (r"[^\x00-\x7F]+", "?"), (r"\n+", "\n"),
            (r"(?<=a)b", "x"), (r"^ +", ""), (r" +$", ""), (r"\w+(?= )", "w"), (r"\bA", "a"), (r".", "-"), (r"[[:punct:]]", "!"), (r"(?i)HELLO", "bye")]],
        "Prepend": [{"type": "Prepend", "prepend": p} for p in [SPACE, " ", "<<", "é", ""]],
        "Bert": [bert(c, h, a, l) for c in flags for h in flags for a in (None, False, True) for l in flags],
        "Precompiled": [{"type": "Precompiled", "precompiled_charsmap": m} for m in maps.values()],
        "ByteLevel": [{"type": "ByteLevel"}],
        "Sequence": [
            normal({"type": "Prepend", "prepend": SPACE}, replace(string(" "), SPACE)), normal({"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}),
            normal({"type": "NFKC"}, replace(regex(" {2,}"), " ")), normal({"type": "Nmt"}, {"type": "NFKC"}, {"type": "Strip", "strip_left": True, "strip_right": True}),
            normal(replace(string("``"), '"'), replace(string("''"), '"'), {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}),
            normal({"type": "StripAccents"}, {"type": "NFC"}), normal({"type": "NFC"}, replace(regex(r"\s+"), " "), {"type": "Lowercase"}), normal(),
            normal({"type": "Strip", "strip_left": True, "strip_right": False}, {"type": "Prepend", "prepend": SPACE}, replace(string(" "), SPACE)),
            normal(bert(True, True, None, True), {"type": "NFC"}), normal({"type": "NFC"}, {"type": "ByteLevel"}), normal({"type": "Lowercase"}, {"type": "Lowercase"}, {"type": "NFKD"}),
            normal({"type": "Precompiled", "precompiled_charsmap": maps.get("nmt_nfkc", "")}, replace(regex(" {2,}"), SPACE)),
        ],
    }
    return out


def splitter_options():
    flags = (False, True)
    return {
        "none": [None],
        "ByteLevel": [byte_level(p, r, t) for p in flags for r in flags for t in flags],
        "Whitespace": [{"type": "Whitespace"}], "WhitespaceSplit": [{"type": "WhitespaceSplit"}],
        "Metaspace": [metaspace(s, b) for s in ("always", "first", "never") for b in flags] + [metaspace("always", True, "_"), metaspace("first", True, "_"),
                      {"type": "Metaspace", "replacement": SPACE, "add_prefix_space": True}, {"type": "Metaspace", "replacement": SPACE, "add_prefix_space": False, "prepend_scheme": "never"}],
        "Punctuation": [{"type": "Punctuation", "behavior": b} for b in BEHAVIORS],
        "Digits": [{"type": "Digits", "individual_digits": d} for d in flags],
        "CharDelimiterSplit": [{"type": "CharDelimiterSplit", "delimiter": d} for d in (" ", "a", "é", SPACE, "|")],
        "SplitString": [split(string(s), b, i) for s in (" ", "a", "ab", "\n", "é") for b in BEHAVIORS for i in flags]
            + [split(string(""), "Isolated"), split(string(""), "Removed", True)],
        "SplitRegex": [split(regex(r), b, i) for r, b, i in [
            (LLAMA3, "Isolated", False), (LLAMA3, "Removed", True), (QWEN2, "Isolated", False), (O200K, "Isolated", False), (O200K, "Removed", True), (TEKKEN, "Isolated", False),
            (GPT2, "Isolated", False), (GPT2, "Contiguous", False), (BLOOM, "Isolated", False), (DEEPSEEK, "Isolated", False), (CLIP, "Removed", True), (LLAMA3, "Removed", False),
            ("(?:\\r?\\n)+(?!\\r?\\n)", "Isolated", False), (r"[0-9][0-9][0-9]", "Isolated", False), (r"\p{N}{1,3}", "Isolated", False), (r"\d{1,3}(?=(?:\d{3})*\b)", "Isolated", False)]]
            + [split(regex(r), b, i) for r in (r"\s+", r"\d", r"[A-Z][a-z]+", r"\w+|[^\w\s]+", r"\p{P}|\p{S}", r"[一-龥぀-ゟ゠-ヿ]+") for b in BEHAVIORS for i in flags],
        "UnicodeScripts": [{"type": "UnicodeScripts"}], "BertPreTokenizer": [{"type": "BertPreTokenizer"}],
        "FixedLength": [{"type": "FixedLength", "length": n} for n in (1, 2, 3, 5, 17)],
        "Sequence": [
            pieces({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(False, True), {"type": "Digits", "individual_digits": False}, split(regex("[0-9][0-9][0-9]"), "Isolated")),
            pieces({"type": "Digits", "individual_digits": True}, byte_level(False, True)), pieces(split(regex(LLAMA3), "Isolated"), byte_level(False, False)),
            pieces(split(regex(r"\p{N}{1,3}"), "Isolated"), split(regex("[一-龥぀-ゟ゠-ヿ]+"), "Isolated"), split(regex(DEEPSEEK), "Isolated"), byte_level(False, False)),
            pieces({"type": "WhitespaceSplit"}, metaspace("always")), pieces({"type": "WhitespaceSplit"}, metaspace("first")), pieces(metaspace("first"), {"type": "Digits", "individual_digits": True}),
            pieces({"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}), pieces({"type": "UnicodeScripts"}, metaspace("always", False)),
            pieces({"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}), pieces(byte_level(True, True), byte_level(True, True)), pieces(),
            pieces(split(string(" "), "MergedWithNext"), split(regex(r"\d+"), "MergedWithPrevious", True), byte_level(True, False)),
            pieces({"type": "BertPreTokenizer"}, {"type": "FixedLength", "length": 3}), pieces(split(regex(CLIP), "Removed", True), byte_level(False, True)),
            pieces(pieces({"type": "Digits", "individual_digits": False}), {"type": "CharDelimiterSplit", "delimiter": "a"}),
            pieces(split(regex("[\\r\\n]"), "Isolated"), split(regex(r"\s?[A-Za-zµÀ-ÖØ-öø-ƺ]+"), "Isolated"), split(regex(r"\s?\p{P}+"), "Isolated"), {"type": "Digits", "individual_digits": True}, byte_level(False, False)),
        ],
    }


def decoder_options():
    flags = (False, True)

    def steps(*list_):
        return {"type": "Sequence", "decoders": list(list_)}

    strip = lambda c, a, b: {"type": "Strip", "content": c, "start": a, "stop": b}
    fallback, fuse = {"type": "ByteFallback"}, {"type": "Fuse"}
    return {
        "none": [None], "ByteLevel": [byte_level()], "WordPiece": [{"type": "WordPiece", "prefix": "##", "cleanup": c} for c in flags] + [{"type": "WordPiece", "prefix": "@@", "cleanup": True}],
        "Metaspace": [metaspace(s, True) for s in ("always", "first", "never")] + [metaspace("always", False, "_"), {"type": "Metaspace", "replacement": SPACE, "add_prefix_space": True}],
        "BPEDecoder": [{"type": "BPEDecoder", "suffix": s} for s in ("</w>", "@@", "e")],
        "CTC": [{"type": "CTC", "pad_token": p, "word_delimiter_token": "|", "cleanup": c} for p in ("[PAD]", "a") for c in flags],
        "ByteFallback": [fallback], "Fuse": [fuse], "Strip": [strip(" ", 1, 0), strip("a", 2, 1), strip(SPACE, 1, 1), strip("\n", 0, 2)],
        "Replace": [replace(string(SPACE), " "), replace(regex(r"\s+"), " "), replace(string("a"), ""), replace(regex(r"[0-9]"), "0"), replace(string("</w>"), " ")],
        "Sequence": [
            steps(replace(string(SPACE), " "), fallback, fuse, strip(" ", 1, 0)), steps(replace(string(SPACE), " "), fallback, fuse), steps(fallback, metaspace()), steps(metaspace(), fuse, replace(string("  "), " ")),
            steps(byte_level(), strip(" ", 1, 0)), steps({"type": "WordPiece", "prefix": "##", "cleanup": False}, fuse, strip(" ", 1, 1)), steps(fuse, metaspace("always")), steps(),
            steps(fuse, replace(string("ab"), "x"), strip("x", 1, 1)), steps({"type": "CTC", "pad_token": "[PAD]", "word_delimiter_token": "|", "cleanup": True}, fuse), steps(replace(string(" "), ""), byte_level()),
            steps(steps(replace(string("_"), " ")), fallback), steps({"type": "BPEDecoder", "suffix": "</w>"}, fuse, replace(regex(" +"), " ")), steps(fallback, byte_level()), steps(byte_level(), fallback, fuse),
            steps(metaspace("never"), {"type": "WordPiece", "prefix": "##", "cleanup": True}),
        ],
    }


POSTS = ["none", "TemplateSingle", "TemplatePair", "Bert", "Roberta", "ByteLevel", "Sequence"]


def post(rng, kind, ids):
    """Returns a post-processor; ids are those of the special tokens by their text."""
    def special(t, n=0):
        return {"SpecialToken": {"id": t, "type_id": n}}

    def sequence(s, n=0):
        return {"Sequence": {"id": s, "type_id": n}}

    def template(single, pair, names):
        return {"type": "TemplateProcessing", "single": single, "pair": pair,
                "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in names}}

    both = [sequence("A"), sequence("B", 1)]
    one = [[special("<s>"), sequence("A"), special("</s>")], [special("<s>"), sequence("A")], [sequence("A"), special("</s>")], [sequence("A")],
           [special("[CLS]"), special("<s>"), sequence("A"), special("[SEP]"), special("[SEP]")]]
    if kind == "TemplateSingle":
        return template(rng.choice(one), both, ["<s>", "</s>", "[CLS]", "[SEP]"])
    if kind == "TemplatePair":
        t = template([special("[CLS]"), sequence("A", 1), special("[SEP]", 2)], [special("[CLS]"), sequence("A"), special("[SEP]"), sequence("B", 1), special("[SEP]", 1)], ["[CLS]", "[SEP]"])
        if rng.random() < 0.5:  # one name, several ids
            t["special_tokens"]["[SEP]"] = {"id": "[SEP]", "ids": [ids["[SEP]"], ids["</s>"]], "tokens": ["[SEP]", "</s>"]}
        return t
    if kind == "Bert":
        return {"type": "BertProcessing", "sep": ["[SEP]", ids["[SEP]"]], "cls": ["[CLS]", ids["[CLS]"]]}
    if kind == "Roberta":
        return {"type": "RobertaProcessing", "sep": ["</s>", ids["</s>"]], "cls": ["<s>", ids["<s>"]], "trim_offsets": rng.random() < 0.5, "add_prefix_space": rng.random() < 0.5}
    if kind == "ByteLevel":
        return byte_level(True, True, False)
    if kind == "Sequence":
        list_ = [byte_level(True, True, False), template(rng.choice(one), both, ["<s>", "</s>", "[CLS]", "[SEP]"])]
        if rng.random() < 0.4:
            list_.append({"type": "BertProcessing", "sep": ["[SEP]", ids["[SEP]"]], "cls": ["[CLS]", ids["[CLS]"]]})
        return {"type": "Sequence", "processors": list_}
    return None


SPECIALS = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "<s>", "</s>"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
MODELS = ["bpe", "bpe-bytes", "bpe-fallback", "bpe-affix", "wordpiece", "wordlevel", "unigram", "unigram-fallback"]

# Added tokens: content and options, s special, n normalized, w single_word, l lstrip, r rstrip.
ADDED = {
    "none": [],
    "special": [("<|im_start|>", "s"), ("<|im_end|>", "s"), ("<mask>", "sl"), ("<|eot|>", "s"), ("<pad>", "s"), ("<sep> ", "s")],
    "strips": [("<l>", "l"), ("<r>", "r"), ("<lr>", "lr"), ("<ls>", "ls"), ("<rs>", "rs"), ("<lrs>", "lrs"), ("<ln>", "ln"), ("<rn>", "rn"), ("<lrw>", "lrw")],
    "words": [("wd", "w"), ("foo", "wn"), ("Bar", "ws"), ("été", "wn"), ("42", "w"), ("<w>", "w"), ("_x", "wn"), ("漢字", "w"), ("w-d", "wl")],
    "normalized": [("HELLO", "n"), ("Café", "n"), ("<|N|>", "n"), ("ＦＵＬＬ", "n"), ("<SN>", "sn"), ("e\u0301e\u0301", "n"), (" sp ", "n"), ("ﬁn", "sn"), ("Raw", ""), ("RaW", "n")],
    "overlapping": [("aa", ""), ("aaa", ""), ("aaaa", "s"), ("ab", "n"), ("abc", "n"), ("bca", ""), ("<a", ""), ("<a>", "s"), ("<a><b>", "n"), ("b>", ""), ("<a>", "n")],
    "spaces": [("hello world", ""), (" ", ""), ("  ", "n"), ("\n", "s"), ("\n\n", ""), ("a b", "w"), ("\t", "l"), (" x", "r"), ("   ", ""), ("\u3000", "n")],
    "odd": [(SPACE, "n"), ("Ġ", ""), ("\u0301", "n"), ("é", "n"), ("😀", ""), ("##", ""), ("</w>", "n"), ("[UNK]", "n"), ("<0x41>", ""), ("\x00", ""), ("\u200d", "s"), ("ß", "n"), ("한", "n")],
    "digits": [("1", ""), ("2", "n"), ("10", ""), ("100", "s"), ("007", "w")] + [(f"<extra_{i}>", "slr"[: 1 + i % 3]) for i in range(12)],
}


def added_token(content, flags):
    from tokenizers import AddedToken
    return AddedToken(content, single_word="w" in flags, lstrip="l" in flags, rstrip="r" in flags, normalized="n" in flags, special="s" in flags)


def train(rng, kind, normalizer, splitter, lines, size):
    """Returns the tokenizer.json of a trained tokenizer, as an object."""
    from tokenizers import Tokenizer, pre_tokenizers, trainers
    prefix = suffix = None
    limit = rng.choice([None, None, 150, 400])
    if kind == "bpe-affix":
        prefix, suffix = rng.choice([("##", None), (None, "</w>"), ("@@", "</w>"), ("##", "</w>"), (None, "@")])
    base = kind.split("-")[0]
    model = {"bpe": {"type": "BPE", "dropout": None, "unk_token": "[UNK]", "continuing_subword_prefix": prefix, "end_of_word_suffix": suffix,
                     "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {}, "merges": []},
             "wordpiece": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {}},
             "wordlevel": {"type": "WordLevel", "vocab": {}, "unk_token": "[UNK]"},
             "unigram": {"type": "Unigram", "unk_id": None, "vocab": [], "byte_fallback": False}}[base]
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
            "pre_tokenizer": splitter, "post_processor": None, "decoder": None, "model": model}
    tok = Tokenizer.from_str(json.dumps(file))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if kind == "bpe-bytes" or "ByteLevel" in json.dumps(splitter) + json.dumps(normalizer) else []
    common = {"vocab_size": size, "show_progress": False, "special_tokens": SPECIALS}
    if base == "bpe":
        common["initial_alphabet"] = alphabet
        if prefix is not None:
            common["continuing_subword_prefix"] = prefix
        if suffix is not None:
            common["end_of_word_suffix"] = suffix
        if limit and not alphabet:
            common["limit_alphabet"] = limit
        if rng.random() < 0.3:
            common["max_token_length"] = rng.choice([3, 6, 12])
        trainer = trainers.BpeTrainer(**common)
    elif base == "wordpiece":
        common["initial_alphabet"] = alphabet
        if limit and not alphabet:
            common["limit_alphabet"] = limit
        if rng.random() < 0.3:
            prefix = rng.choice(["@@", SPACE, "e"])
            file["model"]["continuing_subword_prefix"] = prefix
            tok = Tokenizer.from_str(json.dumps(file))
            common["continuing_subword_prefix"] = prefix
        trainer = trainers.WordPieceTrainer(**common)
    elif base == "wordlevel":
        trainer = trainers.WordLevelTrainer(**common)
    else:
        trainer = trainers.UnigramTrainer(unk_token="[UNK]", initial_alphabet=alphabet, max_piece_length=rng.choice([8, 16]), **common)
    tok.train_from_iterator(lines, trainer)
    return json.loads(tok.to_str())


def vary(rng, kind, file):
    """Sets in a trained tokenizer what a trainer cannot."""
    model = file["model"]
    base = kind.split("-")[0]
    trained = {a["content"]: a["id"] for a in file["added_tokens"]}
    if base == "bpe":
        model["unk_token"] = rng.choice(["[UNK]", "[UNK]", None])
        model["fuse_unk"] = rng.random() < 0.5
        model["ignore_merges"] = rng.random() < 0.3
        if rng.random() < 0.2:
            model["dropout"] = 0.0
    if kind.endswith("fallback"):
        model["byte_fallback"] = True
        some = list(BYTES)
        if rng.random() < 0.3:  # a character of which a byte is missing becomes unknown
            some = [b for b in some if rng.random() < 0.97]
        if base == "bpe":
            n = 1 + max(model["vocab"].values())
            for i, b in enumerate(some):
                model["vocab"].setdefault(b, n + i)
        else:
            model["vocab"] += [[b, rng.choice([0.0, -10.0, -20.0])] for b in some]
    elif rng.random() < 0.1:  # byte_fallback without bytes
        if base in ("bpe", "unigram"):
            model["byte_fallback"] = True
    if base == "unigram" and rng.random() < 0.25:  # equal scores
        for entry in model["vocab"]:
            entry[1] = round(entry[1])
    if base == "wordpiece" and rng.random() < 0.5:
        model["max_input_chars_per_word"] = rng.choice([3, 10, 200])
    return trained


def finish(rng, file, added, jumbled):
    """Returns the text of a tokenizer.json with more added tokens, as the library writes it."""
    from tokenizers import Tokenizer
    tok = Tokenizer.from_str(json.dumps(file))
    for content, flags in added:
        t = added_token(content, flags)
        if "s" in flags:
            tok.add_special_tokens([t])
        else:
            tok.add_tokens([t])
    text = tok.to_str()
    if jumbled:
        file = json.loads(text)
        rng.shuffle(file["added_tokens"])
        text = json.dumps(file, ensure_ascii=False)
    return text


def attempt(f):
    """Returns what f returns, or an object with the error: panics of the library come as exceptions."""
    try:
        return f()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:
        return {"error": f"{type(e).__name__}: {e}"[:300]}


def evaluate(rng, text, texts):
    """Returns what the library computes of texts with a tokenizer.json. A field that it fails at is an object."""
    from tokenizers import Tokenizer
    tok = Tokenizer.from_str(text)
    tok.no_truncation()
    tok.no_padding()
    cases, seen = [], []
    for t in texts:
        c = {"text": t}
        c["ids"] = attempt(lambda: tok.encode(t, add_special_tokens=False).ids)
        c["ids_special"] = attempt(lambda: tok.encode(t, add_special_tokens=True).ids)
        c["decoded"] = attempt(lambda: tok.decode(c["ids"], skip_special_tokens=False)) if isinstance(c["ids"], list) else {"error": "no ids"}
        c["decoded_skip"] = attempt(lambda: tok.decode(c["ids_special"], skip_special_tokens=True)) if isinstance(c["ids_special"], list) else {"error": "no ids"}
        if isinstance(c["ids"], list):
            seen += c["ids"]
        cases.append(c)
    vocab = tok.get_vocab(with_added_tokens=True)
    highest = max(vocab.values(), default=0)
    late = [i for i in vocab.values() if i > highest - 30] or [0]
    byte_ids = [vocab[b] for b in BYTES if b in vocab]
    seen = seen or [0]
    decodes = []
    for n in range(24):
        ids = []
        for _ in range(rng.randint(1, 14)):
            r = rng.random()
            if r < 0.4:
                ids.append(rng.choice(seen))
            elif r < 0.6:
                ids.append(rng.randint(0, highest))
            elif r < 0.75:
                ids.append(rng.choice(late))
            elif r < 0.9 and byte_ids:
                ids += [rng.choice(byte_ids) for _ in range(rng.randint(1, 3))]
            elif r < 0.93:
                ids.append(highest + rng.randint(1, 9))
            else:
                ids += [rng.choice(seen)] * 2
        decodes.append({"ids": ids, "decoded": attempt(lambda: tok.decode(ids, skip_special_tokens=False)),
                        "decoded_skip": attempt(lambda: tok.decode(ids, skip_special_tokens=True))})
    return {"cases": cases, "decodes": decodes}


# ---------------------------------------------------------------- plans

class Deck:
    """Deals the options of a list in a shuffled order again and again, so that each comes up."""

    def __init__(self, rng, options):
        self.rng, self.options, self.left = rng, options, []

    def deal(self):
        if not self.left:
            self.left = list(range(len(self.options)))
            self.rng.shuffle(self.left)
        return self.options[self.left.pop()]


def plans(maps, count):
    """Returns combinations that cover as many pairs of families as there can be."""
    rng = random.Random(20)
    slots = {"model": {m: [m] for m in MODELS}, "normalizer": normalizer_options(maps), "splitter": splitter_options(),
             "post": {p: [p] for p in POSTS}, "decoder": decoder_options(), "added": {a: [a] for a in ADDED}}
    names = list(slots)
    decks = {s: {f: Deck(rng, o) for f, o in families.items()} for s, families in slots.items()}
    open_ = {(a, x, b, y) for i, a in enumerate(names) for b in names[i + 1:] for x in slots[a] for y in slots[b]}
    total = len(open_)
    out = []

    def pairs(choice):
        return {(a, choice[a], b, choice[b]) for i, a in enumerate(names) for b in names[i + 1:]}

    for n in range(count):
        best, gain = None, -1
        left = sorted(open_)
        for _ in range(80):
            choice = {s: rng.choice(list(slots[s])) for s in names}
            if left:
                a, x, b, y = rng.choice(left)
                choice[a], choice[b] = x, y
                for c, z, d, w in rng.sample(left, min(40, len(left))):  # more that fit
                    if {c, d}.isdisjoint((a, b)) and rng.random() < 0.5:
                        choice[c], choice[d] = z, w
            g = len(pairs(choice) & open_)
            if g > gain:
                best, gain = choice, g
        open_ -= pairs(best)
        plan = {s: decks[s][best[s]].deal() for s in names}
        plan["families"] = best
        plan["seed"] = 1000 + n
        plan["name"] = f"{n:03d}-" + "-".join(best[s] for s in ("model", "normalizer", "splitter", "decoder"))
        out.append(plan)
    print(f"{total - len(open_)} of {total} pairs of families", file=sys.stderr)
    return out


def known_plans(maps):
    """Returns the pipelines of published models, each with several seeds."""
    d = decoder_options()["Sequence"]
    charsmap = {"type": "Precompiled", "precompiled_charsmap": maps.get("nmt_nfkc", "")}
    squeeze = replace(regex(" {2,}"), SPACE)
    n = None
    # model, normalizer, pre-tokenizer, post-processor, decoder
    known = {
        "gpt2": ("bpe-bytes", n, byte_level(), "ByteLevel", byte_level()), "roberta": ("bpe-bytes", n, byte_level(True), "Roberta", byte_level()),
        "llama3": ("bpe-bytes", n, pieces(split(regex(LLAMA3), "Isolated"), byte_level(False, False)), "Sequence", byte_level()),
        "qwen2": ("bpe-bytes", {"type": "NFC"}, pieces(split(regex(QWEN2), "Isolated"), byte_level(False, False)), "ByteLevel", byte_level()),
        "o200k": ("bpe-bytes", n, pieces(split(regex(O200K), "Isolated"), byte_level(False, False)), "none", byte_level()),
        "tekken": ("bpe-bytes", n, pieces(split(regex(TEKKEN), "Isolated"), byte_level(False, False)), "TemplateSingle", byte_level()),
        "deepseek": ("bpe-bytes", normal(), splitter_options()["Sequence"][3], "TemplateSingle", byte_level()),
        "falcon": ("bpe-bytes", n, splitter_options()["Sequence"][0], "none", byte_level()), "starcoder": ("bpe-bytes", n, splitter_options()["Sequence"][1], "none", byte_level()),
        "deepseek-coder": ("bpe-bytes", n, splitter_options()["Sequence"][16], "none", byte_level()),
        "bloom": ("bpe-bytes", n, pieces(split(regex(BLOOM), "Isolated"), byte_level(False, False)), "ByteLevel", byte_level()),
        "neox": ("bpe-bytes", {"type": "NFC"}, byte_level(), "ByteLevel", byte_level()), "command-r": ("bpe-bytes", {"type": "NFC"}, splitter_options()["Sequence"][1], "TemplateSingle", byte_level()),
        "llama2": ("bpe-fallback", normal({"type": "Prepend", "prepend": SPACE}, replace(string(" "), SPACE)), n, "TemplateSingle", d[0]),
        "gemma": ("bpe-fallback", replace(string(" "), SPACE), split(string(" "), "MergedWithPrevious"), "TemplateSingle", d[1]),
        "mistral-new": ("bpe-fallback", n, metaspace("first", False), "TemplateSingle", d[0]),
        "clip": ("bpe-affix", normal({"type": "NFC"}, replace(regex(r"\s+"), " "), {"type": "Lowercase"}), pieces(split(regex(CLIP), "Removed", True), byte_level()), "Roberta", byte_level()),
        "openai-gpt": ("bpe-affix", bert(True, True, None, True), {"type": "BertPreTokenizer"}, "none", {"type": "BPEDecoder", "suffix": "</w>"}),
        "bert": ("wordpiece", bert(True, True, None, True), {"type": "BertPreTokenizer"}, "TemplatePair", {"type": "WordPiece", "prefix": "##", "cleanup": True}),
        "bert-cased": ("wordpiece", bert(True, True, False, False), {"type": "BertPreTokenizer"}, "Bert", {"type": "WordPiece", "prefix": "##", "cleanup": True}),
        "modern-bert": ("bpe-bytes", {"type": "NFC"}, byte_level(), "TemplateSingle", byte_level()),
        "t5": ("unigram", normal(charsmap, squeeze), metaspace(), "TemplateSingle", metaspace()),
        "xlm-r": ("unigram", charsmap, pieces({"type": "WhitespaceSplit"}, metaspace()), "TemplateSingle", metaspace()),
        "xlm-r-new": ("unigram", normal(charsmap, replace(regex(" {2,}"), " ")), metaspace(), "TemplateSingle", metaspace()),
        "albert": ("unigram", normal(replace(string("``"), '"'), replace(string("''"), '"'), {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, charsmap, squeeze), metaspace(), "TemplatePair", metaspace()),
        "unigram": ("unigram", normal({"type": "NFKC"}, replace(regex(" {2,}"), " ")), metaspace(), "none", metaspace()),
        "unigram-bytes": ("unigram-fallback", normal({"type": "Strip", "strip_left": False, "strip_right": True}, replace(regex(" {2,}"), SPACE)), metaspace("always", True), "TemplateSingle", d[0]),
        "ctc": ("wordlevel", n, split(regex("."), "Isolated"), "none", {"type": "CTC", "pad_token": "[PAD]", "word_delimiter_token": "|", "cleanup": True}),
        "word-level": ("wordlevel", {"type": "Lowercase"}, {"type": "Whitespace"}, "TemplateSingle", n),
    }
    out = []
    for k, (name, (model, normalizer, splitter, post_, decoder)) in enumerate(sorted(known.items())):
        for i, added in enumerate(["special", "strips", "normalized"]):
            out.append({"model": model, "normalizer": normalizer, "splitter": splitter, "post": post_, "decoder": decoder, "added": added if i else "special",
                        "seed": 50000 + 10 * k + i, "name": f"known-{name}-{i}", "families": {}, "plain": i == 0})
    return out


SIZES = {"bpe": [450, 700, 1000], "wordpiece": [450, 700, 1000], "wordlevel": [150, 400], "unigram": [900, 1200, 1500]}


def run_plan(plan):
    rng = random.Random(plan["seed"])
    lines = corpus(rng)
    result = {"name": plan["name"], "families": plan["families"]}
    file = train(rng, plan["model"], plan["normalizer"], plan["splitter"], lines, rng.choice(SIZES[plan["model"].split("-")[0]]))
    ids = {}
    if plan.get("plain"):
        if plan["model"].endswith("fallback"):
            vary(rng, plan["model"], file)
        if plan["model"] == "bpe-bytes":
            file["model"]["unk_token"] = None
    else:
        vary(rng, plan["model"], file)
    for a in file["added_tokens"]:
        ids[a["content"]] = a["id"]
    file["post_processor"] = post(rng, plan["post"], ids)
    file["decoder"] = plan["decoder"]
    if rng.random() < 0.15:
        file["truncation"] = {"direction": rng.choice(["Left", "Right"]), "max_length": rng.choice([4, 16]), "strategy": "LongestFirst", "stride": 0}
    if rng.random() < 0.15:
        file["padding"] = {"strategy": rng.choice(["BatchLongest", {"Fixed": 12}]), "direction": "Right", "pad_to_multiple_of": None, "pad_id": ids.get("[PAD]", 0), "pad_type_id": 0, "pad_token": "[PAD]"}
    added = list(ADDED[plan["added"]])
    if rng.random() < 0.3:  # a word that the model has, too
        vocab = file["model"]["vocab"]
        own = [t if isinstance(t, str) else t[0] for t in vocab]
        added += [(t, rng.choice(["", "n", "w", "s", "lr"])) for t in rng.sample(own, min(3, len(own)))]
    text = finish(rng, file, added, rng.random() < 0.15)
    result["tokenizer"] = text
    contents = [c for c, _ in added] + SPECIALS[:2]
    result.update(evaluate(rng, text, texts_for(rng, lines, contents)))
    return result


def hand_made():
    """Returns tokenizer.json files that no trainer writes, by name."""
    def file(model, **more):
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                "post_processor": None, "decoder": None, "model": model, **more}

    def token(i, content, flags=""):
        return {"id": i, "content": content, "single_word": "w" in flags, "lstrip": "l" in flags, "rstrip": "r" in flags, "normalized": "n" in flags, "special": "s" in flags}

    def vocab(*tokens):
        return {t: i for i, t in enumerate(tokens)}

    letters = vocab("a", "b", "c", " ", "ab", "bc", "abc", "aa", "aaa", "<unk>", "cab", "é", "ca")
    merges = [["a", "b"], ["b", "c"], ["ab", "c"], ["a", "a"], ["aa", "a"], ["c", "ab"], ["c", "a"]]

    def bpe(**more):
        return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": letters, "merges": merges, **more}

    bytes_ = {b: 100 + i for i, b in enumerate(BYTES)}
    words = {"type": "WordLevel", "vocab": {"hello": 0, "world": 5, "<unk>": 9, "again": 9000, "a": 3}, "unk_token": "<unk>"}
    scored = [["<unk>", 0.0], ["a", -1.0], ["b", -1.0], ["ab", -2.0], ["ba", -2.0], ["aba", -3.0], ["bab", -3.0], [SPACE, -1.5], [SPACE + "a", -2.5], ["é", -2.0], ["abab", -4.0]]
    out = {
        "legacy-merges": {k: v for k, v in file({k: v for k, v in bpe(merges=["#version: 0.2"] + [" ".join(m) for m in merges]).items() if k != "type"}).items()},
        "string-merges": file(bpe(merges=[" ".join(m) for m in merges])), "fuse": file(bpe(fuse_unk=True)), "no-unk": file(bpe(unk_token=None)), "ignore-merges": file(bpe(ignore_merges=True, merges=merges[:2])),
        "ignore-merges-words": file(bpe(ignore_merges=True, merges=merges[:2]), pre_tokenizer={"type": "WhitespaceSplit"}),
        "missing-unk": file(bpe(unk_token="nowhere")), "duplicate-merges": file(bpe(merges=merges + [["a", "b"], ["b", "c"]])),
        "special-merge": file(bpe(), added_tokens=[token(4, "ab", "s")]), "added-in-vocab": file(bpe(), added_tokens=[token(4, "ab"), token(9, "<unk>", "s"), token(6, "abc", "n")]),
        "fallback-none": file(bpe(byte_fallback=True)), "fallback-fuse": file(bpe(byte_fallback=True, fuse_unk=True, vocab={**letters, **bytes_})),
        "fallback-no-unk": file(bpe(byte_fallback=True, unk_token=None, vocab={**letters, **{b: i for b, i in bytes_.items() if b != "<0xC3>"}})),
        "fallback-prefix": file(bpe(byte_fallback=True, continuing_subword_prefix="##", vocab={**letters, **bytes_}, merges=[])),
        "fallback-suffix": file(bpe(byte_fallback=True, end_of_word_suffix="</w>", vocab={**letters, **bytes_}, merges=[]), pre_tokenizer={"type": "Whitespace"}),
        "affixes": file(bpe(continuing_subword_prefix="##", end_of_word_suffix="</w>", vocab=vocab("a", "##a", "##b", "##b</w>", "ab", "a</w>", "##a</w>", "<unk>", "ab</w>", "aba"), merges=[["a", "##b"], ["a", "##b</w>"], ["ab", "##a"]]), pre_tokenizer={"type": "WhitespaceSplit"}),
        "empty-affixes": file(bpe(continuing_subword_prefix="", end_of_word_suffix="")), "holes": file(words, pre_tokenizer={"type": "Whitespace"}),
        "holes-added": file(words, pre_tokenizer={"type": "Whitespace"}, added_tokens=[token(9001, "<x>", "s"), token(9002, "<y>")]),
        "wrong-ids": file(bpe(), added_tokens=[token(77, "<x>", "s"), token(20, "<y>"), token(3, "a")]), "same-added": file(bpe(), added_tokens=[token(13, "<x>", "s"), token(14, "<x>", "n"), token(15, "<y>")]),
        "empty-added": file(bpe(), added_tokens=[token(13, "", "s"), token(14, "<y>", "s")]), "spaces-added": file(bpe(), added_tokens=[token(13, " ", ""), token(14, "   ", "s"), token(15, "b ", "lr")]),
        "same-ids": file(bpe(vocab={**letters, "x": 0, "y": 0}, merges=[])), "no-model-words": file({"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"}),
        "ties": file({"type": "Unigram", "unk_id": 0, "vocab": scored, "byte_fallback": False}), "no-unk-id": file({"type": "Unigram", "unk_id": None, "vocab": scored, "byte_fallback": False}),
        "unigram-metaspace": file({"type": "Unigram", "unk_id": 0, "vocab": scored, "byte_fallback": False}, pre_tokenizer=metaspace("first"), decoder=metaspace("first"), added_tokens=[token(11, "<x>", "s"), token(12, "<l>", "l")]),
        "unigram-same": file({"type": "Unigram", "unk_id": 0, "vocab": scored + [["a", -0.5], ["ab", -9.0]], "byte_fallback": False}),
        "unigram-high-unk": file({"type": "Unigram", "unk_id": 10, "vocab": scored, "byte_fallback": False}),
        "unigram-bytes": file({"type": "Unigram", "unk_id": 0, "vocab": scored + [[b, 0.0] for b in BYTES], "byte_fallback": True}, decoder=decoder_options()["Sequence"][0]),
        "unigram-positive": file({"type": "Unigram", "unk_id": 0, "vocab": [[t, -s] for t, s in scored], "byte_fallback": False}), "unigram-zero": file({"type": "Unigram", "unk_id": 0, "vocab": [[t, 0.0] for t, _ in scored], "byte_fallback": False}),
        "wordpiece-prefix": file({"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "", "max_input_chars_per_word": 4, "vocab": letters}, pre_tokenizer={"type": "Whitespace"}),
        "wordpiece-zero": file({"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 0, "vocab": letters}, pre_tokenizer={"type": "Whitespace"}),
        "normalized-special": file(bpe(), normalizer={"type": "Lowercase"}, added_tokens=[token(13, "<X>", "sn"), token(14, "<x>", "s"), token(15, "<Y>", "n")]),
        "normalized-away": file(bpe(), normalizer=replace(string("z"), ""), added_tokens=[token(13, "zz", "n"), token(14, "zaz", "n")]),
        "prepended": file(bpe(vocab={**letters, SPACE: 13}), normalizer=normal({"type": "Prepend", "prepend": SPACE}, replace(string(" "), SPACE)), added_tokens=[token(14, "<x>", "n"), token(15, "<y>", "s"), token(16, "a b", "n")]),
        "unsorted-merges": file(bpe(merges=[["ab", "c"], ["a", "b"], ["b", "c"]])), "no-type-words": {k: v for k, v in file({k: v for k, v in words.items() if k != "type"}).items()},
        "no-fields": {"model": {"type": "BPE", "vocab": letters, "merges": merges}},
        "fuse-added": file(bpe(fuse_unk=True), added_tokens=[token(9, "<unk>", "s"), token(13, "<x>", "")]),
        "pairs-in-template": file(bpe(), post_processor={"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<unk>", "type_id": 0}}, {"SpecialToken": {"id": "<unk>", "type_id": 0}}],
                                  "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {"<unk>": {"id": "<unk>", "ids": [9, 9, 0], "tokens": ["<unk>", "<unk>", "a"]}}}),
        "twice-A": file(bpe(), post_processor={"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {}}),
    }
    return out


HAND_TEXTS = ["abc", "abcabc", "aabbcc", "aaaaa", "aaaaaaa", "ababababab", "cabcab", "bcbcbc", "hello world again hello", "hello, world", "xyz", "xaybz", "é", "ééa", "a é b", "zz", "zaz", "azazb", "<x>", "<X>a<x>", "a <y> b", "<Y><y>",
              "a b c", "  a  ", "a   b", "abab ab", "babab", SPACE + "a" + SPACE, "日本", "日a本", "😀😀a", "<x><x>ab<x>", "<l>  <l>", "aba abab", "ab\nab"]


def run_hand(name, file):
    rng = random.Random(name)
    text = json.dumps(file, ensure_ascii=False)
    result = {"name": "hand-" + name, "tokenizer": text}
    added = [a["content"] for a in file.get("added_tokens", []) if a["content"]]
    texts = list(dict.fromkeys(HAND_TEXTS + FIXED[:16] + [jumble(rng, HAND_TEXTS, added) for _ in range(20)]))
    result.update(evaluate(rng, text, texts))
    return result


# ---------------------------------------------------------------- components by themselves

def sweep():
    for lo, hi in ((0, 0xd800), (0xe000, 0xe010), (0xf900, 0x20100), (0x2f7f0, 0x2fa30), (0xe0000, 0xe0200), (0x10fff0, 0x110000)):
        for c in range(lo, hi):
            yield c


def holder(normalizer=None, splitter=None):
    from tokenizers import Tokenizer
    return Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "normalizer": normalizer, "pre_tokenizer": splitter, "post_processor": None, "decoder": None,
                                          "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}))


def component_texts(seed):
    rng = random.Random(seed)
    lines = corpus(rng, 40)
    words = " ".join(lines).split()
    out = [t for t in FIXED if t] + lines[:10] + [jumble(rng, words) for _ in range(250)]
    out += ["".join(rng.choice(BITS) for _ in range(rng.randint(1, 12))) for _ in range(150)]
    out += ["".join(assigned(rng) for _ in range(rng.randint(1, 8))) for _ in range(150)]
    marks = [chr(c) for c in range(0x300, 0x2000) if unicodedata.combining(chr(c))] + ["\u1161", "\u11a8", "\u093c", "\u09be"]
    out += ["".join(rng.choice(["a", "e", "O", "ᄀ", "가", "क", "ά", " "]) + "".join(rng.choice(marks) for _ in range(rng.randint(0, 4))) for _ in range(rng.randint(1, 5))) for _ in range(150)]
    return list(dict.fromkeys(out))


def run_normalizer(name, option):
    """Records what a normalizer makes of a + character + b where that is another text, and of whole texts."""
    n = holder(normalizer=option).normalizer
    changed = {}
    for c in sweep():
        t = "a" + chr(c) + "b"
        got = attempt(lambda: n.normalize_str(t))
        if got != t:
            changed[f"{c:X}"] = got
        last = c
        if len(changed) == 15000:  # it changes everything
            break
    texts = [{"text": t, "normalized": attempt(lambda: n.normalize_str(t))} for t in component_texts(len(name) % 3)]
    return {"name": name, "normalizer": json.dumps(option), "changed": changed, "last": last, "texts": texts}


CONTEXTS = [("a", "b"), (" ", " "), ("1", "."), ("", "")]


def spell_table():
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {b: chr(b) for b in keep}
    n = 0
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + n)
            n += 1
    return table


def run_splitter(name, option):
    """Records the pieces of before + character + after, with the character written as U+25A1, by runs of characters with the same pieces."""
    p = holder(splitter=option).pre_tokenizer
    table = spell_table()

    def parts(t):
        return attempt(lambda: [s for s, _ in p.pre_tokenize_str(t)])

    shapes, index, runs = [], {}, []
    for before, after in CONTEXTS:
        mine = []
        for c in sweep():
            ch = chr(c)
            got = parts(before + ch + after)
            if isinstance(got, list):
                spelled = "".join(table[b] for b in ch.encode())
                got = [s.replace(spelled, "□").replace(ch, "□") for s in got]
            key = json.dumps(got)
            if key not in index:
                index[key] = len(shapes)
                shapes.append(got)
            if mine and mine[-1][1] == c - 1 and mine[-1][2] == index[key]:
                mine[-1][1] = c
            else:
                mine.append([c, c, index[key]])
        runs.append({"before": before, "after": after, "runs": mine})
    texts = [{"text": t, "pieces": parts(t)} for t in component_texts(len(name) % 3)]
    return {"name": name, "pre_tokenizer": json.dumps(option), "shapes": shapes, "sweeps": runs, "texts": texts}


# ---------------------------------------------------------------- running

def child(job, path):
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    kind, name, args = job
    try:
        result = {"plan": run_plan, "hand": run_hand, "normalizer": run_normalizer, "splitter": run_splitter}[kind](*args)
    except BaseException as e:
        result = {"name": name, "error": f"{type(e).__name__}: {e}"[:500], "trace": traceback.format_exc()[-1500:]}
        if kind == "plan":
            result["plan"] = {k: v for k, v in args[0].items()}
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(result, f)  # in ASCII
    os.replace(path + ".part", path)


def run_jobs(jobs, workers, limit):
    """Runs (target, name, args, path) each in a process, and returns the names of those that died or took too long."""
    context = get_context("fork")
    waiting, running, dead = list(reversed(jobs)), {}, []
    while waiting or running:
        while waiting and len(running) < workers:
            target, name, args, path = waiting.pop()
            p = context.Process(target=target, args=args, daemon=True)
            p.start()
            running[p.sentinel] = (p, name, path, time.time())
        wait(list(running), timeout=1)
        for sentinel, (p, name, path, start) in list(running.items()):
            late = time.time() - start > limit
            if p.is_alive() and not late:
                continue
            if p.is_alive():
                p.kill()
            p.join()
            del running[sentinel]
            if not os.path.exists(path):
                why = "took too long" if late else f"died with {p.exitcode}"
                dead.append(f"{name}: {why}")
                with open(path, "w") as f:
                    json.dump({"name": name, "error": why}, f)
    return dead


def pack(out, name, folders):
    target = os.path.join(out, name)
    with tarfile.open(target, "w:xz", preset=9) as tar:
        for folder in folders:
            base = os.path.join(out, folder)
            for entry in sorted(os.listdir(base)) if os.path.isdir(base) else [folder]:
                tar.add(os.path.join(base, entry) if os.path.isdir(base) else base, arcname=os.path.join(folder, entry) if os.path.isdir(base) else folder)
    size = os.path.getsize(target)
    print(f"{target}: {size} bytes" + (" MORE THAN 12 MB" if size > 12_000_000 else ""), file=sys.stderr)


def report(out, folders):
    for folder in folders:
        failed, total = [], 0
        for entry in sorted(os.listdir(os.path.join(out, folder))):
            total += 1
            with open(os.path.join(out, folder, entry)) as f:
                r = json.load(f)
            if "error" in r:
                failed.append(f"  {r['name']}: {r['error'][:160]}")
        print(f"{folder}: {total}, of which {len(failed)} with an error", *failed, sep="\n", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=320)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 4)
    parser.add_argument("--only", default="", help="part of a name")
    args = parser.parse_args()
    start = time.time()
    for folder in ("tokenizers", "components"):
        os.makedirs(os.path.join(args.out, folder), exist_ok=True)
    maps, errors = charsmaps()
    with open(os.path.join(args.out, "charsmaps.json"), "w") as f:
        json.dump({"charsmaps": maps, "errors": errors}, f)
    print("charsmaps:", *(f"{k} {len(v)}" for k, v in maps.items()), "errors:", errors, file=sys.stderr)
    jobs = []

    def add(folder, kind, name, *job_args):
        path = os.path.join(args.out, folder, name + ".json")
        if args.only in name:
            if os.path.exists(path):
                os.remove(path)
            jobs.append((child, name, ((kind, name, job_args), path), path))

    # Components first, which take the longest.
    for family, options in splitter_options().items():
        if family in ("SplitString", "SplitRegex"):
            rng = random.Random(3)
            options = options[:16] + rng.sample(options[16:], min(12, max(0, len(options) - 16)))
        for i, option in enumerate(options):
            if option is not None:
                name = f"splitter-{family}-{i}"
                add("components", "splitter", name, name, option)
    labels = list(maps)
    for family, options in normalizer_options(maps).items():
        for i, option in enumerate(options):
            if option is not None:
                name = f"normalizer-{family}-{labels[i] if family == 'Precompiled' else i}"
                add("components", "normalizer", name, name, option)
    for plan in plans(maps, args.count) + known_plans(maps):
        add("tokenizers", "plan", plan["name"], plan)
    for name, file in hand_made().items():
        add("tokenizers", "hand", "hand-" + name, name, file)
    for line in run_jobs(jobs, args.workers, 60):
        print(line, file=sys.stderr)
    report(args.out, ("tokenizers", "components"))
    print(f"computed in {time.time() - start:.0f} s", file=sys.stderr)
    pack(args.out, "tokenizers.tar.xz", ("tokenizers", "components", "charsmaps.json"))
    print(f"done in {time.time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
