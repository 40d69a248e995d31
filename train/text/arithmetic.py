"""Arithmetic to three digits: sums, differences, products, quotients, comparisons, chains."""

from itertools import zip_longest
from random import Random

from .conversation import Exchange, assistant, user
from .grammar import fill, pick, share, split
from .noise import noisy

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(n: int) -> str:
    """A number below a million in words."""
    if n < 20:
        return _ONES[n]
    if n < 100:
        return _TENS[n // 10] + (f"-{_ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{_ONES[n // 100]} hundred" + (f" and {in_words(n % 100)}" if n % 100 else "")
    return f"{in_words(n // 1000)} thousand" + (f" {in_words(n % 1000)}" if n % 1000 else "")


def is_held(kind: str, *numbers: int) -> bool:
    """Whether training never has this task: one of 25."""
    if kind in "+*":  # where their order makes no difference
        numbers = tuple(sorted(numbers))
    return share("arithmetic", kind, *map(str, numbers)) < 40


def _digits(rng: Random) -> int:
    """A number of one to three digits, each length about as often."""
    return rng.randint(0, 9) if (r := rng.random()) < 0.2 else rng.randint(10, 99) if r < 0.55 else rng.randint(100, 999)


_FRAMES = {
    "+": [
        "what is <a> + <b>?", "<a> + <b>", "<a>+<b>", "<a> + <b> =", "<a> plus <b>", "what's <a> plus <b>?", "add <a> and <b>", "{calculate|compute} <a> + <b>", "the sum of <a> and <b>?", "how much is <a> + <b>?",
        "how much is <a> plus <b>?", "what do I get when I add <a> to <b>?", "add <a> to <b>", "{please |}add up <a> and <b>", "what is the sum of <a> and <b>?", "tell me <a> + <b>", "if I have <a> and get <b> more, how many {do I have|are that}?",
        "<a> and <b> together are how much?", "I have <a> apples and buy <b> more. how many apples do I have?", "solve <a> + <b>", "can you add <a> and <b>?", "<a> plus <b> equals?", "increase <a> by <b>", "<a>+<b>=?", "total of <a> and <b>?", "<a> together with <b>?", "what are <a> and <b> together?", "put <a> and <b> together", "<a> and <b> together?", "how much are <a> and <b> together?", "together, <a> and <b> make what?", "<a> and <b>: what is the sum?", "<a> and <b> added", "how much are <a> and <b>?", "what is the total of <a> and <b>?", "<a> more than <b> is how much?", "what do <a> and <b> make?",
    ],
    "-": [
        "what is <a> - <b>?", "<a> - <b>", "<a>-<b>", "<a> - <b> =", "<a> minus <b>", "what's <a> minus <b>?", "subtract <b> from <a>", "{calculate|compute} <a> - <b>", "the difference of <a> and <b>?", "how much is <a> - <b>?",
        "how much is <a> minus <b>?", "take <b> away from <a>", "what is the difference between <a> and <b>?", "tell me <a> - <b>", "what is left when I take <b> from <a>?", "solve <a> - <b>", "<a> less <b>?", "decrease <a> by <b>",
        "I have <a> coins and spend <b>. how many are left?", "<a>-<b>=?", "<a> take away <b>", "<b> from <a> leaves what?", "what do I have if I take <b> from <a>?", "how much more is <a> than <b>?", "what is <b> less than <a>?", "the rest of <a> after taking <b>?", "<a> minus <b> equals?", "can you subtract <b> from <a>?",
    ],
    "*": [
        "what is <a> * <b>?", "<a> * <b>", "<a>*<b>", "<a> x <b>", "<a> times <b>", "what's <a> times <b>?", "multiply <a> by <b>", "{calculate|compute} <a> * <b>", "the product of <a> and <b>?", "how much is <a> * <b>?",
        "how much is <a> times <b>?", "multiply <a> and <b>", "what is the product of <a> and <b>?", "tell me <a> * <b>", "<a> × <b>", "solve <a> * <b>", "<a> multiplied by <b>", "what is <a> × <b>?", "<a> rows of <b> seats: how many seats?", "how many are <a> times <b>?", "<a> groups of <b> are how many?", "the result of <a> times <b>?", "<b> boxes with <a> pens each: how many pens?",
        "<a> x <b> = ?", "can you multiply <a> by <b>?",
    ],
    "/": [
        "what is <a> / <b>?", "<a> / <b>", "<a>/<b>", "<a> ÷ <b>", "<a> divided by <b>", "what's <a> divided by <b>?", "divide <a> by <b>", "{calculate|compute} <a> / <b>", "the quotient of <a> and <b>?", "how much is <a> / <b>?",
        "how often does <b> go into <a>?", "how many times does <b> fit into <a>?", "share <a> among <b>", "tell me <a> / <b>", "solve <a> / <b>", "what is <a> divided by <b>?", "<a> : <b>", "split <a> into <b> equal parts",
        "<a> sweets for <b> children: how many each?", "can you divide <a> by <b>?", "how often does <a> have <b> in it?", "how many times is <b> in <a>?", "how often is <b> in <a>?", "how often fits <b> into <a>?", "does <b> go into <a>, and how often?", "how many times does <b> go into <a>?", "into <a>, how often does <b> fit?", "how many <b>s fit into <a>?", "<a> over <b>", "<a> by <b>, divided", "divide <a> into <b> parts", "<a> shared by <b>", "<b> people share <a>: how much has each?", "<a>/<b>=?", "<a> / <b> =", "what is the quotient of <a> and <b>?", "remainder of <a> divided by <b>?", "what remains when <a> is divided by <b>?",
    ],
    "<": [
        "which is {larger|greater|bigger|more}, <a> or <b>?", "is <a> {larger|greater|bigger|more} than <b>?", "is <a> {smaller|less} than <b>?", "what is more, <a> or <b>?", "compare <a> and <b>", "<a> or <b>: which is {smaller|less}?",
        "which number is {larger|bigger}: <a> or <b>?", "<a> > <b>?", "<a> < <b>?", "which is {smaller|less}, <a> or <b>?", "of <a> and <b>, which is {larger|smaller}?", "the {larger|smaller|greater} of <a> and <b>?", "<a> and <b>: which is {larger|bigger|smaller}?", "compare the numbers <a> and <b>",
    ],
}  # fmt: skip
_SPLIT = {op: split(frames) for op, frames in _FRAMES.items()}


def _tens(a: int, b: int) -> str:
    """The product, in steps that are easy one by one."""
    if a < b:
        a, b = b, a
    parts = [int(d) * 10**i for i, d in enumerate(reversed(str(b)))][::-1]
    parts = [p for p in parts if p]
    if a < 10 or len(parts) < 2:
        if len(parts) == 1 and a >= 10 and b >= 10:
            lead = int(str(b)[0])
            if lead == 1:
                return f"{a} * {b} = {a * b}."
            return f"{a} * {b} = {a * lead} * {b // lead} = {a * b}."
        return f"{a} * {b} = {a * b}."
    steps = f"{a} * {b} = " + " + ".join(f"{a} * {p}" for p in parts) + " = " + " + ".join(str(a * p) for p in parts)
    total, rest = a * parts[0], [a * p for p in parts[1:]]
    while rest:
        total += rest.pop(0)
        steps += f" = {total}" + "".join(f" + {r}" for r in rest)
    return steps + "."


def by_places(a: int, b: int) -> str:
    """The digits of both numbers added from the right, with what is carried, where there is more than one step."""
    if min(a, b) < 10 and max(a, b) < 100 or (a + b) < 20:
        return ""
    steps, carry = [], 0
    for x, y in zip_longest(map(int, reversed(str(a))), map(int, reversed(str(b))), fillvalue=0):
        total = x + y + carry
        steps.append(f"{x} + {y}" + (" + 1" if carry else "") + f" = {total}")
        carry = total // 10
    return "(" + ", ".join(steps) + ") "


def _divide(a: int, b: int) -> str:
    q, r = divmod(a, b)
    result = f"{a} / {b} " + (f"= {q}." if r == 0 else f"is {q} remainder {r}.")
    if a < b:
        return f"{a} is less than {b}: {result}"
    if b == 1:
        return result
    if b >= 10:  # the tens of b times the digit come first, which says how large the digit can be
        steps, left = [], a
        for i, d in enumerate(str(q)):
            if d == "0":
                continue
            part = int(d) * 10 ** (len(str(q)) - 1 - i)
            tens, ones = b // 10 * 10 * part, b % 10 * part
            product = f"{b} * {part} = {tens} + {ones} = {b * part}" if ones else f"{b} * {part} = {b * part}"
            steps.append(f"{product}, {left} - {b * part} = {left - b * part}")
            left -= b * part
        return "; ".join(steps) + f". So {result}"
    # Long division: a digit of a at a time.
    steps, left = [], 0
    for d in str(a):
        left = left * 10 + int(d)
        if left < b and not steps:
            continue
        steps.append(f"{left} = {b} * {left // b} + {left % b}")
        left %= b
    if len(steps) == 1 and r:
        return f"{steps[0]}, so {result}"
    return ", ".join(steps) + f". So {result}"


def _task(rng: Random, op: str, frame: str) -> tuple[int, int, str]:
    if op == "+":
        a, b = _digits(rng), _digits(rng)
        return a, b, f"{a} + {b} = {by_places(a, b)}{a + b}."
    if op == "-":
        a, b = _digits(rng), _digits(rng)
        if a < b and (rng.random() < 0.75 or "left" in frame):
            a, b = b, a
        return a, b, f"{a} - {b} = {a - b}."
    if op == "*":
        a, b = _digits(rng), _digits(rng)
        return a, b, _tens(a, b)
    if op == "/":
        b = rng.randint(1, 9) if rng.random() < 0.6 else rng.randint(10, 99)
        if rng.random() < 0.5:
            a = b * rng.randint(0, 999 // b)
        else:
            a = _digits(rng)
        return a, b, _divide(a, b)
    a, b = _digits(rng), _digits(rng)
    if (r := rng.random()) < 0.45:  # near each other
        b = max(0, a + rng.randint(-12, 12))
    elif r < 0.55:
        b = a
    return a, b, _compare(frame, a, b)


def _compare(frame: str, a: int, b: int) -> str:
    if a == b:
        return f"{a} and {b} are equal."
    larger, smaller = max(a, b), min(a, b)
    if frame.startswith("is <a>") or frame in ("<a> > <b>?", "<a> < <b>?"):
        asks_less = "smaller" in frame or "<a> < <b>" in frame
        yes = (a < b) if asks_less else (a > b)
        return f"{'Yes' if yes else 'No'}: {a} is {'smaller' if a < b else 'larger'} than {b}."
    return f"{smaller} is smaller than {larger}." if "small" in frame or "less" in frame else f"{larger} is larger than {smaller}."


def _frame(rng: Random, op: str, frames: list[str]) -> tuple[str, str]:
    template = pick(rng, frames)
    return template, fill(template, rng, a="\x01", b="\x02")


def _say(rng: Random, frame: str, a: int, b: int) -> str:
    words = "+" not in frame and "*" not in frame and "/" not in frame and rng.random() < 0.1
    question = noisy(rng, frame)
    return question.replace("\x01", in_words(a) if words else str(a)).replace("\x02", in_words(b) if words else str(b))


_OPS = ("+", "+", "+", "-", "-", "-", "*", "*", "*", "/", "/", "<")


def plain(rng: Random) -> Exchange:
    """One operation with two numbers."""
    while True:
        op = pick(rng, _OPS)
        template, frame = _frame(rng, op, _SPLIT[op][0])
        # The template decides what is compared; the filled one which word it has.
        a, b, answer = _task(rng, op, frame.replace("\x01", "<a>").replace("\x02", "<b>"))
        if not is_held(op, a, b):
            return Exchange("arithmetic", [user(_say(rng, frame, a, b)), assistant(answer)])


def _chain(rng: Random) -> tuple[str, str]:
    ops, numbers = [pick(rng, "++-"), pick(rng, "+-*")], [rng.randint(1, 99) for _ in range(3)]
    if ops[1] == "*":
        numbers[1], numbers[2] = rng.randint(2, 9), rng.randint(2, 9)
    if rng.random() < 0.3:
        ops.append(pick(rng, "+-"))
        numbers.append(rng.randint(1, 99))
    brackets = len(ops) == 2 and ops[1] == "*" and rng.random() < 0.5
    if brackets:
        numbers[0] = rng.randint(1, 9)
        text = f"({numbers[0]} {ops[0]} {numbers[1]}) * {numbers[2]}"
        inner = numbers[0] + numbers[1] if ops[0] == "+" else numbers[0] - numbers[1]
        shown = f"({inner})" if inner < 0 else str(inner)
        return text, f"{text} = {shown} * {numbers[2]} = {inner * numbers[2]}."
    text = str(numbers[0]) + "".join(f" {o} {n}" for o, n in zip(ops, numbers[1:]))
    steps = [text]
    terms, signs = [numbers[0]], ops[:]
    rest = numbers[1:]
    if "*" in signs:
        i = signs.index("*")
        product = rest[i - 1] * rest[i] if i else terms[0] * rest[0]
        rest[i - 1 : i + 1] = [product]
        signs.pop(i)
        steps.append(str(terms[0]) + "".join(f" {o} {n}" for o, n in zip(signs, rest)))
    total = terms[0]
    while signs:
        total = total + rest.pop(0) if signs.pop(0) == "+" else total - rest.pop(0)
        steps.append(str(total) + "".join(f" {o} {n}" for o, n in zip(signs, rest)))
    return text, " = ".join(steps) + "."


_CHAIN_FRAMES = split(["what is <x>?", "<x>", "<x> =", "{calculate|compute} <x>", "how much is <x>?", "solve <x>", "tell me <x>", "work out <x>", "evaluate <x>", "<x> = ?", "result of <x>?", "please do <x>"])


def chain(rng: Random) -> Exchange:
    """Several operations."""
    while True:
        text, answer = _chain(rng)
        if share("chain", text) >= 40:
            break
    question = noisy(rng, fill(pick(rng, _CHAIN_FRAMES[0]), rng, x="\x01")).replace("\x01", text)
    return Exchange("arithmetic", [user(question), assistant(answer)])


_EXTRA_FRAMES = {
    "double": ["double <a>", "what is twice <a>?", "what is double <a>?", "two times <a>?", "the double of <a>?"],
    "half": ["what is half of <a>?", "half of <a>", "halve <a>", "what's half <a>?"],
    "square": ["what is <a> squared?", "the square of <a>", "<a>^2", "<a> to the power of 2", "square <a>"],
    "even": ["is <a> even?", "is <a> even or odd?", "is <a> {odd|an odd number}?", "<a>: even or odd?"],
    "next": ["what comes after <a>?", "which number follows <a>?", "the number after <a>?", "<a> plus one?"],
    "before": ["what comes before <a>?", "which number is before <a>?", "the number before <a>?"],
    "percent": ["what is <p>% of <a>?", "<p> percent of <a>", "how much is <p>% of <a>?", "{calculate|compute} <p>% of <a>"],
    "words": ["write <a> in words", "how is <a> written in words?", "<a> in words", "spell out the number <a>"],
    "number": ["write <w> as a number", "<w> in digits", "which number is <w>?", "<w> as digits"],
}  # fmt: skip


def extra(rng: Random) -> Exchange:
    """Doubles, halves, squares, even and odd, neighbours, percent, numbers in words."""
    kind = pick(rng, list(_EXTRA_FRAMES))
    a, p = _digits(rng), 0
    if kind == "half":
        a -= a % 2
        answer = f"Half of {a} is {a // 2}."
    elif kind == "double":
        answer = f"2 * {a} = {2 * a}."
    elif kind == "square":
        a = rng.randint(0, 25)
        answer = f"{a} * {a} = {a * a}."
    elif kind == "even":
        answer = f"{a} is {'odd' if a % 2 else 'even'}."
    elif kind == "next":
        answer = f"{a + 1}."
    elif kind == "before":
        a += 1
        answer = f"{a - 1}."
    elif kind == "percent":
        p = pick(rng, (10, 20, 25, 50, 5, 75, 1, 100))
        a = rng.randint(1, 9) * 100 if p in (1, 5, 25, 75) else rng.randint(1, 99) * 10
        answer = f"{p}% of {a} is {a * p // 100}."
    else:
        answer = f"{in_words(a)}." if kind == "words" else f"{a}."
        answer = answer[0].upper() + answer[1:]
    question = noisy(rng, fill(pick(rng, _EXTRA_FRAMES[kind]), rng, a="\x01", p="\x02", w="\x03"))
    return Exchange("arithmetic", [user(question.replace("\x01", str(a)).replace("\x02", str(p)).replace("\x03", in_words(a))), assistant(answer)])


def held(rng: Random, count: int) -> list[Exchange]:
    """Tasks for the trained model: numbers that training never has together."""
    out: list[Exchange] = []
    while len(out) < count:
        op = pick(rng, _OPS)
        train, kept = _SPLIT[op]
        _, frame = _frame(rng, op, kept if kept and rng.random() < 0.4 else train)
        a, b, answer = _task(rng, op, frame.replace("\x01", "<a>").replace("\x02", "<b>"))
        if not is_held(op, a, b):
            continue
        kind = {"+": "sums", "-": "differences", "*": "products", "/": "quotients", "<": "comparisons"}[op]
        out.append(Exchange(f"arithmetic: {kind}", [user(_say(rng, frame, a, b)), assistant(answer)], exact=answer, held="pair"))
    return out
