"""Muon: steps for matrices whose singular values are all about one, so that no direction of a
matrix learns much faster than the others. Everything that is no matrix, and the embedding, is AdamW's."""

import torch
from torch import Tensor

# A quintic whose iteration brings singular values from (0, 1] near 1.
_A, _B, _C = 3.4445, -4.7750, 2.0315


def orthogonal(g: Tensor, steps: int = 5) -> Tensor:
    """Matrices [N, rows, columns] with rows <= columns, with their singular values brought near 1."""
    x = g.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.transpose(-2, -1)
        x = _A * x + (_B * s + _C * (s @ s)) @ x
    return x.to(g.dtype)


class Muon(torch.optim.Optimizer):
    """Momentum 0.95 in Nesterov's form; matrices of one shape are done together."""

    def __init__(self, params, lr: float, momentum: float = 0.95, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[tuple[Tensor, Tensor, bool]]] = {}
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                m = state["momentum"]
                m.lerp_(p.grad, 1 - group["momentum"])
                g = p.grad.lerp(m, group["momentum"])
                tall = p.shape[0] > p.shape[1]
                g = g.T if tall else g
                by_shape.setdefault(tuple(g.shape), []).append((p, g, tall))
            for rows in by_shape.values():
                done = orthogonal(torch.stack([g for _, g, _ in rows]))
                for (p, _, tall), update in zip(rows, done):
                    scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_(update.T if tall else update, alpha=-group["lr"] * scale)
