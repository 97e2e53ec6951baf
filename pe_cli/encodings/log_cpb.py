"""log_cpb: a small network that reads the logarithm of the distance and gives the bias."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings._distance import Network, at_distinct
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees, Width
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView

ACTIVATIONS = {"relu": F.relu, "silu": F.silu}


@register
class LogCPB(PositionEncoding):
    r"""Log-spaced continuous position bias of Swin Transformer V2, for text.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + G_h(\ln(1 + p_i - p_j)), \quad
              G(x) = W_2 \max(0,\ w_1 x + b_1)

    The paper has two coordinates of image patches with signs; a text has one, which is never negative. Each
    layer has its own G. Swin's code multiplies the distance by 8 / (window − 1) before the logarithm, and
    squeezes G to 16 σ(G); the paper has neither, and it divides logits by norms instead of √d.
    `spacing: linear` gives G the distance as it is, which is the dynamic position bias of CrossFormer (arXiv
    2108.00154, three hidden layers, normalised). One library has both spacings, with two hidden layers of
    SiLU, one G for all layers, and a last bias, left out here: it would raise all logits of a head alike.
    """

    name = "log_cpb"
    family = Family.BIAS
    reference = "Liu et al. 2022, arXiv:2111.09883"
    year = 2022
    sees = Sees.DISTANCE

    class Options(EncodingOptions):
        spacing: Literal["log", "linear"] = "log"
        """log: G reads ln(1 + distance); linear: the distance, which beyond the training length is far from
        anything that G has seen."""
        width: Width = 512
        """Units of a hidden layer of G. Swin's code has 512."""
        hidden_layers: int = Field(default=1, ge=1, le=8)
        """How many of them G has."""
        activation: Literal["relu", "silu"] = "relu"
        """What follows each hidden layer."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        activation = ACTIVATIONS[options.activation]
        self.network = Network(spec.n_layers, spec.n_heads, options.width, options.hidden_layers, activation)

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor:
        def biases(distances: Tensor) -> Tensor:
            read = distances.log1p() if self.options.spacing == "log" else distances
            return self.network(layer.index, read)

        return at_distinct(distance.to(layer.x.dtype), biases)
