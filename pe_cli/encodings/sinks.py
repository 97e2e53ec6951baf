"""sinks: another encoding, with queries that see the first characters of the text and the last ones."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._sparse import both_allowed, first_and_local, first_and_local_reach, meeting
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Block, LayerView


@register
class Sinks(Wrapper):
    r"""A window that keeps the attention sinks: a mask in the shape of a Λ, with any encoding on top.

    .. math:: A_i = \{j \le i : j < s\} \cup \{j \le i : i - j < w\}

    Softmax has to put its weight somewhere, and models put it on the first characters. This is the mask alone:
    distances to the sinks stay true and grow with the text. StreamingLLM, which has the same mask, numbers the
    characters that it keeps anew, so that ids end at s + w; LM-Infinite (arXiv:2308.16137), which has it too,
    puts all keys outside the window at one fixed distance. Both are made for models that were trained without a mask.
    """

    name = "sinks"
    family = Family.SPARSE
    reference = "Xiao et al. 2023, arXiv:2309.17453"
    year = 2023

    class Options(EncodingOptions):
        encoding: EncodingBlock = Field(default={"name": "rope"})
        """Name or block of the encoding that acts among the allowed keys."""
        sinks: NonNegativeInt = 4
        """s: how many first characters all queries see. The paper finds four enough; 0 leaves a window."""
        window: PositiveInt | None = None
        """w, the own character included. None: half the training length."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec, build(options.encoding, spec))
        self.window = options.window or max(1, spec.train_length // 2)

    def mask(self, block: Block) -> Tensor | None:
        own = first_and_local(block.offset, block.key_index, self.options.sinks, self.window)
        return both_allowed(own, self.inner.mask(block))

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        own = first_and_local_reach(queries, self.options.sinks, self.window, layer.q.device)
        return meeting(own, self.inner.reach(layer, queries))
