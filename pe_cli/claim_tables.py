"""What is said of claims: claims.md and claims.csv."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pe_cli import files
from pe_cli.claims import HOLDS, Claim
from pe_cli.documents import Table, escaped
from pe_cli.inequalities import OF_TABLES, Side, Term
from pe_cli.reports import interval
from pe_cli.statistics import CONFIDENCE
from pe_cli.tables import Column
from pe_cli.verdicts import CONTRADICTED, OPEN, REPRODUCED, UNDECIDED, Judged, Result, row
from pe_cli.yaml_source import flow

COLUMNS = (
    "claim", "file", "kind", "inequality", "left", "right", "difference", "low", "high", "seeds", "verdict", "reason",
)  # fmt: skip
OVERVIEW = (
    Column("claim", "claim"),
    Column("source", "source"),
    Column("numbers", "our numbers"),
    Column("verdict", "verdict"),
)
VERDICTS = (Column("name", "claim"), Column("verdict", "verdict"), Column("reason", "why"))
INEQUALITIES = (
    Column("kind", "kind"),
    Column("inequality", "inequality"),
    Column("left", "left", ".4f"),
    Column("right", "right", ".4f"),
    Column("difference", "difference", "+.4f"),
    Column("interval", f"{CONFIDENCE:.0%} interval".replace("%", " %")),
    Column("seeds", "seeds"),
    Column("verdict", "verdict"),
)
RULES = (
    "Left and right are means over seeds, with the numbers that a claim adds; their difference is taken at each seed, "
    "where both runs saw the same batches, and its interval is over seeds (Student's t), of the very characters or "
    "instances that were scored. An inequality is confirmed where the interval lies wholly on the side that it names, "
    "refuted where it lies wholly on the other, and open else. A claim is reproduced where all of its inequalities "
    "are confirmed, contradicted where one is refuted, and undecided else, or where a control is not confirmed. The "
    "intervals are those of one inequality each, without a correction for their number."
)
MEANINGS = {
    "loss": "loss(RUN, LENGTH): nats per character",
    "gain": "gain(RUN, LENGTH): loss at the training length - loss at LENGTH",
    "accuracy": "accuracy(RUN, LENGTH): share of right characters of the answers to a task",
    "exact_match": "exact_match(RUN, LENGTH): share of answers that are right as a whole",
    "margin": "margin(RUN, LENGTH): log-likelihood of the right answer - that of a decoy, in nats",
    "overfitting": "overfitting(RUN): loss on held-out windows - loss of the last training batches",
    "neighbour_distance": (
        "neighbour_distance(RUN): mean distance of neighbouring rows of the table as initialised, up to the training "
        "length"
    ),
}


def counted(results: Sequence[Result], left: int) -> str:
    """How many claims came out how."""
    verdicts = Counter(result.verdict for result in results)
    parts = [f"{verdicts[verdict]} {verdict}" for verdict in (REPRODUCED, CONTRADICTED, UNDECIDED)]
    several = f"{len(results)} claim" + ("s" if len(results) != 1 else "")
    return f"{several}: {', '.join(parts)}" + (f"; {left} more not run yet" if left else "")


def numbers(result: Result) -> str:
    """The inequalities of a claim with both numbers, in one line."""
    parts = []
    for one in result.judged:
        if one.kind == HOLDS:
            sides = (measured(one.inequality.left, one.left), measured(one.inequality.right, one.right))
            parts.append(f"{one.inequality.text}: {'no number' if one.seeds == 0 else ' and '.join(sides)}")
    return "; ".join(parts)


def measured(side: Side, value: float) -> str:
    """A side as what was measured, and what the claim adds to it: `1.384 + 0.05`."""
    if not side.terms or side.number == 0:
        return f"{value:.3f}"
    return f"{value - side.number:.3f} {'-' if side.number < 0 else '+'} {abs(side.number):g}"


def verdicts_of(results: Sequence[Result], left: int) -> Table:
    """One line for each claim, for a terminal."""
    rows = [{"name": one.claim.name, "verdict": one.verdict, "reason": one.reason} for one in results]
    return Table(counted(results, left), VERDICTS, rows)


def overview(results: Sequence[Result], left: int) -> Table:
    rows = [
        {
            "claim": result.claim.stated.claim,
            "source": result.claim.stated.source,
            "numbers": numbers(result),
            "verdict": result.verdict,
        }
        for result in results
    ]
    return Table(counted(results, left), OVERVIEW, rows)


def inequalities(result: Result) -> Table:
    """Every inequality of a claim with its numbers."""
    return Table(result.claim.name, INEQUALITIES, [shown(result, one) for one in result.judged])


def shown(result: Result, one: Judged) -> dict[str, Any]:
    found = row(result, one)
    found["interval"] = interval({"d_low": found["low"], "d_high": found["high"]}, "d", "+.4f")
    return found | ({"verdict": f"{one.verdict}: {one.reason}"} if one.verdict == OPEN and one.reason else {})


def section(result: Result) -> str:
    """What was run, what came out, and what it means."""
    stated, claim = result.claim.stated, result.claim
    reason = f": {result.reason}" if result.reason else ""
    terms = [term for _, inequality in claim.inequalities for term in inequality.terms]
    measures = dict.fromkeys(term.measure for term in terms)
    lines = [
        f"Source: {stated.source}. Verdict: **{result.verdict}**{reason}.",
        f"Seeds: {', '.join(map(str, claim.seeds))}. {stated.why.strip()}",
    ]
    table = inequalities(result)
    notes = [MEANINGS[measure] for measure in measures] + list(what_was_run(claim, terms)) + claim.notes
    body = Table(f"{claim.name}: {stated.claim}", table.columns, table.rows, notes).markdown()
    head, _, rest = body.partition("\n\n")
    return "\n\n".join([head, *map(escaped, lines), rest])


def what_was_run(claim: Claim, terms: Sequence[Term]) -> list[str]:
    """The runs as the file states them."""
    trained = {term.run for term in terms if term.measure not in OF_TABLES}
    found = [f"all runs: {written(claim.stated.common)}"] if claim.stated.common else []
    found += [
        f"{name}{'' if name in trained else ' (not trained)'}: {written(block or {})}"
        for name, block in claim.stated.runs.items()
    ]
    return found + [f"{name}, which runs are asked too: {written(block)}" for name, block in claim.asked.items()]


def written(block: Mapping[str, Any]) -> str:
    """On one line as in the file: what a file states is text, and a number in quotes would look like another."""
    return re.sub(r"'([\w.+-]+)'", r"\1", flow(block))


def document(results: Sequence[Result], left: int, facts: Sequence[str]) -> str:
    table = overview(results, left)
    head = ["# Claims", f"{table.title}.", RULES, *map(escaped, facts)]
    whole = table.markdown().partition("\n\n")[2].rstrip()
    return "\n\n".join([*head, whole, *(section(result).rstrip() for result in results)]) + "\n"


def write(results: Sequence[Result], left: int, folder: Path, name: str, facts: Sequence[str]) -> list[Path]:
    """NAME.csv and NAME.md, which says that `left` claims are still to come."""
    rows: list[Mapping[str, Any]] = [files.plain(row(result, one)) for result in results for one in result.judged]
    text, table = map(folder.joinpath, written_as(name))
    files.write_csv(table, rows, COLUMNS)
    files.write_text(text, document(results, left, facts))
    return [text, table]


def written_as(name: str) -> tuple[str, str]:
    """The names of the files of `write`."""
    return f"{name}.md", f"{name}.csv"
