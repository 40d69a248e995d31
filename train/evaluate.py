"""What the trained model is worth: perplexity of the held-out text, and answers to the held-out questions."""

import math
from collections import Counter

import torch
import torch.nn.functional as F

from .model import Llama, plain_attention, rope_table
from .text.conversation import render, right
from .text.heldout import COMMAND_KINDS

WINDOW, STRIDE = 1024, 512


@torch.inference_mode()
def perplexity(model: Llama, ids: list[int], size: int) -> dict:
    """Of one sequence of ids, whose text has so many bytes. A window of 1,024 tokens moves on by
    512. The first scores all of its tokens but the first, each other one those that the window
    before it did not have; the last window ends with the text and may be shorter. All in float32."""
    device = next(model.parameters()).device
    rope = rope_table(model.c, device)
    total, scored, end = 0.0, 0, 0
    for begin in range(0, len(ids), STRIDE):
        window = torch.tensor([ids[begin : begin + WINDOW]], device=device)
        new = begin + window.shape[1] - max(end, 1)  # tokens that no window before has scored
        if new <= 0:
            break
        logits = model.logits(model(window, rope, None, plain_attention))[0, -new - 1 : -1].float()
        losses = F.cross_entropy(logits, window[0, -new:], reduction="none")
        total += losses.double().sum().item()
        scored, end = scored + new, begin + window.shape[1]
        if end == len(ids):
            break
    mean = total / scored
    return {"tokens": len(ids), "scored": scored, "bytes": size, "nll": mean, "perplexity": math.exp(mean), "bits_per_byte": total / math.log(2) / size}


@torch.inference_mode()
def answers(model: Llama, prompts: list[list[int]], ends: set[int], most: int, budget: int = 120_000) -> list[list[int]]:
    """Greedy answers to prompts of ids, at most so many tokens each, without the token that ends them.
    Rows of one batch have about the same length and together at most budget tokens; what stands
    behind a row's end cannot be seen from before it."""
    device = next(model.parameters()).device
    rope = rope_table(model.c, device)
    out: list[list[int]] = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    at = 0
    while at < len(order):
        longest = at
        while longest < len(order) and (longest - at + 1) * (len(prompts[order[longest]]) + most) <= budget:
            longest += 1
        batch = order[at : max(longest, at + 1)]
        at += len(batch)
        width = min(model.c.context, max(len(prompts[i]) for i in batch) + most)
        ids = torch.zeros(len(batch), width, dtype=torch.long)
        for row, i in enumerate(batch):
            ids[row, : len(prompts[i])] = torch.tensor(prompts[i][:width])
        ids = ids.to(device)
        length = torch.tensor([min(len(prompts[i]), width) for i in batch], device=device)
        live = torch.arange(len(batch), device=device)
        where = list(batch)
        for _ in range(most):
            longest_now = int(length.max())
            if longest_now >= width:
                break
            hidden = model(ids[live][:, :longest_now], rope, None, plain_attention)
            last = hidden[torch.arange(len(live), device=device), length - 1]
            chosen = model.logits(last).argmax(-1)
            ids[live, length] = chosen
            length = length + 1
            keep = []
            for row, token in enumerate(chosen.tolist()):
                if token not in ends:
                    out[where[row]].append(token)
                    keep.append(row)
            if len(keep) < len(where):
                if not keep:
                    break
                kept = torch.tensor(keep, device=device)
                live, length, where = live[kept], length[kept], [where[row] for row in keep]
    return out


def prompt_text(record: dict) -> str:
    """The prompt of a held-out question."""
    return render(record["messages"], record.get("tools"), prompt=True)


def score(records: list[dict], said: list[str]) -> tuple[dict, list[dict]]:
    """How many of the answers are right, by kind, and those that are not."""
    asked: Counter = Counter()
    good: Counter = Counter()
    failures = []
    for r, answer in zip(records, said):
        names = [r["kind"], f"{r['kind']}, {r['held']}", "all"]
        if r["kind"] in COMMAND_KINDS:
            names += ["commands and flags", f"commands and flags, {r['held']}"]
        ok = right(r, answer)
        for name in names:
            asked[name] += 1
            good[name] += ok
        if not ok:
            failures.append({**r, "said": answer})
    table = {name: {"asked": n, "right": good[name], "share": round(good[name] / n, 4)} for name, n in sorted(asked.items())}
    return table, failures
