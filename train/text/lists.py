"""Counting, sorting, reversing, spelling, counting letters: what is done with lists and words."""

from random import Random

from .conversation import Exchange, assistant, user
from .grammar import fill, pick, share, split
from .noise import noisy
from .pools import PEOPLE, WORDS, made_up

_FRAMES = {
    "sort up": [
        "sort <x>", "sort these {numbers|}: <x>", "{please |}sort the list <x>", "put <x> in order", "order these: <x>", "arrange <x> in order", "can you sort <x>?", "sort in ascending order: <x>", "<x>: sort them", "bring <x> into order",
        "sort from smallest to largest: <x>", "what is the right order of <x>?", "sort ascending: <x>", "sort: <x>", "list these in order: <x>", "order the following: <x>", "order the numbers <x>", "sort the following: <x>", "put the following in order: <x>", "arrange the following: <x>", "<x>, sorted", "<x> in order", "order <x>", "I need <x> sorted", "sort these for me: <x>",
    ],
    "sort words": [
        "sort <x>", "sort these words: <x>", "sort <x> alphabetically", "put <x> in alphabetical order", "alphabetical order of <x>", "sort by alphabet: <x>", "arrange these words alphabetically: <x>", "order <x> from a to z",
        "sort the words <x>", "which is the alphabetical order of <x>?", "can you sort these words? <x>", "a to z: <x>", "please alphabetise <x>", "I need these in alphabetical order: <x>",
    ],
    "sort down": [
        "sort in descending order: <x>", "sort <x> from largest to smallest", "sort descending: <x>", "order <x> from high to low", "sort <x> backwards, largest first", "put <x> in descending order", "largest first: <x>", "sort these from biggest to smallest: <x>",
    ],
    "largest": ["which is the {largest|greatest|biggest} of <x>?", "the {largest|maximum|biggest} of <x>?", "what is the maximum of <x>?", "find the {largest|biggest} number: <x>", "max of <x>", "which of <x> is the {largest|biggest}?"],
    "smallest": ["which is the {smallest|least} of <x>?", "the {smallest|minimum} of <x>?", "what is the minimum of <x>?", "find the smallest number: <x>", "min of <x>", "which of <x> is the smallest?"],
    "how many": ["how many {items|words|things|numbers} are in <x>?", "count the items: <x>", "how many are there: <x>?", "how long is the list <x>?", "count these: <x>", "number of items in <x>?"],
    "reverse list": ["reverse {the list |}<x>", "write <x> backwards, item by item", "reverse the order of <x>", "turn the list around: <x>", "<x> in reverse order", "list these in reverse: <x>"],
    "first": ["what is the first of <x>?", "which comes first in <x>?", "first item of <x>?", "the first of <x>, please"],
    "last": ["what is the last of <x>?", "which comes last in <x>?", "last item of <x>?", "the last of <x>, please"],
    "spell": ["spell <w>", "how do you spell <w>?", "spell the word <w>", "please spell <w>", "can you spell <w>?", "what is the spelling of <w>?", "<w> letter by letter", "how is <w> spelled?", "write <w> letter by letter", "spelling of <w>?"],
    "reverse word": ["reverse <w>", "spell <w> backwards", "write <w> backwards", "what is <w> backwards?", "<w> backwards", "reverse the word <w>", "turn the word <w> around", "what do I get when I reverse <w>?", "say <w> backwards"],
    "letters": ["how many letters {has|are in|does} <w>{ have|}?", "count the letters of <w>", "number of letters in <w>?", "how long is the word <w>?", "how many letters are in the word <w>?", "length of <w>?"],
    "letter": ["how many {times is |}<l>{'s|s|} {are |}in <w>?", "count the letter <l> in <w>", "how often is {the letter |}<l> in <w>?", "how many times does <l> appear in <w>?", "how often does <l> come in <w>?", "how many times is <l> in <w>?", "does <l> appear in <w>, and how often?", "in <w>, how many times is there <l>?", "how often does <w> have the letter <l>?", "<l> in <w>: how many times?", "how many <l>'s are there in <w>?", "number of <l>'s in <w>?"],
    "first letter": ["what is the first letter of <w>?", "first letter of <w>", "with which letter does <w> begin?", "<w> begins with?", "which letter does <w> start with?", "<w> starts with which letter?", "the letter that <w> begins with?", "what letter is first in <w>?", "how does <w> begin, with which letter?", "which letter is the first of <w>?", "the first letter of <w>, please"],
    "last letter": ["what is the last letter of <w>?", "last letter of <w>", "with which letter does <w> end?", "<w> ends with?", "which letter does <w> end with?", "the letter that <w> ends with?", "what letter is last in <w>?", "which letter is the last of <w>?", "the last letter of <w>, please"],
    "upper": ["write <w> in capital letters", "<w> in capitals", "<w> in upper case", "make <w> upper case", "capitalise all of <w>", "uppercase <w>", "<w> in large letters", "write <w> in upper case", "change <w> to capitals", "all letters of <w> as capitals"],
    "count": ["count from <a> to <b>", "count <a> to <b>", "list the numbers from <a> to <b>", "all numbers from <a> to <b>", "numbers <a> to <b>, please", "please count from <a> up to <b>", "say the numbers from <a> to <b>"],
    "count down": ["count down from <a> to <b>", "count backwards from <a> to <b>", "countdown from <a> to <b>", "from <a> down to <b>"],
    "count by": ["count by <s> from <a> to <b>", "count from <a> to <b> in steps of <s>", "every <s> from <a> to <b>", "numbers from <a> to <b> in steps of <s>"],
    "evens": ["list the even numbers from <a> to <b>", "even numbers between <a> and <b>", "which even numbers are there from <a> to <b>?"],
    "repeat": ["say <w> <n> times", "repeat <w> <n> times", "write <w> <n> times", "<w>, <n> times please"],
}  # fmt: skip
_SPLIT = {kind: split(frames) for kind, frames in _FRAMES.items()}
_NUMBERS = ("sort up", "sort down", "largest", "smallest")
# How often each kind is asked for.
_WEIGHTS = {
    "sort up": 4, "sort words": 4, "sort down": 2, "spell": 3, "reverse word": 3, "letters": 2, "letter": 3,
}  # fmt: skip
_KINDS = tuple(kind for kind in _FRAMES for _ in range(_WEIGHTS.get(kind, 1)))


