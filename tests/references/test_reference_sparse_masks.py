"""Reference numbers of the masks of the Sparse Transformer."""

from __future__ import annotations

import re
from typing import Any

import pytest
from driving import block_of, built, random_layer
from reference_cases import Case, agree, run_sized, sized_fields
from torch import Tensor

from pe_cli.attention import allowed

OPTION = "an option of that mask"
NOT_COMPARED = {
    "fixed_ctx#_verts#_size#.local_attn_ctx": OPTION,
    "fixed_ctx#_verts#_size#.num_verts": OPTION,
    "fixed_ctx#_verts#_size#.vertsize": OPTION,
}


def mask_of(block: dict[str, object], length: int, heads: int = 1) -> Tensor:
    """(T, T), or (H, T, T) where heads differ."""
    sizes: dict[str, Any] = {"d_model": 4 * heads, "n_heads": heads}
    encoding = built({"encoding": "none", **block} if block["name"] != "none" else block, **sizes)
    return allowed(encoding, block_of(encoding, random_layer(length, batch=1, **sizes)))


def compare(case: Case, field: str, *blocks: dict[str, object]) -> None:
    for block in blocks:
        ours = mask_of(block, case.size("T"))
        agree(ours, case.tensor(f"expected.{field}"), **case.limits())


def every_key(case: Case, field: str) -> None:
    compare(case, field, {"name": "none"})


def local(case: Case, field: str) -> None:
    size = number_in(field)
    window = {"name": "sliding_window", "window": size}
    without_gaps = {"name": "dilated", "window": size, "dilations": [1]}
    without_sinks = {"name": "sinks", "window": size, "sinks": 0}
    compare(case, field, strided("local", size), window, without_gaps, without_sinks)


def every_stride(case: Case, field: str) -> None:
    size = number_in(field)
    compare(case, field, strided("strided", size), {"name": "dilated", "window": case.size("T"), "dilations": [size]})


def union(case: Case, field: str) -> None:
    compare(case, field, strided("union", number_in(field)))


def strided(pattern: str, stride: int) -> dict[str, object]:
    return {"name": "strided", "pattern": pattern, "stride": stride}


def number_in(field: str) -> int:
    (number,) = re.findall(r"\d+", field)
    return int(number)


def fixed(case: Case, field: str) -> None:
    group = case.at("expected." + field.split(".")[0])
    theirs = case.tensor(f"expected.{field}")
    block = {
        "name": "fixed",
        "stride": group["local_attn_ctx"],
        "summary": group["vertsize"],
        "subblocks": group["num_verts"],
    }
    ours = mask_of(block, case.size("T"), heads=len(theirs)).expand(theirs.shape)
    agree(ours, theirs, **case.limits())


COMPARISONS = {
    "all": every_key,
    "local_#": local,
    "strided_#": every_stride,
    "union_#_own_formula": union,
    "fixed_ctx#_verts#_size#.mask_per_head": fixed,
}


@pytest.mark.parametrize(("case", "field"), sized_fields("sparse_masks", NOT_COMPARED))
def test_sparse_masks_reference(case: Case, field: str) -> None:
    run_sized(COMPARISONS, case, field)
