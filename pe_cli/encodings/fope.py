"""fope: rope whose pairs of columns see fixed random mixtures of all frequencies instead of one each."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import NonNegativeFloat
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings._rotary import (
    Rotary,
    RotaryOptions,
    angles,
    completing_a_turn,
    inverse_frequencies,
    require_even_head,
    turned,
)
from pe_cli.encodings.base import ModelSpec, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView
from pe_cli.errors import refused


@register
class FoPE(Rotary):
    r"""Fourier position embedding.

    .. math:: (x_m, x_{m'}) \mapsto (C_m x_m - S_m x_{m'},\ C_m x_{m'} + S_m x_m), \quad
              C_m = \sum_{\omega} a^{\cos}_{h \omega m} \cos(\omega p), \quad
              S_m = \sum_{\omega} a^{\sin}_{h \omega m} \sin(\omega p), \quad \omega \ge 2\pi / L

    The frequencies are rope's, without those of waves longer than the training length L. Sine and cosine have
    coefficients of their own, so this is no rotation, and logits depend on more than the distance. Coefficients
    are drawn with the seed, one set for each head and for all layers; they are not trained, and saved with the
    weights. In column m, the frequency m · ⌈D/M⌉ has 1 added, of D that are kept for the M = min(D, d/4) pairs
    that are mixed, as in the released code. There, and in the listing of the paper, C = S = 1 in all other pairs;
    its equation has the number 1 there (C = 1, S = 0). The listing also divides the coefficients of a pair by
    their sum, which the code has as a switch and leaves off.
    """

    name = "fope"
    reference = "Hua et al. 2024, arXiv:2412.17739"
    year = 2024
    sees = Sees.ABSOLUTE

    class Options(RotaryOptions):
        gain: NonNegativeFloat = 0.3
        """Of Xavier's normal draw of the coefficients, as in the code; the text of the paper calls it σ."""
        others: Literal["both_one", "unchanged"] = "both_one"
        """The pairs that see no ids. both_one: C = S = 1, which doubles their products; unchanged: C = 1, S = 0."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        require_even_head(spec)
        if spec.d_head < 4:
            raise refused(
                "",
                f"model.d_model {spec.d_model} with model.n_heads {spec.n_heads} gives heads of "
                f"{spec.d_head} columns, and a pair is mixed for every 4; {4 * spec.n_heads} columns or more would do",
            )
        every = completing_a_turn(inverse_frequencies(spec.d_head, options.base), spec)
        super().__init__(options, spec, [frequency for frequency in every if frequency > 0], options.layout)
        kept, mixed = len(self.frequencies), min(len(self.frequencies), spec.d_head // 4)
        # what Xavier's rule makes of a stack of matrices (heads, kept, mixed)
        deviation = options.gain * math.sqrt(2 / (mixed * (kept + spec.n_heads)))
        for name in ("cosines", "sines"):
            drawn = torch.empty(spec.n_heads, kept, mixed).normal_(std=deviation)
            self.register_buffer(name, drawn.add_(leading(kept, mixed)))

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        angle = angles(layer.positions.ids, self.frequencies)[:, None]  # (B or 1, 1, T, kept)
        cos, sin = (
            mixed.to(layer.q.dtype)
            for mixed in (angle.cos() @ self.cosines.to(angle.dtype), angle.sin() @ self.sines.to(angle.dtype))
        )
        others = (0, layer.q.shape[-1] // 2 - cos.shape[-1])
        cos = F.pad(cos, others, value=1.0)
        sin = F.pad(sin, others, value=1.0 if self.options.others == "both_one" else 0.0)
        return turned(layer.q, cos, sin, self.layout), turned(layer.k, cos, sin, self.layout)

    def numbers(self, length: int) -> dict[str, Tensor]:
        return super().numbers(length) | {"mixed_pairs": torch.tensor(self.cosines.shape[-1])}


def leading(kept: int, mixed: int) -> Tensor:
    """(kept, mixed): 1 where a frequency leads a pair. With a step that does not fit, the last have no leader."""
    step = math.ceil(kept / mixed)
    return torch.tensor([[float(frequency == step * pair) for pair in range(mixed)] for frequency in range(kept)])
