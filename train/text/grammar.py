"""Templates, and what of them is kept from training.

A template is text with alternatives, "{how do I|how can I} set the port?", which
nest, and slots, "<name>", which a caller fills. It is compiled once.
"""

import re
import zlib
from random import Random

_TOKEN = re.compile(r"[{}|]|<[a-z][a-z_0-9]*>")


class Slot(str):
    """The name of a slot within a compiled template."""


class TemplateError(ValueError):
    """A template whose braces do not match."""


def compile_template(text: str) -> list:
    """The template as a list of texts, slots and tuples of alternatives."""
    stack: list[list[list]] = [[[]]]
    at = 0
    for m in _TOKEN.finditer(text):
        if m.start() > at:
            stack[-1][-1].append(text[at : m.start()])
        at = m.end()
        token = m.group()
        if token == "{":
            stack.append([[]])
        elif token == "|" and len(stack) > 1:
            stack[-1].append([])
        elif token == "|":
            stack[-1][-1].append("|")
        elif token == "}":
            if len(stack) == 1:
                raise TemplateError(f"a brace too many in {text!r}")
            alternatives = tuple(stack.pop())
            stack[-1][-1].append(alternatives)
        else:
            stack[-1][-1].append(Slot(token[1:-1]))
    if len(stack) > 1:
        raise TemplateError(f"a brace that is not closed in {text!r}")
    if at < len(text):
        stack[0][0].append(text[at:])
    return stack[0][0]


_compiled: dict[str, list] = {}


def _fill(parts: list, random, slots: dict, out: list) -> None:
    for part in parts:
        kind = type(part)
        if kind is str:
            out.append(part)
        elif kind is tuple:
            _fill(part[int(random() * len(part))], random, slots, out)
        else:
            out.append(slots[part])


def fill(text: str, rng: Random, **slots: str) -> str:
    """One of the texts that the template stands for."""
    parts = _compiled.get(text)
    if parts is None:
        parts = _compiled[text] = compile_template(text)
    out: list[str] = []
    _fill(parts, rng.random, slots, out)
    done = "".join(out)
    return done.translate(_PLAIN) if "\x0e" in done else done


_PLAIN = {0x0E: None, 0x10: "{", 0x11: "}", 0x12: "|", 0x13: "<"}
_MARKED = {ord("{"): "\x0e\x10", ord("}"): "\x0e\x11", ord("|"): "\x0e\x12", ord("<"): "\x0e\x13"}


def literal(text: str) -> str:
    """The text for a template to have as it is."""
    return text.translate(_MARKED)


def variants(text: str, limit: int = 4096) -> list[str]:
    """All texts that the template stands for, slots left as they are."""

    def spread(parts: list) -> list[str]:
        done = [""]
        for part in parts:
            if isinstance(part, Slot):
                tails = [f"<{part}>"]
            elif isinstance(part, str):
                tails = [part]
            else:
                tails = [t for alternative in part for t in spread(alternative)]
            done = [d + t for d in done for t in tails][:limit]
        return done

    return [t.translate(_PLAIN) for t in spread(compile_template(text))]


def pick(rng: Random, items):
    """One of a sequence; faster than Random.choice."""
    return items[int(rng.random() * len(items))]


def share(*keys: str) -> int:
    """A number from 0 to 999 that the keys alone decide."""
    return zlib.crc32("\0".join(keys).encode()) % 1000


# One template of eight is kept from training, and one of ten combinations of a
# frame with what is put into it.
HELD_TEMPLATES, HELD_PAIRS = 125, 100


def held_template(text: str) -> bool:
    """Whether a template is kept from training."""
    return share("template", text) < HELD_TEMPLATES


def held_pair(*keys: str) -> bool:
    """Whether a combination is kept from training."""
    return share("pair", *keys) < HELD_PAIRS


_SIGNS = str.maketrans("", "", " \t\n?!.,:;'`\"")


def normal(text: str) -> str:
    """What makes two texts the same: their letters, digits and signs."""
    return text.lower().translate(_SIGNS)


_kept: set[str] = set()


def kept(text: str) -> bool:
    """Whether a phrase is, by whatever way it came, one that is kept from training."""
    return normal(text) in _kept


def _can_be_known(template: str) -> bool:
    # One word or two say nothing to who has never seen them: no other words lead there.
    return "<" in template or len(template.split()) > 2


def split(templates: list[str]) -> tuple[list[str], list[str]]:
    """The templates to train with, and those that are kept from it. A list of fewer
    than four keeps none, since what is left would teach too little."""
    if len(templates) < 4:
        return list(templates), []
    held = [t for t in templates if held_template(t) and _can_be_known(t)]
    train = [t for t in templates if t not in held]
    if len(train) < 3:
        return list(templates), []
    _kept.update(normal(v) for t in held for v in variants(t) if "<" not in t or len(t) > 5)
    return train, held
