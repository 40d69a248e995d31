"""Trains an EAGLE-3 head for the demo model, on answers that the model itself gives.

The head is that of Li et al., "EAGLE-3: Scaling up Inference Acceleration of Large Language Models via
Training-Time Test", 2025: one layer that reads three residual streams of the model. Row p has the
token at position p and the streams of position p-1, and predicts the token at position p+1. In
training it runs several times over a text. The first run reads the model's streams, each later one
what the run before left at the position before, and attends to the model's streams up to where it
itself began.

A server with the model answers the questions (realizar serve demo).
"""

import argparse
import json
import math
import os
import struct
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

# Products here are small, so threads that wait for each other would take most of the time. These are
# read when torch is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import gguf
from .model import MLP, Config, Llama, RMSNorm, rope_table, turn
from .stream import allowed
from .text import heldout, turns
from .text.conversation import render

BEGUN = time.perf_counter()


def log(text: str) -> None:
    """A line with the time."""
    print(f"{time.perf_counter() - BEGUN:7.1f}  {text}", flush=True)


# ---- answers


def prompts(seed: int, count: int) -> list[str]:
    """Prompts as training has them, without questions that are held out."""
    rng, out = Random(f"{seed} head"), []
    forbidden = heldout.forbidden(heldout.questions(seed))
    while len(out) < count:
        e = turns.conversation(rng)
        if allowed(e, forbidden):
            out.append(render(e.question(), e.tools, prompt=True))
    return out


def ask(url: str, path: str, body: dict) -> dict:
    """What the server answers."""
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as r:
        return json.load(r)


def answers(url: str, texts: list[str], sampled: float, most: int, context: int) -> list[tuple[list[int], list[int]]]:
    """The tokens of prompts, and of what the model answers: greedily, and a part of them at
    temperature 1. Prompts that leave no room are left out."""
    end = ask(url, "/tokenize", {"content": "<|im_end|>", "parse_special": True})["tokens"]

    def one(n: int) -> tuple[list[int], list[int]]:
        prompt = ask(url, "/tokenize", {"content": texts[n], "parse_special": True})["tokens"]
        if len(prompt) + most > context:
            return prompt, []
        temperature = 1.0 if (n * 0.6180339887) % 1 < sampled else 0.0
        said = ask(url, "/completion", {"prompt": prompt, "n_predict": most, "n_probs": 1, "temperature": temperature, "seed": n})
        answer = [c["id"] for c in said.get("completion_probabilities", [])]
        if said["stop_type"] == "eos" and answer[-1:] != end:
            answer += end
        return prompt, answer

    with ThreadPoolExecutor(16) as pool:
        return [(p, a) for p, a in pool.map(one, range(len(texts))) if len(a) > 1]


def save(path: Path, data: list[tuple[list[int], list[int]]]) -> None:
    """Prompts and answers in a file."""
    lengths = np.array([(len(p), len(a)) for p, a in data], np.int32)
    np.savez(path, lengths=lengths, ids=np.concatenate([np.array(p + a, np.uint16) for p, a in data]))


def load(path: Path) -> list[tuple[list[int], list[int]]]:
    """Prompts and answers of a file."""
    with np.load(path) as f:
        ids, lengths = f["ids"].astype(np.int64), f["lengths"]
    out, at = [], 0
    for p, a in lengths.tolist():
        out.append((ids[at : at + p].tolist(), ids[at + p : at + p + a].tolist()))
        at += p + a
    return out


# ---- the model that the head is for


