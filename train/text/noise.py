"""How people type: what is asked well, asked badly.

Only the words of a question change. What stands for something to the letter, a flag, a
number, a file or what is to be sorted, is left alone: callers put it in afterwards, or
it looks like what no rule here touches.
"""

import re
from random import Random

from .grammar import pick

_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|[^A-Za-z]+")
_PLAIN = re.compile(r"[a-z]{4,}$")
_TICKS = re.compile(r"(`[^`]*`|\"[^\"]*\"|\S*[-/._\d][^\s?!,]*)")

_NEAR = {
    "a": "sq", "b": "vn", "c": "xv", "d": "sf", "e": "wr", "f": "dg", "g": "fh", "h": "gj", "i": "uo", "j": "hk",
    "k": "jl", "l": "k", "m": "n", "n": "mb", "o": "ip", "p": "o", "q": "wa", "r": "et", "s": "ad", "t": "ry",
    "u": "yi", "v": "cb", "w": "qe", "x": "zc", "y": "tu", "z": "x",
}  # fmt: skip

_BEFORE = (
    "please ", "hi, ", "hello, ", "hey, ", "hey ", "hi! ", "hello! ", "ok, ", "okay, ", "so, ", "so ", "well, ",
    "um, ", "quick question: ", "question: ", "sorry, ", "excuse me, ", "one more thing: ", "just wondering, ",
    "hi there, ", "ok so ", "I have a question: ", "another question: ", "good morning, ", "actually, ", "and ",
    "tell me, ", "a beginner's question: ", "now, ", "help! ", "hmm, ", "dear realizar, ", "pls ", "yo, ", "alright, ",
)  # fmt: skip
_AFTER = (
    " please", ", please", " thanks", ", thanks", " thank you", ", thank you!", " pls", " plz", " thx", " please?",
    " ty", ", if you can", ", if possible", " then", ", in short", ", briefly", " :)",
    ", can you tell me?", ", do you know?", ", any idea?", " exactly", ", thank you", " now", ", I wonder",
)  # fmt: skip
_SHORT = {
    "please": "pls", "you": "u", "are": "r", "your": "ur", "because": "bc", "with": "w/", "without": "w/o",
    "thanks": "thx", "and": "&", "what is": "whats", "what's": "whats", "don't": "dont",
    "can't": "cant", "i'm": "im", "isn't": "isnt", "doesn't": "doesnt", "about": "abt", "tokens": "toks",
    "temperature": "temp", "maximum": "max", "minimum": "min", "number": "nr", "command": "cmd", "example": "ex",
    "model": "mdl", "that's": "thats", "something": "sth", "question": "q", "parameters": "params",
}  # fmt: skip
_ARTICLES = frozenset(("the", "a", "an"))
_ESL = (
    (re.compile(r"\bhow do I\b", re.I), ("how I can", "how I", "how can", "how to", "how I do")),
    (re.compile(r"\bhow can I\b", re.I), ("how I can", "how to", "how can i to")),
    (re.compile(r"\bwhat does (\S+) do\b", re.I), (r"what \1 does", r"what do \1", r"what does \1 doing", r"\1 what does")),
    (re.compile(r"\bwhat is\b", re.I), ("what it is", "what", "what are", "wat is")),
    (re.compile(r"\bI want to\b", re.I), ("I want", "i wanting to", "me want to", "I am want to")),
    (re.compile(r"\bis there\b", re.I), ("there is", "exist", "it exists", "have")),
    (re.compile(r"\bcan you\b", re.I), ("you can", "can", "you could")),
    (re.compile(r"\bdoes\b", re.I), ("do",)),
    (re.compile(r"\bwhich\b", re.I), ("what", "wich")),
)  # fmt: skip


def _typo(rng: Random, word: str) -> str:
    at = int(rng.random() * (len(word) - 1))
    how = rng.random()
    if how < 0.3:  # two letters change places
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if how < 0.55:  # one is missing
        return word[: at + 1] + word[at + 2 :]
    if how < 0.75:  # one is there twice
        return word[:at] + word[at] + word[at:]
    near = _NEAR.get(word[at + 1])
    return word[: at + 1] + pick(rng, near) + word[at + 2 :] if near else word


def _on_words(text: str, change) -> str:
    """The text with change done to what lies outside of code, names and numbers."""
    return "".join(part if i % 2 else change(part) for i, part in enumerate(_TICKS.split(text)))


def _typos(rng: Random, text: str, count: int) -> str:
    words = _WORD.findall(text)
    places = [i for i, w in enumerate(words) if _PLAIN.match(w)]
    for _ in range(min(count, len(places))):
        i = pick(rng, places)
        words[i] = _typo(rng, words[i]) if len(words[i]) > 3 else words[i]
    return "".join(words)


def _shorten(rng: Random, text: str) -> str:
    words = _WORD.findall(text)
    return "".join(_SHORT.get(w.lower(), w) if rng.random() < 0.6 else w for w in words)


def _drop_articles(rng: Random, text: str) -> str:
    return " ".join(w for w in text.split(" ") if w not in _ARTICLES or rng.random() < 0.25)


def noisy(rng: Random, text: str) -> str:
    """The text as somebody might type it."""
    random = rng.random
    if random() < 0.34:
        return text[0].upper() + text[1:] if random() < 0.7 else text
    if random() < 0.1:
        for pattern, replacements in _ESL:
            if pattern.search(text):
                text = pattern.sub(pick(rng, replacements), text, count=1)
                break
        if random() < 0.6:
            text = _on_words(text, lambda part: _drop_articles(rng, part))
    if random() < 0.12:
        text = _on_words(text, lambda part: _shorten(rng, part))
    if random() < 0.3:
        count = 1 if random() < 0.7 else 2
        text = _on_words(text, lambda part: _typos(rng, part, count))
    if random() < 0.16:
        text = pick(rng, _BEFORE) + text
    if random() < 0.12:
        tail = pick(rng, _AFTER)
        end = text[-1]
        text = text[:-1] + tail + end if end in "?.!" and tail[-1] not in "?!" else text + tail
    how = random()
    if how < 0.5:
        text = text.rstrip("?.!")
    elif how < 0.54:
        text = text.rstrip("?.!") + pick(rng, ("??", "!", "...", " ?", "?!", ".", "???"))
    how = random()
    if how < 0.5:
        text = _on_words(text, str.lower)
    elif how < 0.9:
        text = text[:1].upper() + text[1:]
    elif how < 0.93:
        text = _on_words(text, str.upper)
    if random() < 0.02:
        text += pick(rng, (" ", "\n"))
    return text or "?"
