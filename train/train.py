"""python3 -m train.train --out FOLDER --minutes 6: text, tokenizer, training, evaluation, export.

Everything is made from one seed. --minutes is the time of the whole command; training takes
what the rest leaves, and its rate falls to zero at its end. --steps fixes the number of steps
instead, which makes a run the same again whatever the machine's speed.
"""

import argparse
import copy
import hashlib
import json
import math
import os
import platform
import shutil
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

import numpy as np
import torch
import torch.nn.functional as F

from . import evaluate
from .model import Config, Llama, flex_attention, plain_attention, rope_table, sdpa_attention
from .muon import Muon
from .stream import ANSWER, PAD, REST, Packer, Stream
from .text import heldout
from .text.conversation import render
from .text.grammar import normal
from .text.grammar import share as share_of

ANSWER_WEIGHT, REST_WEIGHT = 1.0, 0.1
BEGUN = time.perf_counter()

# Asked at the end, for people to read.
SAMPLES = [
    "hello", "who are you?", "what can you do?", "Why is the sky blue?", "Tell me a story.", "tell me a sad story about a fox and a lantern", "Name a colour.", "what does --top-k do?", "how do I make the server reachable from my phone?",
    "i want shorter answers", "realizar serve with https?", "how can i see how fast my machine is", "give me a command to run model.gguf on the gpu with temperature 0.3 and 50 tokens", "what is the difference between run and serve?", "what is Q4_K_M?",
    "my gpu isnt found", "how much memory does it need", "247 + 586", "what is 34 * 27?", "845 / 13", "sort 42, 7, 99, 13", "sort pear, apple, fig", "spell giraffe", "reverse stone", "how many r in strawberry", "what day is 10 days after Friday?",
    "who was Napoleon?", "write a python script", "thank you", "is it free?", "error: address already in use", "which metric shows waiting requests", "what is n in a request", "explain `realizar bench model.gguf -p 0 --batch 1,4`", "does realizar work on windows",
    "what is --gpu-layers", "how do i compare two quantizations", "can i use it without internet", "poem about a mouse", "what is the capital of Norway?", "Tell me about the flag --kv-host.", "how to stop a server", "what happens if the prompt is too long?",
]  # fmt: skip


def log(text: str) -> None:
    """A line with the time since the start."""
    print(f"{time.perf_counter() - BEGUN:7.1f} s  {text}", flush=True)


def weights_of(kinds: torch.Tensor) -> torch.Tensor:
    """How much each token's loss counts."""
    table = torch.zeros(3, device=kinds.device)
    table[REST], table[ANSWER] = REST_WEIGHT, ANSWER_WEIGHT
    assert PAD == 0
    return table[kinds.long()]


class Masks:
    """Which tokens may look at which: those before them in the same conversation."""

    def __init__(self, kind: str, end_of_text: int) -> None:
        self.kind, self.end_of_text = kind, end_of_text
        self.create = None
        if kind == "flex":
            from torch.nn.attention.flex_attention import create_block_mask

            self.create = torch.compile(create_block_mask)

    def of(self, ids: torch.Tensor):
        """The mask of rows of ids [B, T], as the attention wants it."""
        ended = ids == self.end_of_text
        document = ended.int().cumsum(1).int() - ended.int()
        b, t = ids.shape
        if self.kind == "flex":

            def looks(batch, head, query, key):
                return (query >= key) & (document[batch, query] == document[batch, key])

            return self.create(looks, b, None, t, t, device=ids.device)
        before = torch.ones(t, t, dtype=torch.bool, device=ids.device).tril()
        return (before & (document[:, :, None] == document[:, None, :]))[:, None]


