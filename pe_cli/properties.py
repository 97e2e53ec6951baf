"""The six wishes that the literature states for a position encoding, each measured by a formula.

The docstring of a property is what `pe properties --explain` prints: the formula stands beside its code.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import scipy  # its parts load at first use
import torch
from torch import Tensor

from pe_cli.efficiency import efficiency, parameters
from pe_cli.errors import PositionRangeError
from pe_cli.probing import Probe, Seen

ROUNDING = 1e-6
"""Weights are at most 1: a smaller difference of two of them is what float32 makes of equal ones."""
PARTS = ("formula", "range", "high", "low", "measured")


def uniqueness(probe: Probe) -> dict[str, Any]:
    """No two positions are alike.

    Formula: min d(p, q) / mean d(p, q) over all pairs of positions. d(p, q)² is the mean of (a(p) − a(q))² over
    layers, heads and characters; a(p) is the weight of the key at p over the largest weight of that query. 0 where
    no pair differs. Beside it: pairs alike, the share of pairs with d = 0.
    Range: 0 to 1.
    High: 1: every two positions are equally far apart.
    Low: 0: two positions cannot be told apart.
    Measured: on equal content, from the last character of a window of L. Differences below 1e-6 are rounding and
    count as 0, so two keys whose weights both fade to nothing are alike.
    """
    pairs = upper(distances(probe.window))
    mean = float(pairs.mean())
    value = float(pairs.min()) / mean if mean > 0 else 0.0
    return {"value": value, "pairs_alike": float((pairs == 0).double().mean())}


def continuity(probe: Probe) -> dict[str, Any]:
    """Near positions are alike.

    Formula: 1 − mean d(p, p + 1) / mean d(p, q) over all pairs of positions, d as in uniqueness.
    Range: −1 to 1 (d obeys the triangle inequality).
    High: near 1: the encoding changes little from one position to the next.
    Low: 0: a neighbour is as different as any other position; below 0: more different.
    Measured: as uniqueness. No meaning where all positions are alike.
    """
    apart = distances(probe.window)
    mean = float(upper(apart).mean())
    if mean == 0:
        return nothing("all positions are alike")
    return {"value": 1 - float(apart.diagonal(1).mean()) / mean}


def scalability(probe: Probe) -> dict[str, Any]:
    """Defined and finite beyond the training length.

    Formula: the largest k of 1, 2, 4, 8, 16, 32 such that a window of k L characters is defined and all that the
    model computes in it is finite. Beside it: scores in range, the share of the logits that lie at k L between the
    smallest and the largest one at L, by layer and head; limit, what is wrong with the next larger k.
    Range: 1 to 32; scores in range from 0 to 1.
    High: 32: defined as far as was looked, which says nothing of the loss there. Scores in range of 1: attention
    meets no logit that it has not met within L.
    Low: 1: not defined beyond the training length. Scores in range of 0: all logits are new.
    Measured: on equal content, from the last character; hidden keys do not count. No window is longer than 8,192
    characters.
    """
    multiple, seen, limit = probe.beyond
    share = None if seen is None else scores_in_range(probe.window, seen)
    return {"value": multiple, "scores_in_range": share, "limit": limit}


def relative_information(probe: Probe) -> dict[str, Any]:
    """The effect on the logits is a function of the distance alone.

    Formula: 2 Σ e·e' / (Σ e² + Σ e'²). e is ln(weight) less its mean over the keys of the query, which for a
    softmax is the logit up to a constant of the query; e' is the same with s added to all ids. The sums run over
    layers, heads, characters, keys and shifts s. 1 where the encoding makes no difference at all.
    Range: −1 to 1.
    High: 1: shifting all ids changes nothing.
    Low: 0: after a shift the effect has nothing in common with the one before.
    Measured: on equal content, from the last character of a window of L / 2, with shifts of one, two and three
    thirds of L / 2, so that no id is beyond the training length. All axes of an id, and ids that are read from the
    text, are shifted alike.
    """
    length = max(2, probe.length // 2)
    room = max(1, probe.length - length)
    before = probe.seen(length)
    common = total = count = 0.0
    for shift in sorted({math.ceil(room / 3), math.ceil(2 * room / 3), room}):
        one, other = effects(before, probe.seen(length, shift))
        common += float((one * other).sum())
        total += float((one**2).sum() + (other**2).sum())
        count += 2 * one.numel()
    if total / count < (10 * ROUNDING) ** 2:
        return {"value": 1.0}
    return {"value": 2 * common / total}


def long_range_decay(probe: Probe) -> dict[str, Any]:
    """Far keys get less attention.

    Formula: −ρ, ρ the rank correlation (Spearman) of the distance n and w(n), the mean weight of the key n
    characters back over layers, heads and characters. Beside it: rank correlation, ρ itself; near against far,
    (N − F) / (N + F), N and F the mean of w over the nearest and the farthest quarter of the distances.
    Range: −1 to 1, both.
    High: 1: every step away takes weight. Near against far of 1: nothing is left for the far quarter.
    Low: 0: no order in distance; −1: far keys get more.
    Measured: on equal content, from the last character of a window of L. Weights stand for logits, as the logit of
    a hidden key is −∞. Weights that differ by less than a part in 10⁵ rank the same. No meaning where all do.
    """
    by_distance = probe.window.weights.double().flatten(0, 2).mean(dim=0).flip(0)
    ranked = (by_distance.log() * 1e5).round().numpy()  # ln 0 is −∞, the last of all
    if (ranked == ranked[0]).all():
        return nothing("the weight is the same at all distances")
    correlation = float(scipy.stats.spearmanr(range(len(ranked)), ranked).statistic)
    quarter = max(1, len(ranked) // 4)
    near, far = (float(part.mean()) for part in (by_distance[:quarter], by_distance[-quarter:]))
    against = (near - far) / (near + far) if near + far > 0 else None
    return {"value": -correlation, "rank_correlation": correlation, "near_against_far": against}


PROPERTIES: dict[str, Callable[[Probe], dict[str, Any]]] = {
    function.__name__: function
    for function in (uniqueness, continuity, scalability, relative_information, long_range_decay, efficiency)
}


def measure(probe: Probe, costs: bool, advance: Callable[[str], None] = lambda name: None) -> dict[str, dict[str, Any]]:
    """Every property by name: `value`, `reason` (in words, where there is no value), and what stands beside it.

    Without `costs` no time and no memory is measured. `advance` is told the name of the property that comes next.
    """
    found = {}
    for name, function in PROPERTIES.items():
        advance(name)
        if function is efficiency and not costs:
            one = {**nothing("times and memory were not asked for"), **parameters(probe)}
        else:
            one = measured(function, probe)
        found[name] = {"value": one.pop("value"), "reason": one.pop("reason", None), **one}
    return found


def measured(function: Callable[[Probe], dict[str, Any]], probe: Probe) -> dict[str, Any]:
    try:
        if function is not efficiency and not probe.window.finite:
            return nothing(f"what the model computes at {probe.length} characters is not finite")
        return function(probe)
    except PositionRangeError as error:
        return nothing(str(error))


def nothing(reason: str) -> dict[str, Any]:
    return {"value": None, "reason": reason}


def explanations() -> dict[str, dict[str, str]]:
    """Each property in words, by name: title, formula, range, high, low, measured."""
    return {name: explanation(function) for name, function in PROPERTIES.items()}


def explanation(function: Callable[..., Any]) -> dict[str, str]:
    """The docstring of a property by its parts."""
    title, _, rest = (inspect.getdoc(function) or "").partition("\n\n")
    parts = {"title": title}
    for line in rest.splitlines():
        label, colon, text = line.partition(": ")
        if colon and label.lower() in PARTS:
            key = label.lower()
            parts[key] = text
        else:
            parts[key] += f" {line}"
    return parts


def setting() -> str:
    """What all properties are measured on, in words: paragraphs of one line."""
    paragraphs = (inspect.getdoc(Probe) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def distances(seen: Seen) -> Tensor:
    """d(p, q) of all positions, (T, T)."""
    weights = seen.weights.double().flatten(0, 2)
    relative = weights / weights.amax(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
    places = relative.T.contiguous() / math.sqrt(len(relative))
    apart = torch.cdist(places, places, compute_mode="donot_use_mm_for_euclid_dist")
    return apart.masked_fill(apart < ROUNDING, 0.0)


def upper(matrix: Tensor) -> Tensor:
    """The entries above the diagonal."""
    return matrix[torch.ones_like(matrix, dtype=torch.bool).triu(1)]


def effects(*both: Seen) -> tuple[Tensor, Tensor]:
    """e of two windows over the keys that get weight in both, 0 elsewhere."""
    one, other = (seen.weights.double() for seen in both)
    kept = (one > 0) & (other > 0)
    return centred(one, kept), centred(other, kept)


def centred(weights: Tensor, kept: Tensor) -> Tensor:
    logs = weights.log().masked_fill(~kept, 0.0)
    mean = logs.sum(dim=-1, keepdim=True) / kept.sum(dim=-1, keepdim=True).clamp(min=1)
    return (logs - mean).masked_fill(~kept, 0.0)


def scores_in_range(within: Seen, beyond: Seen) -> float:
    """The share of the logits of `beyond` between the smallest and the largest of `within`, by layer and head."""
    shown = within.scores.isfinite()
    lowest = within.scores.masked_fill(~shown, math.inf).amin(dim=(1, 3), keepdim=True)
    highest = within.scores.masked_fill(~shown, -math.inf).amax(dim=(1, 3), keepdim=True)
    slack = ROUNDING * (1 + lowest.abs() + highest.abs())
    counted = beyond.scores.isfinite()
    inside = (beyond.scores >= lowest - slack) & (beyond.scores <= highest + slack) & counted
    return float(inside.sum() / counted.sum())
