"""What people use today for the same work, in the sizes of pe's defaults: a plain GPT, x-transformers, transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS = 128, 4, 4
Model = Callable[[Tensor], Tensor]
"""Tokens (B, T) to logits (B, T, A)."""


class PlainBlock(nn.Module):
    """Pre-norm attention by the fused kernel, then a GELU network of four times the width."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.project(self.before(x)).chunk(3, dim=-1)
        )
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.feed(self.between(x))


class PlainGPT(nn.Module):
    """A GPT-2 in small: learned positions, tied embedding and head."""

    def __init__(self, letters: int, length: int) -> None:
        super().__init__()
        self.embedding, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(length, WIDTH)
        self.blocks = nn.Sequential(*(PlainBlock() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters, bias=False)
        self.apply(small)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.embedding(tokens) + self.places(places))))


def small(module: nn.Module) -> None:
    """Initial weights of GPT-2."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def x_transformers(encoding: str, letters: int, length: int) -> nn.Module:
    """Flash attention wherever the library offers it: its bias of t5 does not go with it."""
    from x_transformers import Decoder, TransformerWrapper

    options: dict[str, Any] = {
        "rope": {"rotary_pos_emb": True, "rotary_emb_dim": WIDTH // HEADS, "attn_flash": True},
        "alibi": {"alibi_pos_bias": True, "alibi_num_heads": HEADS, "attn_flash": True},
        "t5": {"rel_pos_bias": True},
    }[encoding]
    layers = Decoder(dim=WIDTH, depth=LAYERS, heads=HEADS, attn_dim_head=WIDTH // HEADS, **options)
    return TransformerWrapper(num_tokens=letters, max_seq_len=length, use_abs_pos_emb=False, attn_layers=layers)


class Logits(nn.Module):
    """A model of transformers that gives its logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.model(tokens, use_cache=False).logits
        return logits


def llama(letters: int, length: int) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    return Logits(
        LlamaForCausalLM(
            LlamaConfig(
                vocab_size=letters,
                hidden_size=WIDTH,
                intermediate_size=344,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                max_position_embeddings=length,
                bos_token_id=None,
                eos_token_id=None,
            )
        )
    )


def bloom(letters: int, length: int) -> nn.Module:
    from transformers import BloomConfig, BloomForCausalLM

    config = BloomConfig(
        vocab_size=letters, hidden_size=WIDTH, n_layer=LAYERS, n_head=HEADS, bos_token_id=None, eos_token_id=None
    )
    return Logits(BloomForCausalLM(config))
