"""python3 -m train.text.check: samples to read, and whether the text keeps its promises.

Renders conversations, holds the fast rendering against the chat template (where Jinja2 is
installed), checks every name of a command or flag, that no held-out question is among
those of training, and that held-out answers are right by their own marks.
"""

import argparse
import sys
import time
from collections import Counter
from random import Random

from . import heldout, names, turns
from .conversation import CHAT_TEMPLATE, render, right
from .rephrasings import ASKS, GOALS


def _jinja():
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        return None
    from .conversation import to_json

    def refuse(message):
        raise ValueError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = refuse
    return env.from_string(CHAT_TEMPLATE)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20000, help="conversations to look at")
    parser.add_argument("--show", type=int, default=0, help="conversations to print")
    parser.add_argument("--kind", default="", help="print those of this kind alone")
    parser.add_argument("--seed", default="check")
    args = parser.parse_args()

    held = heldout.questions()
    bad = [e for e in held if not right(heldout.record(e), e.answer())]
    for e in bad[:5]:
        print("not right by its own marks:", heldout.record(e), file=sys.stderr)
    forbidden = heldout.forbidden(held)
    if lost := (set(ASKS) | set(GOALS)) - {f.key for subject in heldout.SUBJECTS for f in subject.facts}:
        raise SystemExit(f"rephrasings of facts that there are not: {sorted(lost)}")
    template = _jinja()

    rng = Random(args.seed)
    begun, size, kinds, roles = time.perf_counter(), 0, Counter(), Counter()
    made = []
    for _ in range(args.count):
        e = turns.conversation(rng)
        text = render(e.messages, e.tools)
        size += len(text)
        made.append((e, text))
    seconds = time.perf_counter() - begun

    leaks, longest = 0, 0
    for n, (e, text) in enumerate(made):
        kinds[e.kind] += len(text)
        longest = max(longest, len(text))
        for m in e.messages:
            roles[m["role"]] += 1
            if m["role"] == "assistant":
                names.check(m["content"])
            elif m["role"] == "user":
                leaks += heldout.normal(m["content"]) in forbidden
        if template is not None and n < 3000:
            want = template.render(messages=e.messages, tools=e.tools, add_generation_prompt=False)
            if want != text:
                raise SystemExit(f"the template writes\n{want!r}\nand render\n{text!r}")
    shown = 0
    for e, text in made:
        if shown < args.show and (not args.kind or e.kind == args.kind):
            print(f"--- {e.kind}\n{text}")
            shown += 1
    print(f"{args.count} conversations, {size / 1e6:.1f} MB, {size / 1e6 / seconds:.1f} MB/s, longest {longest} characters; by characters:")
    for kind, n in kinds.most_common():
        print(f"  {100 * n / size:5.1f}%  {kind}")
    print(f"template: {'the same' if template else 'not compared: no Jinja2'}")
    print(f"{len(held)} held-out questions, {sum(e.kind in heldout.COMMAND_KINDS for e in held)} of them about commands and flags; by kind and what was held:")
    for (kind, why), n in sorted(Counter((e.kind, e.held) for e in held).items()):
        print(f"  {n:5d}  {kind}, {why}")
    print(f"held-out questions that came up by other ways, which training leaves out: {leaks} of {roles['user']} ({100 * leaks / roles['user']:.2f}%)")
    if bad:
        raise SystemExit(f"{len(bad)} held-out answers are not right by their own marks")


if __name__ == "__main__":
    main()
