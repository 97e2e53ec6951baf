"""nearest: the trained ids, each for several characters in a row."""

from __future__ import annotations

from pe_cli.encodings._composition import Renumbered
from pe_cli.encodings.base import PositionEncoding, precise
from pe_cli.encodings.views import Positions
from pe_cli.strategies._ids import require_ids
from pe_cli.strategies.registry import Strategy, register


@register
class Nearest(Strategy):
    r"""Groups of T / L characters in a row share each trained id.

    .. math:: p' = \lfloor p\,L / T \rfloor

    For a table it is resizing by the nearest row. It is `interpolate` for encodings to which ids between whole
    numbers mean nothing; characters of a group cannot be told apart by their ids, near ones neither, which
    `self_extend` avoids for rotations.
    """

    name = "nearest"
    reference = "common practice in resizing tables, without a paper of its own"
    needs = "ids"

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        require_ids(self.name, encoding)

        def grouped(positions: Positions) -> Positions:
            ids = (precise(positions.ids) * train_length / length).floor()
            return Positions(ids.to(positions.ids.dtype))

        return Renumbered(encoding, grouped)
