"""Results that may be read and not written, in whole or where a directory is in the way of one file: what can be done
is done, and the rest refused before any time is spent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Finished, hashes, only_run, pe
from sealing import folder_for_all, sealed
from small_runs import config_file, refused

from pe_cli import benchmark, collection
from pe_cli.evaluation import Evaluation
from pe_cli.runs import RUN_FILES
from pe_cli.training import Trainer

ABACUS = Path(__file__).parents[1] / "configs" / "claims" / "abacus_lifts_addition.yaml"


@pytest.fixture(scope="module")
def results() -> Iterator[Path]:
    with folder_for_all() as folder:
        config = config_file(folder / "good.yaml", encoding="rope", training={"steps": 2})
        done = pe("train", config, "--out", folder / "results", "--threads", 1)
        assert done.code == 0, done
        yield folder


@pytest.fixture(autouse=True)
def no_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        pytest.fail("this is work that cannot be kept")

    monkeypatch.setattr(Evaluation, "run", fail)
    monkeypatch.setattr(Trainer, "one_step", fail)
    monkeypatch.setattr(benchmark, "measure", fail)


def read_only(folder: Path, *arguments: object) -> Finished:
    before = hashes(folder)
    with sealed(folder):
        done = pe(*arguments, "--out", folder / "results")
    assert hashes(folder) == before
    return done


def test_no_training_begins(results: Path) -> None:
    done = read_only(results, "train", results / "good.yaml", "--seed", 2)
    refused(done, f"cannot write in {results}/results/runs: permission denied")


def test_no_evaluation_begins(results: Path) -> None:
    run = only_run(results / "results")
    refused(read_only(results, "extrapolate", run), f"cannot write in {run}: permission denied")


def test_no_comparison_begins(results: Path) -> None:
    done = read_only(results, "compare", results / "good.yaml", "--seeds", 2)
    refused(done, f"cannot write in {results}/results/runs: permission denied")


def test_a_run_can_be_sampled_from(results: Path) -> None:
    done = read_only(results, "sample", "--chars", 5, "--json")
    assert (done.code, len(done.json["text"])) == (0, 5)


@pytest.mark.parametrize("name", ["windows.csv", "evaluation.json", "extrapolation.png"])
def test_no_evaluation_begins_where_a_directory_is_in_the_way(results: Path, name: str) -> None:
    run = only_run(results / "results")
    in_the_way(run / name, "extrapolate", run, "--out", results / "results")


@pytest.mark.parametrize("name", sorted({*RUN_FILES} - {"run.json"}))
def test_no_training_begins_where_a_directory_is_in_the_way(results: Path, name: str) -> None:
    run = only_run(results / "results")
    third = run.with_name(run.name.replace("s1337", "s3"))
    in_the_way(third / name, "train", results / "good.yaml", "--seed", 3, "--out", results / "results")


@pytest.mark.parametrize("name", collection.FILES)
def test_no_comparison_begins_where_a_directory_is_in_the_way(results: Path, name: str) -> None:
    command = ("compare", results / "good.yaml", "--seeds", 2, "--name", "two", "--out", results / "results")
    in_the_way(results / "results" / "two" / name, *command)


@pytest.mark.parametrize("ending", ["md", "csv"])
def test_no_claim_is_checked_where_a_directory_is_in_the_way(results: Path, ending: str) -> None:
    table = results / "results" / f"claims-{ABACUS.stem}.{ending}"
    in_the_way(table, "claims", ABACUS, "--out", results / "results")


@pytest.mark.parametrize("name", ["bench.csv", "bench.md", "bench.png"])
def test_no_bench_begins_where_a_directory_is_in_the_way(results: Path, name: str) -> None:
    in_the_way(results / "results" / "bench" / name, "bench", "rope", "--out", results / "results")


def in_the_way(directory: Path, *command: object) -> None:
    """The command is refused, and leaves all as it was."""
    above = [path for path in directory.parents if not path.exists()]
    directory.mkdir(parents=True)
    before = hashes(directory.parent)
    refused(pe(*command), f"cannot write {directory}: a directory is in the way")
    assert hashes(directory.parent) == before
    for path in (directory, *above):
        path.rmdir()


def test_the_tests_run_as_nobody_in_a_sealed_folder(results: Path) -> None:
    with sealed(results), pytest.raises(PermissionError):
        (results / "x").touch()
    (results / "x").touch()
    os.unlink(results / "x")
