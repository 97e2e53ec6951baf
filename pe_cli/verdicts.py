"""From the files of finished runs to what they say of a claim: paired by seed, judged by interval."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from pe_cli.claims import CONTROL, HOLDS, Claim
from pe_cli.comparison import Outcome
from pe_cli.errors import PeError
from pe_cli.extrapolation import open_evaluation
from pe_cli.inequalities import OF_RUNS, Inequality, Side, Term
from pe_cli.runs import open_run
from pe_cli.statistics import UNKNOWN, Estimate, over_seeds, verdict
from pe_cli.trained import open_trained

REPRODUCED, CONTRADICTED, UNDECIDED = "reproduced", "contradicted", "undecided"
CONFIRMED, REFUTED, OPEN = "confirmed", "refuted", "open"


class Missing(Exception):
    """There is no number, and why."""


@dataclass(frozen=True)
class Judged:
    """An inequality with its numbers: means over seeds, the paired difference left − right, and what follows."""

    kind: str
    inequality: Inequality
    left: float
    right: float
    difference: Estimate
    seeds: int
    verdict: str
    reason: str | None = None


@dataclass(frozen=True)
class Result:
    """What became of a claim."""

    claim: Claim
    judged: list[Judged]
    outcomes: list[Outcome]
    verdict: str
    reason: str | None


@dataclass
class Measured:
    """The numbers of the runs of a claim, by run and seed."""

    claim: Claim
    outcomes: dict[tuple[str, int], Outcome]
    device: torch.device
    advance: Callable[[int], None]
    """Called while a run is asked what it was not trained on; it may raise."""
    _rows: dict[tuple[str, int, str | None], pd.DataFrame] = field(default_factory=dict)

    def value(self, side: Side, seed: int) -> float:
        """Missing where there is no number."""
        return side.number + sum(sign * self.measured(term, seed) for sign, term in side.terms)

    def measured(self, term: Term, seed: int) -> float:
        if (term, seed) in self.claim.tables:
            return self.claim.tables[term, seed]
        outcome = self.outcomes[term.run, seed]
        if outcome.evaluated is None or outcome.directory is None:
            raise Missing(f"{term.run} at seed {seed}: {outcome.status}: {outcome.reason}")
        if term.measure in OF_RUNS:
            run = open_run(outcome.directory)
            return run.number("validation_loss") - run.number("train_loss")
        key = (term.run, seed, term.data)
        if key not in self._rows:
            self._rows[key] = self.rows(outcome, term)
        rows = self._rows[key]
        protocol = term.protocol or str(rows["protocol"].iloc[0])
        places = (rows["strategy"] == term.strategy) & (rows["length"] == term.length) & (rows["protocol"] == protocol)
        if not places.any():  # `all` came to other strategies
            raise Missing(f"{term.strategy} has no meaning for {term.run}")
        row = rows[places].iloc[0]
        if row["status"] != "ok" or pd.isna(row[term.measure]):
            why = row["reason"] if row["status"] != "ok" else f"it has no {term.measure}"
            raise Missing(f"{term.run} at {term.length} and seed {seed}: {row['status']}: {why}")
        return float(row[term.measure])

    def rows(self, outcome: Outcome, term: Term) -> pd.DataFrame:
        """What the run wrote of its evaluation, or its answers to another task."""
        assert outcome.directory is not None
        assert outcome.evaluated is not None
        if term.data is None:
            return outcome.evaluated.rows
        trained = open_trained(open_run(outcome.directory), self.device)
        trained = replace(trained, experiment=outcome.planned.experiment)  # the file states how another claim asked
        terms = [other for _, inequality in self.claim.inequalities for other in inequality.terms]
        lengths = {other.length for other in terms if (other.run, other.data) == (term.run, term.data)}
        settings = outcome.planned.experiment.evaluation.model_copy(update={"lengths": tuple(sorted(lengths, key=int))})
        evaluation = open_evaluation(trained, settings, json.dumps(self.claim.asked[term.data]))
        return pd.DataFrame(evaluation.run(self.advance).extrapolation)


def judge(claim: Claim, outcomes: Sequence[Outcome], device: torch.device, advance: Callable[[int], None]) -> Result:
    by_run = {(outcome.planned.name, outcome.planned.experiment.seed): outcome for outcome in outcomes}
    measured = Measured(claim, by_run, device, advance)
    judged = [of_inequality(kind, inequality, measured) for kind, inequality in claim.inequalities]
    return Result(claim, judged, list(outcomes), *of_claim(judged))


def of_inequality(kind: str, inequality: Inequality, measured: Measured) -> Judged:
    """Confirmed or refuted where the interval of the difference lies wholly on one side of zero, else open."""
    seeds = measured.claim.seeds
    try:
        left, right = ([measured.value(side, seed) for seed in seeds] for side in (inequality.left, inequality.right))
    except (Missing, PeError) as missing:
        return Judged(kind, inequality, math.nan, math.nan, UNKNOWN, 0, OPEN, str(missing))
    difference = over_seeds([one - other for one, other in zip(left, right, strict=True)])
    said = {"better": inequality.less, "worse": not inequality.less, None: None}[verdict(difference)]
    found = {True: CONFIRMED, False: REFUTED, None: OPEN}[said]
    reason = "one seed has no interval" if len(seeds) < 2 else None
    return Judged(kind, inequality, float(np.mean(left)), float(np.mean(right)), difference, len(seeds), found, reason)


def of_claim(judged: Sequence[Judged]) -> tuple[str, str | None]:
    """The verdict on a claim, and why where it is not simply that of its inequalities."""
    failed = [one for one in judged if one.kind == CONTROL and one.verdict != CONFIRMED]
    if failed:
        texts = "; ".join(f"{one.inequality.text} is {because(one)}" for one in failed)
        return UNDECIDED, f"a control failed, so that the experiment says nothing: {texts}"
    holds = [one for one in judged if one.kind == HOLDS]
    refuted = [one for one in holds if one.verdict == REFUTED]
    if refuted:
        return CONTRADICTED, "refuted: " + "; ".join(one.inequality.text for one in refuted)
    unclear = [one for one in holds if one.verdict == OPEN]
    if unclear:
        return UNDECIDED, "open: " + "; ".join(f"{one.inequality.text}{reason_of(one)}" for one in unclear)
    return REPRODUCED, None


def because(one: Judged) -> str:
    return f"{one.verdict}{reason_of(one)}"


def reason_of(one: Judged) -> str:
    return f" ({one.reason})" if one.reason else ""


def record(result: Result) -> dict[str, Any]:
    """A result as JSON has it."""
    stated, claim = result.claim.stated, result.claim
    return {
        "name": claim.name,
        "claim": stated.claim,
        "source": stated.source,
        "file": str(claim.path),
        "verdict": result.verdict,
        "reason": result.reason,
        "seeds": claim.seeds,
        "why": stated.why,
        "inequalities": [row(result, one) for one in result.judged],
        "runs": [
            {
                "name": outcome.planned.name,
                "seed": outcome.planned.experiment.seed,
                "status": outcome.status,
                "reason": outcome.reason,
                "directory": str(outcome.directory) if outcome.directory else None,
            }
            for outcome in result.outcomes
        ],
    }


def row(result: Result, one: Judged) -> dict[str, Any]:
    """An inequality as claims.csv has it."""
    return {
        "claim": result.claim.name,
        "file": str(result.claim.path),
        "kind": one.kind,
        "inequality": one.inequality.text,
        "left": one.left,
        "right": one.right,
        "difference": one.difference.value,
        "low": one.difference.low,
        "high": one.difference.high,
        "seeds": one.seeds,
        "verdict": one.verdict,
        "reason": one.reason,
    }
