"""What is said of keys in a wrong block: where they belong."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from pe_cli.encodings import registry
from pe_cli.errors import ConfigError, Problem, canonical, message
from pe_cli.experiment import NAMED_BLOCKS, Experiment
from pe_cli.schema import Section
from pe_cli.stated import Stated


def explained(found: Sequence[Problem], stated: Stated) -> ConfigError:
    return ConfigError(message([_with_home(problem, stated) for problem in found], stated.place))


def _with_home(problem: Problem, stated: Stated) -> Problem:
    """For a key that stands in the wrong block, the block where it belongs."""
    if problem.key == "name" and "name" not in stated.values:
        return problem._replace(text=f"{problem.text}; this is the file's name: state a `name:`")
    leaf = problem.key.rpartition(".")[-1]
    if problem.known is None:
        return problem
    homes = list(_dotted(Experiment))
    near = difflib.get_close_matches(canonical(leaf), problem.known, n=1, cutoff=0.8)
    elsewhere = {home.rpartition(".")[-1] for home in homes} - set(problem.known)
    if near and canonical(leaf) not in elsewhere:
        return problem
    if not problem.key.startswith("encoding."):
        block = registry.canonical_block(stated.values.get("encoding", NAMED_BLOCKS["encoding"]))
        homes += [f"encoding.{option}" for option in block]
    if canonical(problem.key) in homes:
        parent, _, key = canonical(problem.key).rpartition(".")
        return problem._replace(text=f"unknown key; write `{key}:` under `{parent}:`")
    fitting = [home for home in homes if canonical(leaf) == home.rpartition(".")[-1]]
    if not fitting and problem.text.startswith("unknown key"):
        close = difflib.get_close_matches(canonical(leaf), [home.rpartition(".")[-1] for home in homes], n=1)
        fitting = [home for home in homes if home.rpartition(".")[-1] in close]
    if not fitting:
        return problem
    blocks = " or ".join(f"under {home.rpartition('.')[0]}:" if "." in home else "at the top level" for home in fitting)
    names = " or ".join(f"'{home}'" for home in fitting)
    return problem._replace(text=f"unknown key here; did you mean {names}? It belongs {blocks}")


def _dotted(section: type[Section], prefix: str = "") -> Iterator[str]:
    for name, info in section.model_fields.items():
        yield f"{prefix}{name}"
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            yield from _dotted(info.annotation, f"{prefix}{name}.")
