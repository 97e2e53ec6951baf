"""The numbers of an encoding before any training, read off its hooks."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pe_cli import strategies
from pe_cli.attention import allowed
from pe_cli.config import Experiment
from pe_cli.corpus import encode
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import ConfigError
from pe_cli.seeds import seeded
from pe_cli.trained import fresh_model, spec_of

LONGEST = 2**16
MOST_ENTRIES = 2**22
"""A table, bias or mask with more entries is left out, and the facts say so."""
SAMPLE_TEXT = """\
# Counts from 0 to 12.
def count(numbers):
    for number in [1, 22, 333]:
        if (number + 4) * 5 > 60:
            print("far: {7}", number)

The end, at last. Is it? Yes!
"""
"""What encodings that read ids from the text are shown: lines, indentation, brackets, digits, sentences."""


def inspect_encoding(
    experiment: Experiment,
    length: int,
    *,
    at_length: int | None = None,
    strategy: str = "none",
    text: str | None = None,
) -> dict[str, Any]:
    """Plain facts, ready for JSON, about the encoding of an experiment with fresh weights.

    Arrays are for the T = `length` characters of a window; or, with `at_length`, for that many characters as the
    strategy sees them. `text` is what ids may be read from, repeated up to T characters; the alphabet is its own.
    Always there: encoding, family, options, parameters (a count), reference, sees, length, train_length. Where
    they apply: strategy; text (T; only if ids depend on it); positions (T, or a list for each part or axis);
    table (T × d_model); bias (H × T × T, null above the diagonal; only if it does not depend on the text);
    mask (T × T, or H × T × T if heads differ; true where a query may see a key, causality included); layers
    (which of them bias and mask act in, if not in all: the first one is shown); left_out (what would have
    more than MOST_ENTRIES entries); and all that the encoding itself calls by a name. Numbers that are not finite
    are null.

    Raises ConfigError for a length out of range, PositionRangeError beyond the rows of a learned table, and
    StrategyRefused for a strategy without meaning for the encoding.
    """
    size = length if at_length is None else at_length
    if not 1 <= size <= LONGEST:
        raise ConfigError(f"length {size}: must be from 1 to {LONGEST}")
    source = SAMPLE_TEXT if text is None else text
    if not source:
        raise ConfigError("the text to read ids from is empty")
    alphabet = "".join(sorted(set(source)))
    spec = spec_of(experiment, alphabet)
    encoding = fresh_model(experiment, alphabet).encoding.eval()
    options = {key: value for key, value in experiment.encoding.items() if key != "name"}
    facts: dict[str, Any] = {
        "encoding": encoding.name,
        "family": encoding.family.value,
        "options": options,
        "parameters": sum(parameter.numel() for parameter in encoding.parameters()),
        "reference": encoding.reference,
        "sees": encoding.sees.value,
        "length": size,
        "train_length": spec.train_length,
    }
    if at_length is not None:
        facts["strategy"] = strategy
        encoding = strategies.apply(strategy, encoding, spec.train_length, at_length)
    shown = (source * math.ceil(size / len(source)))[:size]
    tokens = torch.from_numpy(encode(shown, alphabet)).long()[None]
    with torch.no_grad():
        positions = encoding.positions(tokens)
        if not same_ids(positions, encoding.positions(tokens.roll(1, dims=1))):
            facts["text"] = shown
        facts["positions"] = listed_ids(positions)
        facts |= own_numbers(encoding, size, spec.train_length)
        facts |= arrays(encoding, spec, positions, size)
    return facts


def same_ids(first: Positions, second: Positions) -> bool:
    pairs = zip(first.leaves(), second.leaves(), strict=True)
    return all(torch.equal(one.ids, other.ids) for one, other in pairs)


def listed_ids(positions: Positions) -> list[Any]:
    """One list of T ids; one for each axis; or such lists for each part, where the parts differ."""
    parts = [plain(leaf.ids[0].T) for leaf in positions.leaves()]
    return parts[0] if all(part == parts[0] for part in parts) else parts  # type: ignore[no-any-return]


def own_numbers(encoding: PositionEncoding, length: int, train_length: int) -> dict[str, Any]:
    """What the encoding calls by a name, and how many waves do not complete a turn in the training length."""
    facts: dict[str, Any] = {}
    for key, value in encoding.numbers(length).items():
        facts[key] = plain(value)
        prefix, dot, name = key.rpartition(".")
        if name == "wavelengths":
            facts[f"{prefix}{dot}incomplete_wavelengths"] = int((value > train_length).sum())
    return facts


def arrays(encoding: PositionEncoding, spec: ModelSpec, positions: Positions, length: int) -> dict[str, Any]:
    """Table, bias and mask, where the encoding has one."""
    facts: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    hooks = [encoding.hooks(index) for index in range(spec.n_layers)]
    if "embed" in hooks[0]:
        table = encoding.embed(torch.zeros(1, length, spec.d_model), positions)[0]
        if table.numel() <= MOST_ENTRIES:
            facts["table"] = plain(table)
        else:
            left_out["table"] = f"{length} × {spec.d_model}"
    layers = {
        "bias": [index for index, names in enumerate(hooks) if names & {"bias", "by_distance"}],
        "mask": [index for index, names in enumerate(hooks) if "mask" in names],
    }
    for key, acting in layers.items():
        if acting and spec.n_heads * length**2 > MOST_ENTRIES:
            left_out[key] = f"{spec.n_heads} × {length} × {length}"
        elif acting:
            matrix = static(key, encoding, spec, positions, acting[0])
            if matrix is not None:
                facts[key] = plain(matrix)
    partial = {key: acting for key, acting in layers.items() if key in facts and len(acting) < spec.n_layers}
    return facts | {key: value for key, value in (("layers", partial), ("left_out", left_out)) if value}


def static(
    key: str, encoding: PositionEncoding, spec: ModelSpec, positions: Positions, index: int
) -> Tensor | None:
    """The bias or mask of a layer, if two texts with equal ids have the same one whatever the parameters are."""
    moved = perturbed(encoding)
    first, second = (matrices(moved, spec, positions, index, content)[key] for content in (0, 1))
    return matrices(encoding, spec, positions, index, 0)[key] if torch.equal(first, second) else None


def matrices(
    encoding: PositionEncoding, spec: ModelSpec, positions: Positions, index: int, content: int
) -> dict[str, Tensor]:
    """Bias (H, T, T), −∞ above the diagonal, and mask (H, T, T) or (T, T) of a layer with random content."""
    length = positions.leaves()[0].ids.shape[1]
    generator = seeded(content, "content")
    x = torch.randn(1, length, spec.d_model, generator=generator)
    q, k = torch.randn(2, 1, spec.n_heads, length, spec.d_head, generator=generator)
    layer = LayerView(index, x, q, k, positions)
    rotated, whole = encoding.rotate(layer), slice(0, length)
    block = Block(layer, encoding.prepare(layer), *rotated, whole, whole, encoding)
    shape = (spec.n_heads, length, length)
    bias = encoding.dense_bias(block)
    bias = torch.zeros(()) if bias is None else bias
    bias = bias.expand(1, *shape)[0]
    mask = allowed(encoding, block).expand(1, *shape)[0]
    return {
        "bias": bias.masked_fill(~block.causal, -math.inf),
        "mask": mask[0] if bool((mask == mask[0]).all()) else mask,
    }


def perturbed(encoding: PositionEncoding) -> PositionEncoding:
    """A copy with other parameters: many terms start at zero and would look like fixed ones."""
    moved = copy.deepcopy(encoding)
    generator = seeded(0, "perturbation")
    for parameter in moved.parameters():
        parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return moved


def plain(tensor: Tensor) -> Any:
    """Nested lists of Python numbers; None where a number is not finite."""
    array = tensor.detach().cpu().numpy()
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    return np.where(np.isfinite(array), array, None).tolist()


# --- for people


class Table(NamedTuple):
    """What a terminal shows as one table; all cells are text, and no number in them is cut."""

    title: str
    columns: list[str]
    rows: list[dict[str, str]]
    notes: list[str]


COUNTED = {
    "positions": "character",
    "buckets": "distance",
    "rows": "distance",
    "slopes": "head",
    "inverse_frequencies": "pair",
    "wavelengths": "pair",
}
"""What stands beside the entries of a list; a plain number for others."""
MATRIX_SHOWN = 8
LIST_SHOWN = 40


def readable(facts: Mapping[str, Any]) -> list[Table]:
    """The facts as tables: single values in one, then one for each list and each matrix (a head, a part).

    Of a matrix the first 8 rows and columns are shown, of a list the first 40 entries and the last one; equal
    neighbours in a list of whole numbers share a row. A title says the whole size, and "…" stands for the rest.
    """
    single = {key: value for key, value in facts.items() if not isinstance(value, list) or key == "layers"}
    rows = [{"fact": key.replace("_", " "), "value": cell(value)} for key, value in single.items()]
    tables = [Table("", ["fact", "value"], rows, [])]
    for key, value in facts.items():
        if key not in single:
            tables += tables_of(key, value)
    return tables


def tables_of(key: str, value: list[Any], title: str = "") -> list[Table]:
    """One table for a list or a matrix, several for what has three axes or parts."""
    title = title or key.replace("_", " ")
    if not any(isinstance(entry, list) for entry in value):
        return [list_table(key, value, title)]
    if not any(isinstance(item, list) for row in value for item in row):
        return [matrix_table(value, title)]
    return [table for n, part in enumerate(value) for table in tables_of(key, part, f"{title} [{n}]")]


def list_table(key: str, values: list[Any], title: str) -> Table:
    label = COUNTED.get(key.rpartition(".")[-1], "number")
    runs: list[tuple[str, str]] = []
    start = 0
    for value, run in itertools.groupby(values):
        last = start + len(list(run)) - 1
        runs.append((str(start) if start == last else f"{start}–{last}", cell(value)))
        start = last + 1
    if len(runs) > LIST_SHOWN + 1:
        runs = [*runs[:LIST_SHOWN], ("…", "…"), runs[-1]]
    name = key.replace("_", " ")
    return Table(f"{title} ({len(values)})", [label, name], [{label: at, name: value} for at, value in runs], [])


def matrix_table(matrix: list[list[Any]], title: str) -> Table:
    width = max(len(row) for row in matrix)
    columns = ["", *(str(column) for column in range(min(width, MATRIX_SHOWN)))]
    shown = [(str(n), [cell(value) for value in row[:MATRIX_SHOWN]]) for n, row in enumerate(matrix)]
    rows = [dict(zip(columns, [number, *cells], strict=False)) for number, cells in shown[:MATRIX_SHOWN]]
    if width > MATRIX_SHOWN:
        columns.append("…")
        rows = [{**row, "…": "…"} for row in rows]
    if len(matrix) > MATRIX_SHOWN:
        rows.append(dict.fromkeys(columns, "…"))
    return Table(f"{title} ({len(matrix)} × {width})", columns, rows, [])


def cell(value: Any) -> str:
    """A value as text: numbers with 7 digits, as float32 has no more; a block as `key: value` pairs."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {cell(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(cell(inner) for inner in value)
    return str(value)
