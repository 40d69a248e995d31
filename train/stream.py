"""The stream of training: processes that write conversations, make tokens of them and pack these
into rows, while the model trains on what is there.

Shard n is the same whoever makes it, so that a run is what its seed and its number of steps
make it, however fast the machine.
"""

import json
import multiprocessing
import os
import time
from pathlib import Path
from random import Random

import numpy as np

from .text import heldout, turns
from .text.conversation import Exchange, render
from .text.grammar import kept

ROW = 1025  # 1,024 inputs and what follows each
ROWS = 512  # of a shard
PAD, REST, ANSWER = 0, 1, 2  # what a token is, which says how much its loss counts


def sample_text(seed: int, part: int, size: int) -> list[str]:
    """Conversations of about so many characters in all, for the tokenizer to learn from."""
    rng, texts, total = Random(f"{seed} tokenizer {part}"), [], 0
    while total < size:
        e = turns.conversation(rng)
        texts.append(render(e.messages, e.tools))
        total += len(texts[-1])
    return texts


def allowed(e: Exchange, forbidden: frozenset[str]) -> bool:
    """Whether a conversation has no held-out question."""
    return not any(m["role"] == "user" and (kept(m["content"]) or heldout.normal(m["content"]) in forbidden) for m in e.messages)


class Packer:
    """Makes rows of conversations: each goes whole into the open row with the least room for it."""

    def __init__(self, pad: int, open_rows: int = 48) -> None:
        self.pad, self.limit = pad, open_rows
        self.open: list[tuple[list[np.ndarray], list[np.ndarray], int]] = []
        self.rows: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, ids: np.ndarray, kinds: np.ndarray) -> None:
        """Puts a conversation into a row."""
        best, room = -1, ROW + 1
        for i, (_, _, used) in enumerate(self.open):
            left = ROW - used - len(ids)
            if 0 <= left < room:
                best, room = i, left
        if best < 0:
            if len(self.open) == self.limit:  # the fullest is done
                self.close(max(range(len(self.open)), key=lambda i: self.open[i][2]))
            self.open.append(([ids], [kinds], len(ids)))
            return
        tokens, marks, used = self.open[best]
        tokens.append(ids)
        marks.append(kinds)
        self.open[best] = (tokens, marks, used + len(ids))
        if used + len(ids) > ROW - 16:
            self.close(best)

    def close(self, i: int) -> None:
        """Ends an open row."""
        tokens, marks, used = self.open.pop(i)
        row, kinds = np.full(ROW, self.pad, np.uint16), np.full(ROW, PAD, np.uint8)
        row[:used], kinds[:used] = np.concatenate(tokens), np.concatenate(marks)
        self.rows.append((row, kinds))


