"""transformer_xl: queries meet a projected sinusoid of the distance; two learned vectors stand for any query."""

from __future__ import annotations

import math

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from pe_cli.encodings._relative import falling_distances, is_run, skewed
from pe_cli.encodings._rotary import angles, inverse_frequencies
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block, LayerView


@register
class TransformerXL(PositionEncoding):
    r"""The relative attention of Transformer-XL, without its memory of earlier windows.

    .. math:: s_{ij} = \bigl((q_i + u) \cdot k_j + (q_i + v) \cdot W_R R_n\bigr) / \sqrt{d}, \quad
              n = \min(p_i - p_j,\ c), \quad R_n = (\sin n\theta_k \ldots, \cos n\theta_k \ldots), \quad
              \theta_k = b^{-2k/D}

    Each layer has its own :math:`W_R`; u and v, which differ by head, serve all layers, as in the paper and its
    PyTorch code. Its TensorFlow code can untie them. Queries and keys are taken as they are before any rotation
    by another encoding. For an odd D, R has D + 1 entries.
    """

    name = "transformer_xl"
    family = Family.RELATIVE
    reference = "Dai et al. 2019, arXiv:1901.02860"
    year = 2019
    sees = Sees.DISTANCE

    class Options(EncodingOptions):
        base: float = Field(default=10000.0, ge=1)
        """b: wavelengths run from 2π to about 2πb."""
        clamp: PositiveInt | None = None
        """c: all distances from here on count as this one. The released code sets it in evaluation only."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        self.frequencies = inverse_frequencies(spec.d_model, options.base)
        shape = (spec.n_layers, spec.n_heads, spec.d_head, 2 * len(self.frequencies))
        # 0.02 is the standard deviation of all weights in the released code
        self.weight = nn.Parameter(torch.empty(shape).normal_(std=0.02))
        self.u = nn.Parameter(torch.empty(spec.n_heads, spec.d_head).normal_(std=0.02))
        self.v = nn.Parameter(torch.empty(spec.n_heads, spec.d_head).normal_(std=0.02))

    def prepare(self, layer: LayerView) -> Tensor | None:
        """W_R R (H, T + 1, K) at falling distances, where ids are equally spaced."""
        distance = falling_distances(layer)
        return None if distance is None else self.sinusoid(distance) @ self.weight[layer.index].transpose(-2, -1)

    def bias(self, block: Block) -> Tensor:
        k = block.layer.k[:, :, block.keys].to(self.u.dtype)
        q = block.layer.q[:, :, block.queries].to(self.v.dtype) + self.v[:, None]
        q = q / math.sqrt(q.shape[-1])
        if block.state is not None and is_run(block):
            by_distance = block.state[:, -1 - k.shape[2] :]
            position = skewed(q @ by_distance.transpose(-2, -1))
        else:
            position = self.by_ids(q @ self.weight[block.layer.index], block)
        return position + (self.u[:, None] / math.sqrt(k.shape[-1])) @ k.transpose(-2, -1)

    def by_ids(self, wave: Tensor, block: Block) -> Tensor:
        """Products of `wave` (B, H, Q, W) with R, for any ids: R of a difference is a turn of R."""
        angle = angles(block.layer.positions.ids, self.frequencies)[:, None]
        cos, sin = angle.cos().to(wave.dtype), angle.sin().to(wave.dtype)
        cos_q, sin_q = cos[:, :, block.queries], sin[:, :, block.queries]
        a, b = wave.chunk(2, dim=-1)  # the factors of sin nθ and cos nθ
        turned = torch.cat((b * sin_q - a * cos_q, a * sin_q + b * cos_q), dim=-1)
        keys = torch.cat((sin, cos), dim=-1)[:, :, block.keys]
        products = turned @ keys.transpose(-2, -1)
        if self.options.clamp is None:
            return products
        last = self.sinusoid(block.distance.new_tensor([self.options.clamp]))
        return torch.where(block.distance[:, None] < self.options.clamp, products, wave @ last.T)

    def sinusoid(self, distance: Tensor) -> Tensor:
        """R (n, W) of the distances (n,)."""
        angle = angles(distance.clamp(max=self.options.clamp or math.inf), self.frequencies)
        return torch.cat((angle.sin(), angle.cos()), dim=-1).to(self.weight.dtype)

    def numbers(self, length: int) -> dict[str, Tensor]:
        frequencies = torch.tensor(self.frequencies, dtype=torch.float64)
        return {"inverse_frequencies": frequencies, "wavelengths": 2 * math.pi / frequencies}
