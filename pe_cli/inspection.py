"""The numbers of an encoding before any training, read off its hooks."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pe_cli import strategies
from pe_cli.attention import allowed
from pe_cli.config import Experiment, spec_of
from pe_cli.corpus import encode
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import ConfigError
from pe_cli.options import LONGEST_SHOWN
from pe_cli.seeds import seeded
from pe_cli.trained import fresh_model

LENGTH = 16
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

    Arrays are for the T characters of a window: T = `at_length` if given, else `length`. The strategy is
    applied for a window of T. Ids may be read from `text`, repeated up to T; the alphabet is its own.

    Always there: encoding, family, options, parameters (a count), reference, sees, length (T), train_length,
    d_model, n_heads, n_layers, strategy, positions (T; one such list for each axis of an id, and for each part
    where parts differ). Where they apply: strategy_note (where it changes nothing, or not every part), chosen
    (what options without a value became here, such as a stride), text (T; if ids depend on it), table
    (T × d_model), bias (H × T × T, null above the diagonal; unless it depends on the text), mask (T × T, or
    H × T × T where heads differ; true where a query may see a key, causality included), layers (those in which
    bias and mask act, if not all: the first is shown), left_out (what would have more than MOST_ENTRIES
    entries), and whatever the encoding itself has a name for. Numbers that are not finite are null.

    Raises ConfigError for a length out of range or an empty text, PositionRangeError beyond the rows of a
    learned table, and StrategyRefused for a strategy without meaning for the encoding.
    """
    size = length if at_length is None else at_length
    if not 1 <= size <= LONGEST_SHOWN:
        raise ConfigError(f"length {size}: must be from 1 to {LONGEST_SHOWN}")
    source = SAMPLE_TEXT if text is None else text
    if not source:
        raise ConfigError("the text to read ids from is empty")
    alphabet = "".join(sorted(set(source)))
    spec = spec_of(experiment, alphabet)
    encoding = fresh_model(experiment, alphabet).encoding
    facts: dict[str, Any] = {
        "encoding": encoding.name,
        "family": encoding.family.value,
        "options": {key: value for key, value in experiment.encoding.items() if key != "name"},
        "parameters": sum(parameter.numel() for parameter in encoding.parameters()),
        "reference": encoding.reference,
        "sees": encoding.sees.value,
        "length": size,
        "train_length": spec.train_length,
        "d_model": spec.d_model,
        "n_heads": spec.n_heads,
        "n_layers": spec.n_layers,
        "strategy": strategies.label(strategy),
    }
    free = [key for key, value in experiment.encoding.items() if value is None]
    chosen = {key: value for key in free if isinstance(value := vars(encoding).get(key), int | float)}
    if chosen:
        facts["chosen"] = chosen
    at_work = window(encoding, spec, source, size, strategy)
    encoding, positions = at_work.encoding, at_work.positions
    facts["length"] = size = len(at_work.text)
    if at_work.notes:
        facts["strategy_note"] = "; ".join(at_work.notes)
    with torch.no_grad():
        if at_work.reads_text:
            facts["text"] = at_work.text
        facts["positions"] = listed_ids(positions)
        facts |= own_numbers(encoding, size, spec.train_length)
        facts |= {key: plain(value) for key, value in encoding.numbers_at(positions).items()}
        facts |= arrays(encoding, spec, positions, size)
    return facts


class Window(NamedTuple):
    """An encoding, as a strategy makes it, at the characters of a text."""

    encoding: PositionEncoding
    spec: ModelSpec
    text: str
    positions: Positions
    reads_text: bool
    """Whether another text has other ids."""
    notes: tuple[str, ...] = ()
    """Where the strategy changes nothing, or not everything, and why."""


def window(encoding: PositionEncoding, spec: ModelSpec, source: str, size: int, strategy: str) -> Window:
    """The first `size` characters of `source`, repeated, and their ids; the alphabet is that of `spec`.

    StrategyRefused for a strategy without meaning for the encoding, whatever the size.
    """
    encoding, notes = under(strategy, encoding, spec.train_length, size)
    long = source * math.ceil(size / len(source))  # at least once: ids may differ late in the text only
    tokens = torch.from_numpy(encode(long, spec.alphabet)).long()[None]
    size = min(size, encoding.piece or size)
    with torch.no_grad():
        positions = encoding.positions(tokens[:, :size])
        return Window(encoding, spec, long[:size], positions, reads_text(encoding, tokens), notes)


def under(
    strategy: str, encoding: PositionEncoding, train_length: int, size: int
) -> tuple[PositionEncoding, tuple[str, ...]]:
    """The encoding as a strategy makes it at a size, and where that changes nothing, or not everything."""
    refusals: dict[str, str] = {}
    beyond = max(size, train_length + 1, encoding.trained_length(train_length) + 1)
    strategies.apply(strategy, encoding, train_length, beyond, refusals)
    changed, called = strategies.apply(strategy, encoding, train_length, size), strategies.label(strategy)
    if called == "none":
        return changed, ()
    if changed is encoding:
        where = f"up to the training length {train_length}" if size <= train_length else "at this length"
        return changed, (f"{called} changes nothing {where}",)
    return changed, tuple(f"{name} stays as it is: {reason}" for name, reason in refusals.items())


