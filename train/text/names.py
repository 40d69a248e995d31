"""The names of realizar's commands and flags, and a check that no text has others."""

import json
import re
from pathlib import Path

KNOWLEDGE = json.loads((Path(__file__).parent.parent / "knowledge.json").read_text())
COMMANDS: dict[str, dict] = KNOWLEDGE["commands"]

# Words that may follow the name of the program in a sentence.
_PROSE = frozenset(
    "is has does can runs reads needs makes takes opens and or in on as with for from of to was will should itself"
    " also never keeps gives uses writes knows computes loads maps says answers serves listens sends stops refuses"
    " supports asks finds shares finishes chooses works would must at by had speaks wants puts cannot comes a the measures checks compares prints does not fetches keeps then this fast do just freely alone works like best behind".split()
)

_FLAG = re.compile(r"(?<![\w-])--[a-zA-Z][\w-]*")
_SHORT = re.compile(r"(?<=\s)-[a-zA-Z](?=\s|$)")
_AFTER = re.compile(r"\brealizar ((?:bench serve|bench model|[a-z][\w-]*))")
_LINE = re.compile(r"\brealizar (bench serve|bench model|[a-z]+)([^\n`|]*)")

GLOBAL_FLAGS = frozenset(KNOWLEDGE["global_flags"])  # of every command
ALL_FLAGS = frozenset(f for c in COMMANDS.values() for f in c["flags"]) | GLOBAL_FLAGS
HEADS = frozenset(COMMANDS) | {"bench"}


class UnknownName(ValueError):
    """A text that names a command or a flag that does not exist."""


def flags_of(command: str) -> dict:
    """The flags of a command, "bench" being "bench model"."""
    return COMMANDS["bench model" if command == "bench" else command]["flags"]


def commands_with(flag: str) -> list[str]:
    """The commands that have a flag, in the order of the help."""
    return [name for name, c in COMMANDS.items() if flag in c["flags"]]


def check(text: str) -> None:
    """Raises where the text names a command or a flag that does not exist."""
    if "--" in text:
        for flag in _FLAG.findall(text):
            if flag not in ALL_FLAGS:
                raise UnknownName(f"no flag is called {flag}: {text!r}")
    for word in _AFTER.findall(text):
        if word not in HEADS and word not in _PROSE:
            raise UnknownName(f"no command is called {word!r}: {text!r}")
    for command, rest in _LINE.findall(text):
        if command not in HEADS or " -" not in rest:
            continue
        known = flags_of(command)
        for flag in _FLAG.findall(rest):
            if flag not in known and flag not in GLOBAL_FLAGS:
                raise UnknownName(f"realizar {command} has no flag {flag}: {text!r}")
        shorts = {f.get("short") for f in known.values()}
        for flag in _SHORT.findall(rest):
            if flag not in shorts and flag != "-h":
                raise UnknownName(f"realizar {command} has no flag {flag}: {text!r}")
