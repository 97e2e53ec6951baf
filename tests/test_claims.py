"""Claim files: what is refused before anything runs, how numbers become verdicts, and `pe claims` as a whole."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Finished, pe
from small_runs import SMALL, one_after_another, read_csv, refused, text_file, without_processes_and_pictures

from pe_cli import claim_tables, claiming, claims, verdicts
from pe_cli.claims import CONTROL, HOLDS, Claim
from pe_cli.inequalities import Term, inequality
from pe_cli.statistics import UNKNOWN
from pe_cli.verdicts import CONFIRMED, OPEN, REFUTED, Judged, Measured

ROOT = Path(__file__).parents[1]
PUBLISHED = sorted((ROOT / "configs" / "claims").glob("*.yaml"))
COPY = {"task": "copy", "max_length": 4}
OF_COPY = {"lengths": [4, 8], "scored": 2, "windows": 16}
CLAIM: dict[str, Any] = {
    "claim": "alibi extrapolates | rope does not",
    "source": "Press 2022",
    "seeds": 2,
    "why": "Two seeds are enough to see that it runs.",
    "common": {"data": "text.txt", **SMALL},
    "runs": {"alibi": {"encoding": "alibi"}, "rope": {"evaluation": {"strategies": ["none", "ntk"]}}},
    "holds": ["loss(alibi, 64) < loss(rope + ntk, 64) + 9"],
    "control": ["loss(rope, 16) > 0.1"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    without_processes_and_pictures(monkeypatch)
    return tmp_path


def claim_file(folder: Path, name: str = "first", **changes: Any) -> Path:
    path = folder / "configs" / "claims" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**CLAIM, **changes}, indent=1), encoding="utf-8")  # JSON is YAML
    if not (path.parent / "text.txt").exists():
        text_file(path.parent / "text.txt")
    return path


def run(*arguments: object) -> Finished:
    return pe("claims", "--threads", 1, *arguments)


# --- the files of this repository ---


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_a_published_claim_asks_for_what_is_evaluated(path: Path) -> None:
    claim = claims.load(path, None, {}, {})
    assert claim.notes == []
    assert len(claim.seeds) == claim.stated.seeds
    assert "arXiv" in claim.stated.source or "introductions" in claim.stated.source
    assert claim.stated.claim == " ".join(claim.stated.claim.split()).rstrip(".")


def test_equal_trainings_of_published_claims_have_equal_names() -> None:
    """They share a directory, so that they are trained once."""
    names: dict[tuple[str, int], set[str]] = {}
    texts: dict[str, Any] = {}
    for path in PUBLISHED:
        for planned in claims.load(path, None, {}, texts).planned:
            names.setdefault((planned.identity, planned.experiment.seed), set()).add(planned.experiment.name)
    assert {key: found for key, found in names.items() if len(found) > 1} == {}


# --- what is read ---


def test_a_run_says_what_differs_from_the_common_block(tmp_path: Path) -> None:
    runs = {
        "alibi": {"encoding": "alibi", "training": {"steps": 3}, "name": "other"},
        "rope": {"encoding": {"name": "rope", "base": 100}},
    }
    common = {**CLAIM["common"], "encoding": {"name": "sinusoidal", "scale": 2}}
    path = claim_file(tmp_path, runs=runs, common=common, holds=["loss(alibi, 64) < loss(rope, 64)"])
    claim = claims.load(path, "5,6", {}, {})
    alibi, rope = claim.experiments["alibi"], claim.experiments["rope"]
    assert (alibi.name, alibi.training.steps, alibi.training.length) == ("other", 3, 16)
    assert (rope.name, rope.training.steps, rope.encoding["base"]) == ("rope", 10, 100.0)
    assert alibi.data == str(path.parent / "text.txt")
    assert [(run.name, run.experiment.seed) for run in claim.planned] == [
        (name, seed) for name in ("alibi", "rope") for seed in (5, 6)
    ]


def test_seeds_are_those_after_that_of_the_first_run(tmp_path: Path) -> None:
    assert claims.load(claim_file(tmp_path), None, {}, {}).seeds == [1337, 1338]
    assert claims.load(claim_file(tmp_path), "3", {}, {}).seeds == [1337, 1338, 1339]


def test_what_is_only_a_table_is_not_trained_and_is_exact(tmp_path: Path) -> None:
    runs = {"small": {"encoding": {"name": "sinusoidal", "base": 10}}, "large": {"encoding": "sinusoidal"}}
    path = claim_file(tmp_path, runs=runs, holds="neighbour_distance(small) > neighbour_distance(large)", control=[])
    claim = claims.load(path, None, {}, {})
    assert claim.planned == []
    small, large = (Term("neighbour_distance", name) for name in ("small", "large"))
    assert claim.tables[small, 1337] > claim.tables[large, 1337]
    by_hand = table_of_sines(16, 16, 10.0).diff(dim=0).norm(dim=1).mean().item()
    assert claim.tables[small, 1338] == pytest.approx(by_hand, abs=1e-6)
    [judged] = verdicts.judge(claim, [], torch.device("cpu"), lambda chars: None).judged
    assert judged.verdict == CONFIRMED
    assert judged.difference.low == pytest.approx(judged.difference.high, abs=1e-12)


def table_of_sines(count: int, width: int, base: float) -> torch.Tensor:
    angles = torch.arange(count)[:, None] / base ** (torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)  # another order of columns: distances are the same


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"holds": []}, ["first.yaml:", "holds: must", "at least 1"]),
        ({"holds": {"a": "b"}}, ["holds: must be a text or a list of texts"]),
        (
            {"common": {}, "runs": {"c": {"data": COPY, "evaluation": OF_COPY}}}
            | {"holds": "margin(c, 4) > 0", "control": []},
            ["the task copy has no margin"],
        ),
        ({"holds": ["loss(alibi, 64) < 1e308 + 1e308"]}, ["'1e308 + 1e308' add up to more"]),
        ({"seeds": 1}, ["first.yaml:4: seeds: must", "not 1"]),
        ({"why": ""}, ["first.yaml:5: why: must", "not ''"]),
        ({"sources": "x"}, ["sources: unknown key; did you mean 'source'?"]),
        ({"runs": {}}, ["runs: names no run"]),
        ({"runs": {"alibi": 3, "rope": {}}}, ["runs.alibi: must be a block of keys, not '3'"]),
        ({"runs": {"alibi": {"encodin": "alibi"}, "rope": {}}}, ["did you mean 'encoding'?", "(runs.alibi)"]),
        (
            {"common": {**CLAIM["common"], "seed": 7}},
            ["first.yaml:", "common.seed: a claim has the same seeds", "'7'", "`seeds:`", "from 1337 on", "--seeds"],
        ),
        (
            {"runs": {**CLAIM["runs"], "rope": {"seed": 8, **CLAIM["runs"]["rope"]}}},
            ["first.yaml:", "runs.rope.seed: a claim has the same seeds", "'8'", "`seeds:`", "from 1337 on"],
        ),
        ({"runs": {**CLAIM["runs"], "t5": {"encoding": "t5"}}}, ["runs.t5: no inequality says anything of it"]),
        ({"asked": {"key": COPY}}, ["asked.key: no inequality says anything of it"]),
        ({"asked": {"key": "pydocs"}}, ["asked.key: must be a task"]),
        ({"asked": {"key": {"task": "copie"}}}, ["asked.key", "did you mean 'copy'?"]),
        ({"holds": ["loss(alibo, 64) < 1"]}, ["holds: 'loss(alibo, 64) < 1'", "no run 'alibo'; did you mean 'alibi'?"]),
        ({"holds": ["loss(alibi, 65) < 1"]}, ["alibi is not evaluated at 65: evaluation.lengths is [16, 32, 64]"]),
        ({"holds": ["loss(alibi + ntk, 64) < 1"]}, ["alibi is not evaluated with ntk: evaluation.strategies is none"]),
        ({"holds": ["loss(alibi, 64, sliding) < 1"]}, ["not evaluated by sliding", "is same_targets"]),
        ({"holds": ["accuracy(alibi, 64) < 1"]}, ["has no right answers"]),
        ({"holds": ["accuracy(alibi on key, 64) < 1"]}, ["no task under asked: 'key'; the file asks none"]),
        (
            {"asked": {"key": COPY}, "holds": ["accuracy(alibi on kye, 64) < 1"]},
            ["no task under asked: 'kye'; did you mean 'key'?"],
        ),
        ({"holds": ["neighbour_distance(alibi) < 1"]}, ["alibi has no table"]),
        ({"control": ["los(alibi, 64) < 1"]}, ["first.yaml:", "control: 'los(alibi, 64) < 1'", "mean 'loss'?"]),
        (
            {"common": {**CLAIM["common"], "evaluation": {"lengths": [16, 64, 900], "strategies": ["none"]}}}
            | {"holds": ["loss(alibi, 900) < 1"]},
            ["a window of 900 characters needs as many held-out characters"],
        ),
        (
            {"runs": {"alibi": {"name": "same"}, "rope": {"name": "same"}}, "holds": ["loss(alibi, 64) < 1"]},
            ["runs.rope and runs.alibi are the same training under the same name"],
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(folder: Path, changes: dict[str, Any], said: list[str]) -> None:
    claim_file(folder, **changes)
    refused(run(), *said)
    assert not (folder / "results").exists()


def test_holds_with_nothing_behind_it_is_no_list(folder: Path) -> None:
    path = claim_file(folder, holds="HERE", control=[])
    path.write_text(path.read_text().replace("HERE", "").replace("''", "").replace('""', ""))
    refused(run(path), "holds: must be a text or a list of texts, not nothing")


def test_an_empty_number_of_seeds_is_none(folder: Path) -> None:
    claim_file(folder)
    refused(run("--seeds", ""), "--seeds", "''")


def test_a_claim_of_several_lines_is_one_heading(folder: Path) -> None:
    claim_file(folder, claim="alibi extrapolates\n\n# rope | does not")
    assert run().code == 0
    text = (folder / "results" / "claims.md").read_text(encoding="utf-8")
    assert "\n## first: alibi extrapolates  # rope \\| does not\n\nSource: Press 2022." in text
    assert "\n# rope" not in text


def test_every_bad_file_is_named_and_nothing_runs(folder: Path) -> None:
    claim_file(folder, "a")
    claim_file(folder, "b", seeds=0)
    claim_file(folder, "c", holds=["1 < 2"])
    refused(run(), "b.yaml", "c.yaml")
    assert not (folder / "results").exists()


def test_a_name_made_of_too_many_files_is_refused_before_anything_runs(folder: Path) -> None:
    paths = [claim_file(folder, letter * 90) for letter in "abc"]
    refused(run(*paths), "name the tables", "is too long: name fewer files")
    assert not (folder / "results").exists()


def test_without_a_file_it_says_where_it_looked(folder: Path) -> None:
    refused(run(), "there is no claim file configs/claims/*.yaml", str(folder))
    refused(run("none.yaml"), "there is no file 'none.yaml'")


# --- from numbers to verdicts ---


def judged(kind: str, text: str, left: list[float], right: list[float]) -> Judged:
    """The inequality where its two runs have these losses at each seed."""
    found = inequality(text)
    claim = Claim(Path("x.yaml"), None, list(range(len(left))), {}, [], {}, [], {}, [])  # type: ignore[arg-type]
    for side, values in ((found.left, left), (found.right, right)):
        for _, term in side.terms:
            claim.tables.update({(term, seed): number for seed, number in enumerate(values)})
    return verdicts.of_inequality(kind, found, Measured(claim, {}, torch.device("cpu"), lambda chars: None))


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("loss(rope, 64) + 0.05", 1.434, "1.384 + 0.05"),
        ("loss(rope, 64) - 1", -0.25, "0.750 - 1"),
        ("loss(rope, 64) - loss(alibi, 64)", 0.25, "0.250"),
        ("0.5", 0.5, "0.500"),
    ],
)
def test_what_a_claim_adds_is_told_apart_from_what_was_measured(text: str, value: float, said: str) -> None:
    assert claim_tables.measured(inequality(f"{text} < loss(rope, 128)").left, value) == said


def test_differences_are_paired_by_seed_and_judged_by_their_interval() -> None:
    below = judged(HOLDS, "loss(a, 8) < loss(b, 8)", [1.0, 2.0, 3.0], [1.3, 2.3, 3.4])
    assert (below.verdict, below.left, below.seeds) == (CONFIRMED, 2.0, 3)
    assert below.difference.value == pytest.approx(-1 / 3)
    half = 4.302652729749464 * (0.01 / 3) ** 0.5 / 3**0.5  # Student's t with 2 degrees of freedom, by a table
    assert below.difference.high == pytest.approx(-1 / 3 + half)
    assert judged(HOLDS, "loss(a, 8) > loss(b, 8)", [1.0, 2.0, 3.0], [1.3, 2.3, 3.4]).verdict == REFUTED
    assert judged(HOLDS, "loss(a, 8) < loss(b, 8)", [1.0, 2.0, 3.0], [1.3, 2.3, 2.8]).verdict == OPEN
    assert judged(HOLDS, "loss(a, 8) < loss(b, 8) - 0.5", [1.0, 2.0, 3.0], [1.3, 2.3, 3.4]).verdict == REFUTED
    assert judged(HOLDS, "loss(a, 8) > 0.5", [1.0, 1.01], []).verdict == CONFIRMED
    twice = judged(HOLDS, "1 - loss(a, 8) > 0.5 - loss(b, 8)", [1.0, 2.0], [0.9, 1.9])
    assert (twice.verdict, twice.left, twice.difference.value) == (CONFIRMED, -0.5, pytest.approx(0.4))
    one = judged(HOLDS, "loss(a, 8) > 0.5", [1.0], [])
    assert (one.verdict, one.reason) == (OPEN, "one seed has no interval")


@pytest.mark.parametrize(
    ("holds", "control", "expected"),
    [
        ([CONFIRMED, CONFIRMED], [CONFIRMED], "reproduced"),
        ([CONFIRMED, REFUTED], [CONFIRMED], "contradicted"),
        ([OPEN, REFUTED], [], "contradicted"),
        ([CONFIRMED, OPEN], [], "undecided"),
        ([CONFIRMED], [OPEN], "undecided"),
        ([REFUTED], [CONFIRMED, REFUTED], "undecided"),
    ],
)
def test_a_verdict_follows_from_all_inequalities(holds: list[str], control: list[str], expected: str) -> None:
    both = [(HOLDS, one) for one in holds] + [(CONTROL, one) for one in control]
    parts = [Judged(kind, inequality(f"loss({kind}, 8) < 1"), 0, 1, UNKNOWN, 2, found) for kind, found in both]
    verdict, reason = verdicts.of_claim(parts)
    assert verdict == expected
    assert (reason is None) == (expected == "reproduced")
    if set(control) - {CONFIRMED}:
        assert "a control failed" in str(reason)
        assert "loss(control, 8) < 1" in str(reason)


# --- the command ---


def test_a_claim_is_run_judged_and_written(folder: Path) -> None:
    claim_file(folder)
    done = run("--json")
    assert done.code == 0, done.err
    [found] = done.json
    assert (found["name"], found["verdict"], found["seeds"]) == ("first", "reproduced", [1337, 1338])
    holds, control = found["inequalities"]
    at = {}
    for one in found["runs"]:
        for row in read_csv(Path(one["directory"]) / "extrapolation.csv"):
            at[one["name"], one["seed"], row["strategy"], int(row["length"])] = float(row["loss"])
    rows = read_csv(folder / "results" / "claims.csv")
    assert tuple(rows[0]) == claim_tables.COLUMNS
    assert [row["inequality"] for row in rows] == [*CLAIM["holds"], *CLAIM["control"]]
    assert float(rows[0]["difference"]) == holds["difference"] == pytest.approx(holds["left"] - holds["right"])
    own = [at["alibi", seed, "none", 64] - at["rope", seed, "ntk", 64] - 9 for seed in (1337, 1338)]
    assert holds["difference"] == pytest.approx(sum(own) / 2)
    half = 12.706204736432095 * abs(own[0] - own[1]) / 2  # Student's t with 1 degree of freedom, by a table
    assert holds["high"] - holds["difference"] == pytest.approx(half, rel=1e-6)
    assert control["kind"] == "control"
    text = (folder / "results" / "claims.md").read_text(encoding="utf-8")
    assert "1 claim: 1 reproduced, 0 contradicted, 0 undecided." in text
    assert "alibi extrapolates \\| rope does not" in text
    assert "pe claims --threads 1 --json" in text
    assert CLAIM["why"] in text

    times = {path: path.stat().st_mtime_ns for path in (folder / "results" / "runs").glob("*/model.safetensors")}
    again = run()
    assert again.code == 0, again.err
    assert "reproduced" in again.out
    assert "results/claims.md" in again.out
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_a_run_is_asked_what_it_was_not_trained_on(folder: Path) -> None:
    runs = {"flip": {"data": {"task": "flip_flop", "max_length": 4}, "evaluation": OF_COPY, "encoding": "alibi"}}
    asked = {"sparse": {"task": "flip_flop", "distribution": "sparse", "max_length": 4}}
    common = {"model": SMALL["model"], "training": {"steps": 3, "batch_size": 2, "precision": "float32"}}
    holds = ["accuracy(flip on sparse, 8) > -99", "accuracy(flip, 8) > -99"]
    claim_file(folder, runs=runs, asked=asked, common=common, holds=holds, control=[])
    done = run("--json")
    assert done.code == 0, done.err
    sparse, own = done.json[0]["inequalities"]
    assert (sparse["verdict"], own["verdict"]) == ("confirmed", "confirmed")
    assert sparse["left"] != own["left"]
    [first, *_] = done.json[0]["runs"]
    block = json.dumps({"task": "flip_flop", "distribution": "sparse", "max_length": 4})
    direct = pe("extrapolate", first["directory"], "--data", block, "--lengths", "8", "--json", "--threads", 1)
    assert direct.code == 0, direct.err
    second = pe("extrapolate", done.json[0]["runs"][1]["directory"], "--data", block, "--lengths", "8", "--json")
    both = [one.json["rows"][0]["accuracy"] for one in (direct, second)]
    assert sparse["left"] == pytest.approx(sum(both) / 2)


def test_a_claim_that_fails_costs_no_other(folder: Path) -> None:
    steep = {"learning_rate": 1e6, "optimizer": "adamw", "warmup_steps": 1}
    runs = {"alibi": {"encoding": "alibi", "training": steep}, "rope": CLAIM["runs"]["rope"]}
    claim_file(folder, "a", runs=runs)
    claim_file(folder, "b")
    done = run("--json")
    assert done.code == 1
    assert "2 of 6 runs have no result" in done.err
    first, second = done.json
    assert (first["verdict"], second["verdict"]) == ("undecided", "reproduced")
    assert "alibi at seed 1337: diverged: the loss was" in first["reason"]
    assert len(read_csv(folder / "results" / "claims.csv")) == 4


def test_an_interruption_keeps_what_was_judged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim_file(folder, "a")
    claim_file(folder, "b")

    def interrupted(planned: Any, *rest: Any) -> Any:
        if "b" in str(planned[0].config.stem):
            os.kill(os.getpid(), signal.SIGINT)
            return []
        return one_after_another(planned, *rest)

    monkeypatch.setattr(claiming, "execute", interrupted)
    done = run("--json")
    assert done.code == 130
    assert [one["name"] for one in done.json] == ["a"]
    text = (folder / "results" / "claims.md").read_text(encoding="utf-8")
    assert "1 claim: 1 reproduced, 0 contradicted, 0 undecided; 1 more not run yet." in text


def test_a_dry_run_lists_the_directories(folder: Path) -> None:
    claim_file(folder, "a")
    claim_file(folder, "b")
    done = run("--dry-run")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) == len(set(lines)) == 4
    assert [line for line in lines if not line.startswith("results/runs/")] == []
    assert [claim["name"] for claim in run("--dry-run", "--json").json] == ["a", "b"]
    assert not (folder / "results").exists()


def test_named_files_have_a_report_of_their_own(folder: Path) -> None:
    path = claim_file(folder)
    assert run().code == 0
    of_all = (folder / "results" / "claims.md").read_bytes()
    done = run(path)
    assert done.code == 0, done.err
    assert "results/claims-first.md" in done.out
    assert (folder / "results" / "claims-first.csv").is_file()
    assert (folder / "results" / "claims.md").read_bytes() == of_all