def _numbers(rng: Random) -> list[int]:
    top = pick(rng, (9, 20, 50, 99, 99, 200, 999, 999))
    return [rng.randint(0, top) for _ in range(rng.randint(3, 8))]


def _some_words(rng: Random) -> list[str]:
    pool = PEOPLE if rng.random() < 0.12 else WORDS
    out: list[str] = []
    while len(out) < (3 if rng.random() < 0.3 else rng.randint(3, 7)):
        w = pick(rng, pool)
        if w not in out:
            out.append(w)
    return out


def _join(rng: Random, items: list[str]) -> str:
    if rng.random() < 0.25:
        return " ".join(items)
    if rng.random() < 0.25:
        return ", ".join(items[:-1]) + " and " + items[-1]
    return ", ".join(items)


def _word(rng: Random) -> str:
    r = rng.random()
    return pick(rng, WORDS) if r < 0.6 else made_up(rng) if r < 0.8 else "".join(pick(rng, "abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 7)))


def is_held(*parts: str) -> bool:
    """Whether training never has this task: one of 25."""
    return share("lists", *parts) < 40


def _task(rng: Random, kind: str) -> tuple[str, dict[str, str], str]:
    """What is filled in and the answer; the first value says which task it is."""
    if kind in _NUMBERS or (kind in ("how many", "reverse list", "first", "last") and rng.random() < 0.5):
        numbers = _numbers(rng)
        shown = [str(n) for n in numbers]
        x = _join(rng, shown)
        if kind == "sort up":
            answer = ", ".join(map(str, sorted(numbers)))
        elif kind == "sort down":
            answer = ", ".join(map(str, sorted(numbers, reverse=True)))
        elif kind == "largest":
            answer = f"{max(numbers)}."
        elif kind == "smallest":
            answer = f"{min(numbers)}."
        else:
            answer = _of_list(kind, shown)
        return " ".join(shown), {"x": x}, answer
    if kind in ("sort words", "how many", "reverse list", "first", "last"):
        words = _some_words(rng)
        answer = ", ".join(sorted(words, key=str.lower)) if kind == "sort words" else _of_list(kind, words)
        return " ".join(words), {"x": _join(rng, words)}, answer
    if kind.startswith(("count", "evens")):
        return _counting(rng, kind)
    w = _word(rng)
    if kind == "spell":
        answer = "-".join(w)
    elif kind == "reverse word":
        answer = f"{'-'.join(w)}, so backwards {w[::-1]}."
    elif kind == "letters":
        answer = f"{'-'.join(w)}: {len(w)} letters."
    elif kind == "letter":
        letter = pick(rng, w) if rng.random() < 0.8 else pick(rng, "abcdefghijklmnopqrstuvwxyz")
        times = w.count(letter)
        answer = f"{'-'.join(w)}: {letter} is {['not there', 'there once', 'there twice'][times] if times < 3 else f'there {times} times'}."
        return f"{w} {letter}", {"w": w, "l": letter}, answer
    elif kind == "first letter":
        answer = f"{'-'.join(w)}: {w[0]}."
    elif kind == "last letter":
        answer = f"{'-'.join(w)}: {w[-1]}."
    elif kind == "upper":
        answer = f"{'-'.join(w)}: {w.upper()}"
    else:
        n = rng.randint(2, 9)
        return f"{w} {n}", {"w": w, "n": str(n)}, " ".join([w] * n)
    return w, {"w": w}, answer


def _of_list(kind: str, items: list[str]) -> str:
    if kind == "how many":
        return f"{len(items)}."
    if kind == "reverse list":
        return ", ".join(reversed(items))
    return items[0 if kind == "first" else -1] + "."


def _counting(rng: Random, kind: str) -> tuple[str, dict[str, str], str]:
    a = pick(rng, (0, 1, 1, 1, rng.randint(2, 90), rng.randint(91, 900)))
    b = a + rng.randint(3, 25)
    if kind == "count down":
        return f"{b} {a}", {"a": str(b), "b": str(a)}, ", ".join(map(str, range(b, a - 1, -1)))
    if kind == "count by":
        s = pick(rng, (2, 3, 4, 5, 10, 20, 25, 100))
        a = s if rng.random() < 0.6 else 0
        b = a + s * rng.randint(3, 12)
        return f"{a} {b} {s}", {"a": str(a), "b": str(b), "s": str(s)}, ", ".join(map(str, range(a, b + 1, s)))
    if kind == "evens":
        return f"{a} {b}", {"a": str(a), "b": str(b)}, ", ".join(str(n) for n in range(a, b + 1) if n % 2 == 0)
    return f"{a} {b}", {"a": str(a), "b": str(b)}, ", ".join(map(str, range(a, b + 1)))


_MARKS = {"x": "\x01", "w": "\x02", "l": "\x03", "a": "\x04", "b": "\x05", "s": "\x06", "n": "\x07"}


def _ask(rng: Random, template: str, values: dict[str, str]) -> str:
    question = noisy(rng, fill(template, rng, **_MARKS))
    quoted = "w" in values and rng.random() < 0.3
    for name, value in values.items():
        question = question.replace(_MARKS[name], f'"{value}"' if quoted and name == "w" else value)
    return question


def task(rng: Random) -> Exchange:
    """One task for training."""
    while True:
        kind = pick(rng, _KINDS)
        template = pick(rng, _SPLIT[kind][0])
        key, values, answer = _task(rng, kind)
        if not is_held(kind, key):
            return Exchange("lists", [user(_ask(rng, template, values)), assistant(answer)])


def held(rng: Random, count: int) -> list[Exchange]:
    """Tasks for the trained model."""
    out: list[Exchange] = []
    while len(out) < count:
        kind = pick(rng, _KINDS)
        train, kept = _SPLIT[kind]
        template = pick(rng, kept if kept and rng.random() < 0.4 else train)
        key, values, answer = _task(rng, kind)
        if not is_held(kind, key):
            continue
        name = "sorting" if kind.startswith("sort") else "spelling" if kind in ("spell", "reverse word", "letters", "letter") else "counting and lists"
        out.append(Exchange(name, [user(_ask(rng, template, values)), assistant(answer)], exact=answer, held="pair"))
    return out