class Trainer:
    """The model with its optimizers, on one device."""

    def __init__(self, config: Config, device: str, attention: str, compiled: bool, optimizer: str, rates: tuple[float, float], decay: float, end_of_text: int, seed: int) -> None:
        torch.manual_seed(seed)
        self.config, self.device = config, device
        self.model = Llama(config).to(device)
        self.rope = rope_table(config, device)
        self.attend = {"flex": flex_attention, "sdpa": sdpa_attention, "plain": plain_attention}[attention]
        self.masks = Masks(attention, end_of_text)
        self.loss = torch.compile(self._loss) if compiled else self._loss
        matrices = [p for n, p in self.model.named_parameters() if p.dim() == 2 and not n.startswith("embed")]
        embedding = [p for n, p in self.model.named_parameters() if n.startswith("embed")]
        norms = [p for n, p in self.model.named_parameters() if p.dim() != 2]
        others = [{"params": embedding, "weight_decay": decay}, {"params": norms, "weight_decay": 0.0}]
        matrix_rate, rate = rates
        fused = {"fused": True} if device.startswith("cuda") else {}
        if optimizer == "muon":
            self.optimizers = [Muon(matrices, lr=matrix_rate, weight_decay=decay), torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), **fused)]
        else:
            self.optimizers = [torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, *others], lr=rate, betas=(0.9, 0.95), **fused)]
        self.average = copy.deepcopy(self.model).eval().requires_grad_(False)
        self._weights, self._averages = list(self.model.parameters()), list(self.average.parameters())
        self.base = [[g["lr"] for g in o.param_groups] for o in self.optimizers]

    def _loss(self, ids: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, mask) -> torch.Tensor:
        hidden = self.model(ids, self.rope, mask, self.attend, torch.bfloat16)
        logits = self.model.logits(hidden).float()
        losses = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1), reduction="none")
        weights = weights.reshape(-1)
        return (losses * weights).sum() / weights.sum()

    def step(self, rows: torch.Tensor, kinds: torch.Tensor, share: float) -> torch.Tensor:
        """One step with rows [B, 1025], at a share of the full rate. Returns the loss."""
        for o, base in zip(self.optimizers, self.base):
            for g, rate in zip(o.param_groups, base):
                g["lr"] = rate * share
        ids, targets = rows[:, :-1], rows[:, 1:]
        with torch.autocast(self.device.split(":")[0], torch.bfloat16):
            loss = self.loss(ids, targets, weights_of(kinds[:, 1:]), self.masks.of(ids))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for o in self.optimizers:
            o.step()
            o.zero_grad(set_to_none=True)
        return loss.detach()

    @torch.no_grad()
    def follow(self, share: float) -> None:
        """Moves the average of the weights by that share towards the weights."""
        torch._foreach_lerp_(self._averages, [p.detach() for p in self._weights], share)

    @torch.no_grad()
    def held_loss(self, rows: torch.Tensor, kinds: torch.Tensor, batch: int) -> float:
        """The mean loss of the answers' tokens in rows that are not trained with."""
        total, count = 0.0, 0
        self.model.eval()
        for i in range(0, len(rows), batch):
            part, marks = rows[i : i + batch], kinds[i : i + batch]
            wanted = (marks[:, 1:] == ANSWER).float()
            with torch.autocast(self.device.split(":")[0], torch.bfloat16):
                loss = self.loss(part[:, :-1], part[:, 1:], wanted, self.masks.of(part[:, :-1]))
            total, count = total + loss.item() * wanted.sum().item(), count + wanted.sum().item()
        self.model.train()
        return total / max(count, 1)


