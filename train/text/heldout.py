"""What the trained model is asked and never was before, with the marks of a right answer."""

from random import Random

from . import about, api, arithmetic, commands, concepts, errors, flags, general, lists, recipes, schema, smalltalk, tools, units
from .conversation import Exchange
from .grammar import normal

# What is asked of facts.
SUBJECTS = (flags.FACTS, flags.GENERAL, commands.FACTS, commands.GENERAL, about.FACTS, concepts.FACTS, api.FACTS, api.GENERAL, errors.FACTS, smalltalk.FACTS, general.FACTS)

# The kinds that are about realizar's commands and flags.
COMMAND_KINDS = ("flags", "flags of commands", "commands", "command lines", "command lines explained")

def questions(seed: int = 1) -> list[Exchange]:
    """All held-out questions, the same for the same seed."""
    rng = Random(f"held out {seed}")
    out: list[Exchange] = []
    for facts in SUBJECTS:
        out += facts.held(rng)
    out += flags.held_has_flag(rng, 200)
    out += recipes.held(rng, 240)
    out += arithmetic.held(rng, 500)
    out += lists.held(rng, 360)
    out += units.held(rng, 120)
    out += schema.held(rng, 240)
    out += tools.held(rng, 300)
    seen: set[str] = set()
    unique = []
    for e in out:  # one question once
        key = normal(" ".join(m["content"] for m in e.question())) + str(bool(e.tools))
        if key not in seen or e.tools:
            seen.add(key)
            unique.append(e)
    return unique


def forbidden(held: list[Exchange]) -> frozenset[str]:
    """The questions that training must not have, by whatever way it came to them."""
    return frozenset(normal(e.question()[-1]["content"]) for e in held if e.question()[-1]["role"] == "user")


def record(e: Exchange) -> dict:
    """A held-out question as heldout.jsonl has it."""
    out: dict = {"kind": e.kind, "held": e.held, "messages": e.question(), "answer": e.answer()}
    if e.tools:
        out["tools"] = e.tools
    for name in ("must", "must_not"):
        if getattr(e, name):
            out[name] = getattr(e, name)
    if e.exact is not None:
        out["exact"] = e.exact
    if e.data is not None:
        out["data"] = e.data
    return out