def reads_text(encoding: PositionEncoding, tokens: Tensor) -> bool:
    """Whether other tokens get other ids."""
    texts = (encoding.positions(tokens).leaves(), encoding.positions(tokens.roll(1, dims=1)).leaves())
    return any(not torch.equal(one.ids, other.ids) for one, other in zip(*texts, strict=True))


def listed_ids(positions: Positions) -> list[Any]:
    """One list of T ids; one for each axis of an id; those of all simple parts, where they differ."""
    parts = []
    for leaf in positions.leaves():
        ids = leaf.ids[0] if leaf.ids.dim() == 2 else leaf.ids[0].T
        parts.append(plain(ids.long() if torch.equal(ids, ids.round()) else ids))
    return parts if any(part != parts[0] for part in parts) else parts[0]


def own_numbers(encoding: PositionEncoding, length: int, train_length: int) -> dict[str, Any]:
    """What the encoding has a name for, and how many waves do not complete a turn in training."""
    facts: dict[str, Any] = {key: plain(value) for key, value in encoding.numbers(length).items()}
    for part, waves in waves_of(encoding, train_length).items():
        facts[f"{part}.incomplete_wavelengths".lstrip(".")] = waves.incomplete
    return facts


class Waves(NamedTuple):
    """How many waves a part of an encoding has, and how many are longer than `seen`, the distances of training."""

    finite: int
    incomplete: int
    seen: int


def waves_of(encoding: PositionEncoding, train_length: int) -> dict[str, Waves]:
    """By the name of the part, "" for the whole. A frequency of zero is no wave: its wavelength is infinite."""
    seen, found = encoding.spec.trained_distances or train_length, {}
    for key, values in encoding.numbers(train_length).items():
        part, _, name = key.rpartition(".")
        if name == "wavelengths":
            finite = values[values.isfinite()]
            found[part] = Waves(len(finite), int((finite > seen).sum()), seen)
    return found


def arrays(encoding: PositionEncoding, spec: ModelSpec, positions: Positions, length: int) -> dict[str, Any]:
    """Table, bias and mask, where the encoding has one."""
    facts: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    hooks = [encoding.hooks(index) for index in range(spec.n_layers)]
    if "embed" in hooks[0]:
        if length * spec.d_model <= MOST_ENTRIES:
            facts["table"] = plain(encoding.embed(torch.zeros(1, length, spec.d_model), positions)[0])
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


def static(key: str, encoding: PositionEncoding, spec: ModelSpec, positions: Positions, index: int) -> Tensor | None:
    """The bias or mask of a layer; None if two texts with equal ids have different ones."""
    moved = perturbed(encoding)
    first, second = (matrices(moved, spec, positions, index, content)[key] for content in (0, 1))
    return matrices(encoding, spec, positions, index, 0)[key] if torch.equal(first, second) else None


def perturbed(encoding: PositionEncoding) -> PositionEncoding:
    """A copy with other parameters: a term that starts at zero would look as if it never used the text."""
    moved = copy.deepcopy(encoding)
    generator = seeded(0, "perturbation")
    for parameter in moved.parameters():
        parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return moved


def matrices(
    encoding: PositionEncoding, spec: ModelSpec, positions: Positions, index: int, content: int
) -> dict[str, Tensor]:
    """Bias (H, T, T), −∞ above the diagonal, and mask (H, T, T) or (T, T) of a layer with random content."""
    length = positions.leaves()[0].ids.shape[1]
    generator = seeded(content, "content")
    x = torch.randn(1, length, spec.d_model, generator=generator)
    q, k = torch.randn(2, 1, spec.n_heads, length, spec.d_head, generator=generator)
    layer = LayerView(index, x, q, k, positions)
    whole = slice(0, length)
    block = Block(layer, encoding.prepare(layer), *encoding.rotate(layer), whole, whole, encoding)
    shape = (1, spec.n_heads, length, length)
    bias = encoding.dense_bias(block)
    bias = (torch.zeros(()) if bias is None else bias).expand(shape)[0]
    mask = allowed(encoding, block).expand(shape)[0]
    return {
        "bias": bias.masked_fill(~block.causal, -math.inf),
        "mask": mask[0] if bool((mask == mask[0]).all()) else mask,
    }


def plain(tensor: Tensor) -> Any:
    """Nested lists of Python numbers, or one number; None where it is not finite, and no negative zero."""
    if not tensor.is_floating_point():
        return tensor.tolist()
    array = np.asarray(tensor.detach().cpu().numpy() + 0.0)  # the sum of a number alone is no array
    cells = array.astype(object)
    cells[~np.isfinite(array)] = None
    return cells.tolist()