def target(path: Path) -> Llama:
    """The model of a GGUF file."""
    meta, tensors = gguf.read(path)
    size = {k: meta[f"llama.{v}"] for k, v in (("vocab", "vocab_size"), ("hidden", "embedding_length"), ("ffn", "feed_forward_length"), ("layers", "block_count"), ("heads", "attention.head_count"), ("kv_heads", "attention.head_count_kv"), ("context", "context_length"))}
    c = Config(**size, head=size["hidden"] // size["heads"], eps=meta["llama.attention.layer_norm_rms_epsilon"], theta=meta["llama.rope.freq_base"])
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    model = Llama(c).eval().requires_grad_(False)
    for name, p in model.named_parameters():
        if name.startswith("layers."):
            _, n, rest = name.split(".", 2)
            found = tensors[f"blk.{n}.{names[rest.removesuffix('.weight')]}.weight"]
            if "q_proj" in name or "k_proj" in name:  # in GGUF the two rows that are turned together are neighbours
                found = found.reshape(-1, c.head // 2, 2, c.hidden).swapaxes(1, 2).reshape(found.shape)
        else:
            found = tensors[{"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}[name]]
        p.copy_(torch.from_numpy(np.ascontiguousarray(found)))
    return model


def streams(model: Llama, ids: Tensor, taps: tuple[int, ...], rope, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The residual streams after so many layers, side by side, and the last hidden states."""
    x = model.embed_tokens(ids)
    found = [x]
    for layer in model.layers:
        x = layer(x, rope, mask, masked_attention)
        found.append(x)
    return torch.cat([found[n] for n in taps], -1), model.norm(x)


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attention with a mask of numbers to add, which is cheaper on a CPU than one of truths."""
    group = q.shape[1] // k.shape[1]
    b, _, t, head = q.shape
    q = q.reshape(b, k.shape[1], group * t, head) * head**-0.5
    scores = (q @ k.transpose(-2, -1)).view(b, k.shape[1], group, t, -1) + mask.unsqueeze(2)
    return (scores.softmax(-1).view(b, k.shape[1], group * t, -1) @ v).view(b, -1, t, head)


# ---- the head


class Head(nn.Module):
    """The head. Its names are those of EAGLE's authors."""

    def __init__(self, c: Config, ffn: int, heads: int, kv_heads: int, ids: Tensor) -> None:
        super().__init__()
        self.c, self.heads, self.kv_heads = c, heads, kv_heads
        self.fc = nn.Linear(3 * c.hidden, c.hidden, bias=False)
        layer = nn.Module()
        layer.input_layernorm = RMSNorm(c.hidden, c.eps)
        layer.hidden_norm = RMSNorm(c.hidden, c.eps)
        layer.post_attention_layernorm = RMSNorm(c.hidden, c.eps)
        layer.self_attn = nn.Module()
        for name, rows in (("q_proj", heads), ("k_proj", kv_heads), ("v_proj", kv_heads)):
            setattr(layer.self_attn, name, nn.Linear(2 * c.hidden, rows * c.head, bias=False))
        layer.self_attn.o_proj = nn.Linear(heads * c.head, c.hidden, bias=False)
        layer.mlp = MLP(Config(hidden=c.hidden, ffn=ffn))
        self.midlayer = layer
        self.norm = RMSNorm(c.hidden, c.eps)
        self.lm_head = nn.Linear(c.hidden, len(ids), bias=False)
        self.ids = ids

    def begin(self, model: Llama) -> None:
        """Sets the weights to begin with: the last stream passes, and the output is the model's."""
        with torch.no_grad():
            for p in self.parameters():
                if p.dim() == 2:
                    p.normal_(std=0.02)
            self.fc.weight[:, -self.c.hidden :] += torch.eye(self.c.hidden)
            self.midlayer.self_attn.o_proj.weight.mul_(0.3)
            self.midlayer.mlp.down_proj.weight.mul_(0.3)
            self.lm_head.weight.copy_(model.embed_tokens.weight[self.ids])
            self.lm_head.weight.requires_grad_(len(self.ids) < self.c.vocab)  # the model's own serves for all tokens
            self.norm.weight.copy_(model.norm.weight)

    def keys(self, x: Tensor, rope) -> tuple[Tensor, Tensor]:
        """Keys, turned, and values of inputs."""
        b, t, _ = x.shape
        a = self.midlayer.self_attn
        k, v = (w(x).view(b, t, self.kv_heads, self.c.head).transpose(1, 2) for w in (a.k_proj, a.v_proj))
        return turn(k, *rope), v

    def forward(self, embedded: Tensor, features: Tensor, mask: Tensor, rope, last: int, runs: int) -> list[Tensor]:
        """The states of each run at the last positions, which the output reads.

        Rows have the token at their position in embedded [B, T, hidden], and the streams of the
        position before in features [B, T, 3 hidden]. mask [B, 1, T, T] is added to scores. Run n has
        read the model's streams up to n positions before its own."""
        layer, out = self.midlayer, []
        e = layer.input_layernorm(embedded)
        g = self.fc(features)
        b, t, width = g.shape
        keys, values = self.keys(torch.cat((e, layer.hidden_norm(g)), -1), rope)
        group = self.heads // self.kv_heads
        own: list[tuple[Tensor, Tensor]] = []  # keys and values of the runs so far, at the last positions
        e, g = e[:, t - last :], g[:, t - last :]
        near = (rope[0][:, :, t - last :], rope[1][:, :, t - last :])
        for run in range(runs):
            if run:  # the states of the run before, at the position before
                g = torch.cat((g[:, :1], out[-1][:, :-1]), 1)
            x = torch.cat((e, layer.hidden_norm(g)), -1)
            q = turn(layer.self_attn.q_proj(x).view(b, last, self.heads, self.c.head).transpose(1, 2), *near) * self.c.head**-0.5
            q = q.reshape(b, self.kv_heads, group * last, self.c.head)
            if run:
                own.append(self.keys(x, near))
            seen = mask[:, :, t - last - run : t - run].unsqueeze(2)
            scores = ((q @ keys.transpose(-2, -1)).view(b, self.kv_heads, group, last, t) + seen).view(b, self.kv_heads, group * last, t)
            # Position p of run n attends to what run i left at position p-n+i.
            further = []
            for i, (k, v) in enumerate(own, 1):
                k, v = (F.pad(y[:, :, : last - (run - i)], (0, 0, run - i, 0)).repeat(1, 1, group, 1) for y in (k, v))
                further.append(((q * k).sum(-1, keepdim=True), v))
            p = torch.cat([scores, *(s for s, _ in further)], -1).softmax(-1)
            y = p[..., :t] @ values
            for i, (_, v) in enumerate(further):
                y = y + p[..., t + i, None] * v
            y = y.view(b, self.heads, last, self.c.head).transpose(1, 2).reshape(b, last, -1)
            x = g + layer.self_attn.o_proj(y)
            out.append(x + layer.mlp(layer.post_attention_layernorm(x)))
        return out


# ---- training


class Batch:
    """Texts of about one length, the last of whose tokens are the answers. Shorter ones begin later."""

    def __init__(self, data: list[tuple[list[int], list[int]]], runs: int) -> None:
        t = max(len(p) + len(a) for p, a in data)
        self.last = max(len(a) for _, a in data) + runs
        t = max(t, self.last + runs)
        self.ids = torch.zeros(len(data), t, dtype=torch.long)
        self.begin = torch.tensor([t - len(p) - len(a) for p, a in data])
        self.scored = torch.zeros(len(data), t, dtype=torch.bool)  # the token after this one is one to predict
        for row, (p, a) in enumerate(data):
            self.ids[row, self.begin[row] :] = torch.tensor(p + a)
            self.scored[row, t - len(a) : t - 1] = True

    @torch.no_grad()
    def prepare(self, model: Llama, taps: tuple[int, ...], table) -> None:
        """Computes what the model makes of it."""
        t = self.ids.shape[1]
        at = (torch.arange(t) - self.begin[:, None]).clamp(min=0)
        rope = (table[0][at].unsqueeze(1), table[1][at].unsqueeze(1))
        found, hidden = streams(model, self.ids, taps, rope, self.mask(0))
        self.features = F.pad(found, (0, 0, 1, 0))[:, :-1].half()  # of the position before
        self.at = at
        self.hidden = hidden[self.scored].half()

    def mask(self, unseen: int) -> Tensor:
        """What to add to scores; so many positions at the beginning are not seen."""
        t = self.ids.shape[1]
        may = torch.ones(t, t, dtype=torch.bool).tril() & (torch.arange(t) >= self.begin[:, None] + unseen)[:, None, :]
        return torch.zeros(may.shape).masked_fill(~may, -1e4).unsqueeze(1)


def batches(data: list[tuple[list[int], list[int]]], size: int, runs: int) -> list[Batch]:
    """Batches of at most so many positions."""
    order = sorted(range(len(data)), key=lambda i: (len(data[i][1]) // 8, len(data[i][0])))
    out: list[Batch] = []
    group: list[int] = []
    for i in order:
        longest = max(sum(map(len, data[j])) for j in [*group, i])
        if group and longest * (len(group) + 1) > size:
            out.append(Batch([data[j] for j in group], runs))
            group = []
        group.append(i)
    return [*out, Batch([data[j] for j in group], runs)]


def run(head: Head, model: Llama, b: Batch, table, runs: int) -> tuple[list[Tensor], Tensor]:
    """The logits of each run at the positions that count, and the model's."""
    rope = (table[0][b.at].unsqueeze(1), table[1][b.at].unsqueeze(1))
    states = head(model.embed_tokens(b.ids), b.features.float(), b.mask(1), rope, b.last, runs)
    scored = b.scored[:, -b.last :]
    return [head.lm_head(head.norm(s[scored])) for s in states], model.logits(b.hidden.float())


def measure(head: Head, model: Llama, data: list[Batch], table, runs: int) -> list[float]:
    """How often the likeliest token of a run is the model's, where those of the runs before it were."""
    asked, right = [0] * runs, [0] * runs
    with torch.no_grad():
        for b in data:
            logits, want = run(head, model, b, table, runs)
            # Run n at position p is the last of a draft that begins n positions before, whose other
            # tokens are run i at position p-n+i.
            good = torch.zeros(runs, *b.scored[:, -b.last :].shape, dtype=torch.bool)
            here = b.scored[:, -b.last :]
            for n, l in enumerate(logits):
                good[n][here] = head.ids[l.argmax(-1)] == want.argmax(-1)
            alive = here.clone()
            for n in range(runs):
                if n:
                    alive = F.pad(alive & good[n - 1], (1, 0))[:, :-1] & here
                asked[n] += int(alive.sum())
                right[n] += int((alive & good[n]).sum())
    return [r / max(1, a) for r, a in zip(right, asked)]


def tokens(shares: list[float], n: int) -> float:
    """The tokens of a step whose draft has n."""
    return 1 + sum(math.prod(shares[: i + 1]) for i in range(n))


def train(args, head: Head, model: Llama, data: list[Batch], held: list[Batch], table) -> list[dict]:
    """Trains the head and returns how it went. The rate falls to zero over the steps."""
    steps, rows, order, rng = args.epochs * len(data), [], [], Random(f"{args.seed} order")
    learnt = [p for p in head.parameters() if p.requires_grad]
    groups = [{"params": [p for p in learnt if p.dim() == 2], "weight_decay": 0.01}, {"params": [p for p in learnt if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.rate, betas=(0.9, 0.95), eps=1e-8)
    local = torch.full((model.c.vocab,), -1)
    local[head.ids] = torch.arange(len(head.ids))
    mean = 0.0
    for step in range(steps):
        if not order:
            order = list(range(len(data)))
            rng.shuffle(order)
        b = data[order.pop()]
        for group in optimizer.param_groups:
            group["lr"] = args.rate * min(1, (step + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))
        logits, want = run(head, model, b, table, args.runs)
        known = local[want.argmax(-1)] >= 0  # a token without a number cannot be learnt
        share = want[:, head.ids].softmax(-1)[known]
        loss = sum(0.9**n * F.cross_entropy(l[known], share) for n, l in enumerate(logits)) / sum(0.9**n for n in range(args.runs))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        mean += loss.item()
        if (step + 1) % args.every == 0 or step + 1 == steps:
            shares = measure(head, model, held, table, args.runs)
            rows.append({"step": step + 1, "loss": round(mean / ((step % args.every) + 1), 4), "right": [round(s, 4) for s in shares], "tokens": round(tokens(shares, 3), 3)})
            log(f"step {step + 1} of {steps}, loss {rows[-1]['loss']:.4f}, right {' '.join(f'{100 * s:.1f}' for s in shares)}, {rows[-1]['tokens']:.2f} tokens a step of three drafted")
            mean = 0.0
    return rows


# ---- files


def export(folder: Path, head: Head, taps: tuple[int, ...], ffn: int) -> None:
    """config.json and model.safetensors, as EAGLE's authors write them."""
    c = head.c
    config = {
        "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": c.hidden, "target_hidden_size": c.hidden, "intermediate_size": ffn, "num_hidden_layers": 1,
        "num_attention_heads": head.heads, "num_key_value_heads": head.kv_heads, "head_dim": c.head, "hidden_act": "silu", "max_position_embeddings": c.context, "rms_norm_eps": c.eps,
        "rope_theta": c.theta, "vocab_size": c.vocab, "draft_vocab_size": len(head.ids), "eagle_config": {"eagle_aux_hidden_state_layer_ids": [n - 1 for n in taps], "use_aux_hidden_state": True}, "torch_dtype": "float32",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    arrays = {name: p.detach().numpy().astype("<f4") for name, p in head.named_parameters() if p.requires_grad}
    if len(head.ids) < c.vocab:
        arrays["d2t"] = (head.ids - torch.arange(len(head.ids))).numpy().astype("<i8")
    header, at = {}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": "I64" if name == "d2t" else "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (folder / "model.safetensors").open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for a in arrays.values():
            f.write(a.tobytes())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the head's files")
    parser.add_argument("--model", type=Path, default=Path("demo/demo.gguf"))
    parser.add_argument("--answers", type=Path, required=True, help="file of answers; where it is missing, a server is asked for them")
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=16000, help="questions to ask")
    parser.add_argument("--use", type=int, default=0, help="train on so many of the answers; default: all")
    parser.add_argument("--sampled", type=float, default=0.25, help="part of the answers that is sampled at temperature 1; the others are greedy")
    parser.add_argument("--most", type=int, default=200, help="most tokens of an answer")
    parser.add_argument("--taps", type=int, nargs=3, default=[2, 4, 6], help="the streams to read, by the number of layers before them")
    parser.add_argument("--ffn", type=int, default=512)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--vocab", type=int, default=768, help="tokens that the head can predict: the most frequent ones of answers; with all of them the output is the model's own")
    parser.add_argument("--runs", type=int, default=4, help="runs of the head over a text")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=4096, help="positions in a batch")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--every", type=int, default=250, help="steps from one measurement to the next")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)

    model = target(args.model)
    if not args.answers.exists():
        texts = prompts(args.seed, args.count)
        log(f"{len(texts)} questions")
        save(args.answers, answers(args.url, texts, args.sampled, args.most, model.c.context))
    data = load(args.answers)
    every = max(8, len(data) // 400)  # one of so many is not trained on
    held, data = data[::every], [d for i, d in enumerate(data) if i % every]
    data = data[: args.use or len(data)]
    often = np.bincount([t for _, a in data for t in a], minlength=model.c.vocab)
    ids = torch.from_numpy(np.sort(np.argsort(-often, kind="stable")[: args.vocab]))
    log(f"{len(data)} answers of {sum(len(a) for _, a in data)} tokens after prompts of {sum(len(p) for p, _ in data)}; {100 * often[ids].sum() / often.sum():.2f}% are among the {len(ids)} that the head can predict")

    head = Head(model.c, args.ffn, args.heads, args.kv_heads, ids)
    head.begin(model)
    log(f"{sum(p.numel() for p in head.parameters() if p.requires_grad)} weights")
    table, taps = rope_table(model.c, "cpu"), tuple(args.taps)
    sets = [batches(d, args.batch, args.runs) for d in (data, held)]
    with ThreadPoolExecutor(args.threads) as pool:
        list(pool.map(lambda b: b.prepare(model, taps, table), (*sets[0], *sets[1])))
    log(f"{len(sets[0])} batches")
    rows = train(args, head, model, *sets, table)
    export(args.out, head, taps, args.ffn)
    options = {k: str(v) if isinstance(v, Path) else v for k, v in vars(args).items()}
    (args.out / "report.json").write_text(json.dumps({"options": options, "torch": torch.__version__, "train": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
