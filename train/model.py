"""The model: a llama of 6.6 million parameters, as transformers names and computes it."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    """The shape. All matrices have columns that are multiples of 256."""

    vocab: int = 4096
    hidden: int = 256
    ffn: int = 768
    layers: int = 7
    heads: int = 8
    kv_heads: int = 4
    head: int = 32
    context: int = 1024
    eps: float = 1e-5
    theta: float = 10000.0
    dropout: float = 0.0  # while training: of the embedding and of what attention and MLP add

    def as_transformers(self, eos: list[int], pad: int) -> dict:
        """config.json."""
        return {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": self.vocab, "hidden_size": self.hidden, "intermediate_size": self.ffn,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads, "head_dim": self.head, "hidden_act": "silu",
            "max_position_embeddings": self.context, "rms_norm_eps": self.eps, "rope_theta": self.theta, "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False,
            "initializer_range": 0.02, "use_cache": True, "torch_dtype": "float16", "bos_token_id": pad, "eos_token_id": eos, "pad_token_id": pad,
        }  # fmt: skip


class RMSNorm(nn.Module):
    """x / sqrt(mean(x²) + eps) · weight, in float32."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).to(x.dtype)


def rope_table(c: Config, device) -> tuple[Tensor, Tensor]:
    """Cosines and sines by position, [context, head]; halves are turned."""
    frequencies = c.theta ** (-torch.arange(0, c.head, 2, device=device, dtype=torch.float32) / c.head)
    angles = torch.outer(torch.arange(c.context, device=device, dtype=torch.float32), frequencies)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [B, heads, T, head] turned by position."""
    half = x.shape[-1] // 2
    rotated = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return (x * cos + rotated * sin).to(x.dtype)


def plain_attention(q: Tensor, k: Tensor, v: Tensor, mask) -> Tensor:
    """Attention written out. mask is [B or 1, 1, T, T], true where a query may look, or None for all before it."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    if mask is None:
        t = q.shape[-2]
        mask = torch.ones(t, t, dtype=torch.bool, device=q.device).tril()
    scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    return scores.masked_fill(~mask, float("-inf")).softmax(-1).to(v.dtype) @ v


def sdpa_attention(q: Tensor, k: Tensor, v: Tensor, mask) -> Tensor:
    """The same by PyTorch's own kernel."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)


def flex_attention(q: Tensor, k: Tensor, v: Tensor, mask) -> Tensor:
    """The same by PyTorch's kernels for block masks, which skip what nobody may look at."""
    from torch.nn.attention.flex_attention import flex_attention as flex

    return flex(q, k, v, block_mask=mask, enable_gqa=True)


class Attention(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.c = c
        self.q_proj = nn.Linear(c.hidden, c.heads * c.head, bias=False)
        self.k_proj = nn.Linear(c.hidden, c.kv_heads * c.head, bias=False)
        self.v_proj = nn.Linear(c.hidden, c.kv_heads * c.head, bias=False)
        self.o_proj = nn.Linear(c.heads * c.head, c.hidden, bias=False)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], mask, attend) -> Tensor:
        b, t, _ = x.shape
        q = self.q_proj(x).view(b, t, self.c.heads, self.c.head).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.c.kv_heads, self.c.head).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.c.kv_heads, self.c.head).transpose(1, 2)
        y = attend(turn(q, *rope), turn(k, *rope), v, mask)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))


class MLP(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(c.hidden, c.ffn, bias=False)
        self.up_proj = nn.Linear(c.hidden, c.ffn, bias=False)
        self.down_proj = nn.Linear(c.ffn, c.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(c.hidden, c.eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.hidden, c.eps)
        self.mlp = MLP(c)
        self.dropout = c.dropout

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], mask, attend) -> Tensor:
        x = x + F.dropout(self.self_attn(self.input_layernorm(x), rope, mask, attend), self.dropout, self.training)
        return x + F.dropout(self.mlp(self.post_attention_layernorm(x)), self.dropout, self.training)


class Llama(nn.Module):
    """The model without its head, which is the embedding."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.c = c
        self.embed_tokens = nn.Embedding(c.vocab, c.hidden)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = RMSNorm(c.hidden, c.eps)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                scale = 0.02
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    scale /= (2 * c.layers) ** 0.5
                nn.init.normal_(p, std=scale)

    def forward(self, ids: Tensor, rope: tuple[Tensor, Tensor], mask=None, attend=plain_attention, dtype=torch.float32) -> Tensor:
        """The hidden states that the head reads, [B, T, hidden], with a residual of that type."""
        t = ids.shape[1]
        x = F.dropout(self.embed_tokens(ids).to(dtype), self.c.dropout, self.training)
        rope = (rope[0][:t], rope[1][:t])
        for layer in self.layers:
            x = layer(x, rope, mask, attend)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """The scores of all tokens."""
        return F.linear(hidden, self.embed_tokens.weight)

    def as_transformers(self) -> dict[str, Tensor]:
        """The weights by transformers' names; the tied head is left out."""
        return {f"model.{name}": p.detach().clone() for name, p in self.named_parameters()}