class Maker:
    """Makes shards."""

    def __init__(self, seed: int, tokenizer_file: str, forbidden: frozenset[str]) -> None:
        from tokenizers import Tokenizer

        self.seed, self.forbidden = seed, forbidden
        self.tokenizer = Tokenizer.from_file(tokenizer_file)
        self.end_of_text = self.tokenizer.token_to_id("<|endoftext|>")
        self.start, self.end = self.tokenizer.token_to_id("<|im_start|>"), self.tokenizer.token_to_id("<|im_end|>")
        self.head = self.tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False).ids

    def conversations(self, rng: Random, count: int) -> list[str]:
        """Conversations that have no held-out question."""
        texts = []
        while len(texts) < count:
            e = turns.conversation(rng)
            if allowed(e, self.forbidden):
                texts.append(render(e.messages, e.tools))
        return texts

    def kinds(self, ids: np.ndarray) -> np.ndarray:
        """What each token is: of an answer, its end included, or not."""
        starts = np.flatnonzero(ids == self.start)
        starts = starts[ids[np.minimum(starts + 1, len(ids) - 1)] == self.head[1]]
        ends = np.flatnonzero(ids == self.end)
        first = starts + len(self.head)
        last = ends[np.searchsorted(ends, first)]
        step = np.zeros(len(ids) + 1, np.int32)
        np.add.at(step, first, 1)
        np.add.at(step, last + 1, -1)
        return np.where(np.cumsum(step[:-1]) > 0, ANSWER, REST).astype(np.uint8)

    def shard(self, number: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Rows of tokens, what each token is, and the bytes of text in them."""
        rng = Random(f"{self.seed} shard {number}")
        packer, size = Packer(self.end_of_text), 0
        encode = getattr(self.tokenizer, "encode_batch_fast", self.tokenizer.encode_batch)
        while len(packer.rows) < ROWS:
            texts = self.conversations(rng, 400)
            for text, encoding in zip(texts, encode(texts, add_special_tokens=False)):
                ids = np.array([*encoding.ids, self.end_of_text], np.uint16)
                if len(ids) <= ROW:
                    packer.add(ids, self.kinds(ids))
                    size += len(text)
        rows = packer.rows[:ROWS]
        return np.stack([r for r, _ in rows]), np.stack([k for _, k in rows]), size


def _learn(folder: Path, parts: int) -> None:
    from . import tokens

    texts = [tokens.bare(t) for i in range(parts) for t in json.loads((folder / f"sample{i}.json").read_text())]
    tokens.learn(texts).save(str(folder / "making.json"))
    os.replace(folder / "making.json", folder / "tokenizer.json")


def _work(number: int, workers: int, seed: int, folder: Path, sample_size: int, counter, consumed, stop, barrier) -> None:
    # One process: text for the tokenizer, the tokenizer (the first process), then shards.
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if number == 0 else "false"
    os.environ["RAYON_NUM_THREADS"] = str(workers) if number == 0 else "1"
    part = sample_text(seed, number, sample_size // workers)
    (folder / f"sample{number}.json").write_text(json.dumps(part))
    barrier.wait()
    if number == 0:
        _learn(folder, workers)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    forbidden = heldout.forbidden(heldout.questions(seed))
    while not (folder / "tokenizer.json").exists():
        if stop.is_set():
            return
        time.sleep(0.05)
    maker = Maker(seed, str(folder / "tokenizer.json"), forbidden)
    while not stop.is_set():
        with counter.get_lock():
            n = counter.value
            counter.value += 1
        while n > consumed.value + 6 * workers and not stop.is_set():
            time.sleep(0.05)
        rows, kinds, size = maker.shard(n)
        np.savez(folder / f"making{n}.npz", rows=rows, kinds=kinds, size=size)
        os.replace(folder / f"making{n}.npz", folder / f"shard{n}.npz")


class Stream:
    """The processes, and the shards that they make, in order."""

    def __init__(self, folder: Path, seed: int, workers: int, sample_size: int) -> None:
        context = multiprocessing.get_context("fork")
        self.folder, self.waited, self.bytes, self.rows_read = folder, 0.0, 0, 0
        counter, self.consumed = context.Value("q", 0), context.Value("q", 0)
        self.stop, barrier = context.Event(), context.Barrier(workers)
        self.processes = [
            context.Process(target=_work, args=(i, workers, seed, folder, sample_size, counter, self.consumed, self.stop, barrier), daemon=True) for i in range(workers)
        ]  # fmt: skip
        for p in self.processes:
            p.start()

    def wait_for(self, name: str) -> Path:
        """A file that the processes make."""
        path = self.folder / name
        while not path.exists():
            if dead := [p for p in self.processes if p.exitcode not in (None, 0)]:
                raise RuntimeError(f"a process that makes text failed with {dead[0].exitcode}; see its message above")
            time.sleep(0.02)
        return path

    def shard(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """A shard; waits until it is there."""
        begun = time.perf_counter()
        path = self.wait_for(f"shard{number}.npz")
        self.waited += time.perf_counter() - begun
        with np.load(path) as data:
            rows, kinds = data["rows"], data["kinds"]
            self.bytes += int(data["size"])
        self.rows_read += len(rows)
        path.unlink()
        self.consumed.value = number
        return rows, kinds

    def close(self) -> None:
        """Ends the processes."""
        self.stop.set()
        for p in self.processes:
            p.join(timeout=3)
            if p.is_alive():
                p.kill()
