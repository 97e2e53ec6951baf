"""Reference numbers of tree paths. The trees are written as brackets, and the ids read from those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from driving import built
from reference_cases import Case, agree, as_tensor, fields, run
from torch import Tensor

NOT_COMPARED: dict[str, str] = {}

Nested = list[Any]


def written(tree: Nested) -> str:
    """Each child as a pair of brackets around its own children; the root is the text."""
    return "".join(f"({written(child)})" for child in tree)


def nodes(tree: Nested, path: tuple[int, ...] = (), arities: tuple[int, ...] = ()) -> Iterator[Any]:
    """Path and numbers of siblings from the root to each node, in the order in which the nodes are written."""
    yield path, arities
    for branch, child in enumerate(tree):
        yield from nodes(child, (*path, branch), (*arities, len(tree)))


def codes(tree: Nested) -> dict[tuple[int, ...], Tensor]:
    """The code of each node but the root, read where its bracket opens. Blocks are as wide as their arity."""
    found = list(nodes(tree))[1:]
    depth, branches = max(len(path) for path, _ in found), max(max(arities) for _, arities in found)
    block = {"name": "tree", "branches": branches, "depth": depth, "levels": "plain"}
    encoding = built(block, d_model=branches * depth, n_heads=1, alphabet="()")
    text = written(tree)
    tokens = torch.tensor([["()".index(character) for character in text]])
    x = torch.zeros(1, len(text), branches * depth, dtype=torch.float64)
    added = encoding.embed(x, encoding.positions(tokens))[0].unflatten(-1, (depth, branches))
    rows = added[tokens[0] == 0]
    return {
        path: torch.cat([row[level, :arity] for level, arity in enumerate(reversed(arities))])
        for row, (path, arities) in zip(rows, found, strict=True)
    }


def compare_nodes(case: Case) -> None:
    ours, pad_to = codes(case.at("hyperparameters.tree_as_nested_lists")), case.size("pad_to")
    theirs = {tuple(node["path_root_to_node"]): node for node in case.at("expected.nodes")}
    root = theirs.pop(())
    assert root["encoding"] == []
    assert not any(root["padded"])
    assert theirs.keys() == ours.keys()
    for path, node in theirs.items():
        agree(ours[path], as_tensor(node["encoding"]))
        padded = torch.cat((ours[path], torch.zeros(pad_to, dtype=torch.float64)))[:pad_to]
        agree(padded, as_tensor(node["padded"]))


def full(branching: int, depth: int) -> Nested:
    return [full(branching, depth - 1) for _ in range(branching)] if depth else []


def compare_full_trees(case: Case) -> None:
    for name, leaves in case.at("expected.full_trees").items():
        branching, depth = (int("".join(filter(str.isdigit, part))) for part in name.split("_")[:2])
        ours = [code for path, code in codes(full(branching, depth)).items() if len(path) == depth]
        agree(torch.stack(ours), as_tensor(leaves))


COMPARISONS = {"nodes": compare_nodes, "full_trees": compare_full_trees}


@pytest.mark.parametrize(("case", "field"), fields("tree", NOT_COMPARED))
def test_tree_reference(case: Case, field: str) -> None:
    assert case.at("tolerance") == "exact"
    run(COMPARISONS, case, field)
