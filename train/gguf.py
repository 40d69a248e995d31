"""Reads the weights of a GGUF file, as far as those of a small llama need it."""

import struct
from pathlib import Path

import numpy as np

_SIMPLE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _LIST = 8, 9
F32, F16, Q8_0 = 0, 1, 8


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str):
        """One value of a form of struct."""
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self) -> str:
        """A string with its length before it."""
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n : self.at].decode()

    def value(self, kind: int):
        """A value of the metadata."""
        if kind == _STRING:
            return self.text()
        if kind == _LIST:
            inner, n = self.take("I"), self.take("Q")
            return [self.value(inner) for _ in range(n)]
        return self.take(_SIMPLE[kind])


def read(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """The metadata and the tensors in float32, rows first."""
    r = _Reader(path.read_bytes())
    if r.data[:4] != b"GGUF":
        raise SystemExit(f"{path} is no GGUF file")
    r.at = 8
    tensors, keys = r.take("Q"), r.take("Q")
    meta = {}
    for _ in range(keys):
        name, kind = r.text(), r.take("I")
        meta[name] = r.value(kind)
    found = []
    for _ in range(tensors):
        name, dimensions = r.text(), r.take("I")
        shape = [r.take("Q") for _ in range(dimensions)][::-1]
        found.append((name, shape, r.take("I"), r.take("Q")))
    align = meta.get("general.alignment", 32)
    begin = -(-r.at // align) * align
    return meta, {name: _values(path, name, r.data, begin + offset, shape, kind) for name, shape, kind, offset in found}


def _values(path: Path, name: str, data: bytes, at: int, shape: list[int], kind: int) -> np.ndarray:
    n = int(np.prod(shape))
    if kind == F32:
        values = np.frombuffer(data, "<f4", n, at)
    elif kind == F16:
        values = np.frombuffer(data, "<f2", n, at)
    elif kind == Q8_0:  # blocks of 32 with a scale
        blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("codes", "i1", 32)]), n // 32, at)
        values = blocks["codes"].astype(np.float32) * blocks["scale"].astype(np.float32)[:, None]
    else:
        raise SystemExit(f"{path}: {name} has the type {kind}; the types are F32, F16 and Q8_0")
    return values.astype(np.float32).reshape(shape)