class Chooser:
    """Asks some of the held-out questions while the model trains, and keeps the best weights.

    What it asks is asked of no model afterwards and is in no file, so that what is
    reported has not been chosen by."""

    def __init__(self, records: list[dict], tokenizer, every: float) -> None:
        self.records, self.tokenizer, self.every = records, tokenizer, every
        self.prompts = [tokenizer.encode(evaluate.prompt_text(r), add_special_tokens=False).ids for r in records]
        self.ends = {tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|endoftext|>")}
        self.rows: list[dict] = []
        self.best: tuple[float, str, dict] | None = None

    def ask(self, model: Llama, name: str, step: int) -> None:
        """Marks a model, and keeps its weights if they are as good as the best so far."""
        said = evaluate.answers(model, self.prompts, self.ends, 160)
        table, _ = evaluate.score(self.records, [self.tokenizer.decode(a, skip_special_tokens=False) for a in said])
        shares = {kind: row["share"] for kind, row in table.items()}
        commands = shares.get("commands and flags", shares["all"])
        score = (commands + shares["all"]) / 2
        self.rows.append({"step": step, "weights": name, "score": round(score, 4), "asked": len(self.records), "shares": shares})
        groups = {"commands": commands, "all": shares["all"]}
        groups |= {k: shares[k] for k in ("commands and flags, frame", "commands and flags, wording", "errors", "small talk", "about realizar", "http api", "arithmetic: sums", "arithmetic: quotients", "calendar", "json") if k in shares}
        log(f"step {step}, {name}: " + ", ".join(f"{k} {100 * v:.1f}%" for k, v in groups.items()))
        if self.best is None or score >= self.best[0]:
            self.best = score, f"{name} of step {step}", {n: p.detach().clone() for n, p in model.named_parameters()}


def make_trainer(args, config: Config, end_of_text: int) -> tuple[Trainer, str]:
    """A trainer whose first steps work, with the fastest attention that does: a kernel that cannot
    be compiled must not cost the run."""
    choices = [("flex", True), ("sdpa", True), ("sdpa", False)] if args.device.startswith("cuda") else [("plain", False)]
    if args.attention:
        choices = [(args.attention, args.attention != "plain")]
    for attention, compiled in choices:
        try:
            trainer = Trainer(config, args.device, attention, compiled, args.optimizer, (args.matrix_rate, args.rate), args.decay, end_of_text, args.seed)
            loss = warm_up(trainer, args.batch, end_of_text, compiled)
            log(f"attention {attention}, {'compiled' if compiled else 'not compiled'}, loss of random tokens {loss:.3f}")
            return trainer, f"{attention}{', compiled' if compiled else ''}"
        except Exception:  # noqa: BLE001: whatever a compiler does, the next choice may work
            traceback.print_exc()
            log(f"attention {attention} does not work here")
    raise SystemExit("no attention works on this device")


def warm_up(trainer: Trainer, batch: int, end_of_text: int, compiled: bool) -> float:
    """Steps at a rate of 0, which change no weight, so that everything is compiled."""
    generator = torch.Generator().manual_seed(1)
    graphs = 0
    for n in range(4):
        rows = torch.randint(0, trainer.config.vocab - 7, (batch, 1025), generator=generator).to(trainer.device)
        rows[:, 100 + n :: 100] = end_of_text
        kinds = torch.full_like(rows, ANSWER, dtype=torch.uint8)
        loss = trainer.step(rows, kinds, 0.0).item()
        trainer.held_loss(rows, kinds, batch)
        if not math.isfinite(loss):
            raise ValueError(f"the first loss is {loss}")
        if compiled:
            now = torch._dynamo.utils.counters["stats"]["unique_graphs"]
            if n == 3 and now != graphs:
                raise RuntimeError("it is compiled again at every step")
            graphs = now
    for o in trainer.optimizers:
        o.state.clear()
    return loss


def chosen_by(e) -> bool:
    """Whether a held-out question is for choosing weights: about one of twelve."""
    return share_of("choosing", normal(e.question()[-1]["content"])) < 80


def held_rows(maker, held: list, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of held-out conversations, for the curve."""
    packer = Packer(maker.end_of_text)
    for e in held:
        ids = np.array([*maker.tokenizer.encode(render(e.messages, e.tools), add_special_tokens=False).ids, maker.end_of_text], np.uint16)
        if len(ids) <= 1025 and len(packer.rows) < count:
            packer.add(ids, maker.kinds(ids))
    while packer.open and len(packer.rows) < count:
        packer.close(0)
    return np.stack([r for r, _ in packer.rows]), np.stack([k for _, k in packer.rows])


def held_text(held: list, size: int, seed: int) -> str:
    """Rendered held-out conversations of about so many bytes, in random order."""
    order = held[:]
    Random(f"{seed} held text").shuffle(order)
    out, total = [], 0
    for e in order:
        text = render(e.messages, e.tools)
        if total + len(text.encode()) > size:
            break
        out.append(text)
        total += len(text.encode())
    return "".join(out)


def train(trainer: Trainer, stream: Stream, args, until: float, held: tuple[torch.Tensor, torch.Tensor], chooser: Chooser) -> dict:
    """Trains until that time on the clock, or for --steps."""
    device, batch = args.device, args.batch
    begun = time.perf_counter()
    until = max(until, begun + 15)  # a rehearsal trains a little whatever compiling took
    losses, curve, recent = [], [], []
    step, shard, rows, kinds, at = 0, 0, None, None, 0
    asked = begun
    progress = 0.0
    while True:
        if rows is None or at + batch > len(rows):
            host_rows, host_kinds = stream.shard(shard)
            shard += 1
            rows = torch.from_numpy(host_rows.astype(np.int32)).to(device, non_blocking=True).long()
            kinds = torch.from_numpy(host_kinds).to(device, non_blocking=True)
            at = 0
        now = time.perf_counter()
        progress = step / args.steps if args.steps else (now - begun) / (until - begun)
        if progress >= 1:
            break
        share = min(1.0, (step + 1) / args.warmup) * max(0.0, 1 - progress)
        recent.append(trainer.step(rows[at : at + batch], kinds[at : at + batch], share))
        at += batch
        step += 1
        # The average is over about a tenth of the steps so far, and over 500 at most.
        trainer.follow(max(0.002, 10 / (step + 10)))
        if step % 20 == 0 or step == 1:
            mean = torch.stack(recent).mean().item()  # waits for the device, so that the clock is right
            recent = []
            losses.append([step, round(mean, 4)])
            if not math.isfinite(mean):
                raise SystemExit(f"the loss is {mean} at step {step}: lower --rate or --matrix-rate")
        if step % args.held_every == 0:
            curve.append([step, round(trainer.held_loss(*held, batch), 4)])
            seconds = time.perf_counter() - begun
            log(f"step {step}, {100 * progress:.0f}%, loss {losses[-1][1]:.4f}, held out {curve[-1][1]:.4f}, {step * batch * 1024 / seconds / 1e6:.2f} M tokens/s, waited {stream.waited:.1f} s for text")
        if chooser.every and now - asked > chooser.every and until - now > chooser.every / 2:
            asked = now
            attempt(chooser.ask, trainer.average, "average", step)
    if recent:
        losses.append([step, round(torch.stack(recent).mean().item(), 4)])
    seconds = time.perf_counter() - begun
    curve.append([step, round(trainer.held_loss(*held, batch), 4)])
    log(f"{step} steps in {seconds:.0f} s, loss {losses[-1][1] if losses else '-'}, held out {curve[-1][1]}")
    if chooser.best is not None:
        # What is trained to the end is to win unless something before it is better by a point.
        chooser.best = (chooser.best[0] - 0.01, *chooser.best[1:])
    trainer.model.eval()
    attempt(chooser.ask, trainer.model, "last weights", step)
    attempt(chooser.ask, trainer.average, "average", step)
    return {
        "steps": step, "tokens": step * batch * 1024, "seconds": round(seconds, 1), "tokens_a_second": round(step * batch * 1024 / seconds), "shards": shard, "text_bytes": stream.bytes,
        "waited_for_text_seconds": round(stream.waited, 1), "losses": losses, "held_out_losses": curve,
    }  # fmt: skip


def attempt(what, *arguments) -> None:
    """Does it, and says so where it fails: what only helps to choose must not cost the run."""
    try:
        what(*arguments)
    except Exception:  # noqa: BLE001
        traceback.print_exc()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for what comes of it")
    parser.add_argument("--minutes", type=float, default=6, help="time of the whole command")
    parser.add_argument("--steps", type=int, default=0, help="train for so many steps, whatever time they take")
    parser.add_argument("--reserve", type=float, default=0, help="seconds kept for evaluation and export; default: 45, or a quarter of short runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128, help="rows of 1,024 tokens in a step")
    parser.add_argument("--rate", type=float, default=0.004, help="AdamW's rate")
    parser.add_argument("--matrix-rate", type=float, default=0.02, help="Muon's rate")
    parser.add_argument("--warmup", type=int, default=100, help="steps")
    parser.add_argument("--dropout", type=float, default=0.1, help="of the embedding and of what attention and MLP add")
    parser.add_argument("--decay", type=float, default=0.05, help="weight decay, times the rate")
    parser.add_argument("--ask-every", type=float, default=40, help="seconds from one asking of held-out questions to the next; 0: none before the end")
    parser.add_argument("--optimizer", choices=["muon", "adamw"], default="muon")
    parser.add_argument("--attention", choices=["flex", "sdpa", "plain"], default="", help="default: the first that works")
    parser.add_argument("--held-every", type=int, default=250, help="steps from one held-out loss to the next")
    parser.add_argument("--sample-mb", type=float, default=48, help="megabytes of text that the tokenizer learns from")
    parser.add_argument("--workers", type=int, default=0, help="processes that make text; default: all cores but one")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=Config.layers)
    parser.add_argument("--text-kb", type=int, default=300, help="kilobytes of held-out text for perplexity")
    parser.add_argument("--questions", type=int, default=0, help="ask so many of the held-out questions; default: all")
    args = parser.parse_args()
    budget = args.minutes * 60
    reserve = args.reserve or min(45.0, budget / 4)
    args.out.mkdir(parents=True, exist_ok=True)
    check(args)
    folder = Path(tempfile.mkdtemp(prefix="train"))
    workers = args.workers or max(1, (os.cpu_count() or 2) - 1)

    stream = Stream(folder, args.seed, workers, int(args.sample_mb * 1e6))  # forks: before the GPU is touched
    try:
        run(args, folder, stream, BEGUN + budget - reserve)
    finally:
        stream.close()
        shutil.rmtree(folder, ignore_errors=True)


def run(args, folder: Path, stream: Stream, until: float) -> None:
    """What the command does once its processes are under way."""
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        raise SystemExit(f"PyTorch {torch.__version__} sees no GPU for --device {args.device}")
    log(", ".join(f"{k} {v}" for k, v in (hardware(args.device) | versions()).items()))
    torch.backends.cuda.matmul.allow_tf32 = False
    config = Config(layers=args.layers, dropout=args.dropout)
    # The compiler runs while the text for the tokenizer is made. Ids are known by their
    # order: three special tokens and four marks stand at the end of the vocabulary.
    end_of_text = config.vocab - 7
    trainer, attention = make_trainer(args, config, end_of_text)
    phases = {"compiled": round(time.perf_counter() - BEGUN, 1)}
    stream.wait_for("tokenizer.json")
    phases["tokenizer"] = round(time.perf_counter() - BEGUN, 1)
    log("the tokenizer is there")

    from tokenizers import Tokenizer

    from . import tokens
    from .stream import Maker

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    if tokenizer.token_to_id("<|endoftext|>") != end_of_text:
        raise SystemExit(f"<|endoftext|> is {tokenizer.token_to_id('<|endoftext|>')}, not {end_of_text}")
    held = heldout.questions(args.seed)
    Random(f"{args.seed} held order").shuffle(held)
    chooser = Chooser([heldout.record(e) for e in held if chosen_by(e)], tokenizer, args.ask_every)
    held = [e for e in held if not chosen_by(e)]
    maker = Maker(args.seed, str(folder / "tokenizer.json"), frozenset())
    rows, kinds = held_rows(maker, held, args.batch)
    held_data = (torch.from_numpy(rows.astype(np.int64)).to(args.device), torch.from_numpy(kinds).to(args.device))
    text = held_text(held, args.text_kb * 1000, args.seed)
    (args.out / "heldout.txt").write_text(text)

    log(f"{len(held)} held-out questions, and {len(chooser.records)} to choose weights by; training until {until - BEGUN:.0f} s")
    try:
        trained = train(trainer, stream, args, until, held_data, chooser)
    except (Exception, SystemExit) as failure:  # noqa: BLE001: weights that were good once are better than none
        if chooser.best is None:
            raise
        traceback.print_exc()
        log(f"training failed: {failure}")
        trained = {"failed": str(failure)}
    phases["trained"] = round(time.perf_counter() - BEGUN, 1)
    stream.stop.set()

    model = trainer.model.eval()
    if chooser.best is not None:
        score, name, weights = chooser.best
        log(f"taken: {name}, {100 * score:.1f}%")
        with torch.no_grad():
            for n, p in model.named_parameters():
                p.copy_(weights[n])
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    torch.set_float32_matmul_precision("highest")
    before = evaluate.perplexity(model, ids, len(text.encode()))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.half().float())  # from here on the model is what the file holds
    export(args.out, model, config, tokenizer, tokens)
    after = evaluate.perplexity(model, ids, len(text.encode()))
    log(f"perplexity {before['perplexity']:.4f}, with weights in F16 {after['perplexity']:.4f}, {after['bits_per_byte']:.4f} bits a byte")

    records = [heldout.record(e) for e in (held[: args.questions] if args.questions else held)]
    pack_held_out(args.out, records)
    options = {k: str(v) if isinstance(v, Path) else v for k, v in vars(args).items()}
    report = {
        "options": options, "attention": attention, "parameters": sum(p.numel() for p in model.parameters()), "hardware": hardware(args.device), "versions": versions(),
        "seconds": phases, "train": trained, "along training": chooser.rows, "taken": chooser.best[1] if chooser.best else "last weights", "perplexity": {"float32 weights": before, "F16 weights": after},
    }  # fmt: skip
    write_report(args.out, report)  # so that the losses are there whatever becomes of the rest

    ends = {tokenizer.token_to_id("<|im_end|>"), end_of_text}
    prompts = [tokenizer.encode(evaluate.prompt_text(r), add_special_tokens=False).ids for r in records]
    said = evaluate.answers(model, prompts, ends, 200)
    table, failures = evaluate.score(records, [tokenizer.decode(a, skip_special_tokens=False) for a in said])
    log(f"{len(records)} questions answered, {100 * table['all']['share']:.1f}% rightly")
    asked = [tokenizer.encode(evaluate.prompt_text({"messages": [{"role": "user", "content": q}]}), add_special_tokens=False).ids for q in SAMPLES]
    samples = [[q, tokenizer.decode(a, skip_special_tokens=False)] for q, a in zip(SAMPLES, evaluate.answers(model, asked, ends, 200))]
    phases["evaluated"] = round(time.perf_counter() - BEGUN, 1)

    (args.out / "failures.jsonl").write_text("".join(json.dumps(f, ensure_ascii=False) + "\n" for f in failures))
    report["accuracy"], report["samples"] = table, samples
    write_report(args.out, report)
    for name, row in table.items():
        print(f"{100 * row['share']:6.1f}%  {row['right']:5d} of {row['asked']:5d}  {name}")
    for question, answer in samples:
        print(f"> {question}\n{answer}")
    log("done")


def pack_held_out(out: Path, records: list[dict]) -> None:
    """heldout.jsonl and heldout.txt as one file."""
    (out / "heldout.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records))
    with tarfile.open(out / "heldout.tar.xz", "w:xz", preset=3) as tar:
        for name in ("heldout.jsonl", "heldout.txt"):
            tar.add(out / name, arcname=name)
            (out / name).unlink()


def write_report(out: Path, report: dict) -> None:
    """report.json, with the sums of the files beside it."""
    report["files"] = {p.name: {"bytes": p.stat().st_size, "sha256": hashlib.sha256(p.read_bytes()).hexdigest()} for p in sorted(out.iterdir()) if p.name != "report.json"}
    (out / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def export(out: Path, model: Llama, config: Config, tokenizer, tokens) -> None:
    """The model's files."""
    from safetensors.torch import save_file

    weights = {name: w.half().cpu().contiguous() for name, w in model.as_transformers().items()}
    save_file(weights, str(out / "model.safetensors"), metadata={"format": "pt"})
    tokens.write(tokenizer, out)
    ends = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    (out / "config.json").write_text(json.dumps(config.as_transformers(ends, ends[1]), indent=2) + "\n")


def check(args) -> None:
    """Ends the command where the run could not end well: something to import, a GPU, room or an empty folder is missing."""
    import safetensors.torch  # noqa: F401
    import tokenizers  # noqa: F401

    if there := sorted(p.name for p in args.out.iterdir()):
        raise SystemExit(f"{args.out} has {', '.join(there[:8])}: --out takes an empty folder")
    for folder, size in ((args.out, 64 << 20), (Path(tempfile.gettempdir()), 2 << 30)):
        if (free := shutil.disk_usage(folder).free) < size:
            raise SystemExit(f"{folder} has {free >> 20} MiB free, and {size >> 20} are needed; TMPDIR names another folder for text")


def hardware(device: str) -> dict:
    """What the run had."""
    return {"gpu": torch.cuda.get_device_name() if device.startswith("cuda") else None, "cores": os.cpu_count(), "system": platform.platform()}


def versions() -> dict:
    """What the run was made with."""
    import tokenizers

    return {"python": sys.version.split()[0], "torch": torch.__version__, "numpy": np.__version__, "tokenizers": tokenizers.__version__, "cuda": torch.version.cuda}


if __name__ == "__main__":
    main()
