"""A comparison reuses the tables of a run while nothing that decides them has changed."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import pe
from small_runs import config_file, in_this_process

from pe_cli import plots
from pe_cli.errors import Interrupted
from pe_cli.evaluation import Evaluation


@pytest.fixture
def evaluations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were evaluated, one entry each time."""
    in_this_process(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name in ("plot_extrapolation", "plot_comparison"):
        monkeypatch.setattr(plots, name, lambda rows, path, *more: path.write_bytes(b"picture"))
    done: list[str] = []
    real = Evaluation.run

    def counted(self: Evaluation, advance: object) -> object:
        done.append(self.trained.experiment.encoding["name"])
        return real(self, advance)  # type: ignore[arg-type]

    monkeypatch.setattr(Evaluation, "run", counted)
    return done


def test_equal_evaluations_are_made_once(tmp_path: Path, evaluations: list[str]) -> None:
    for name in ("alibi", "none"):
        config_file(tmp_path / f"{name}.yaml", encoding=name)
    first = pe("compare", "alibi.yaml", "none.yaml", "--json", "--threads", 1).json
    again = pe("compare", "alibi.yaml", "none.yaml", "--json", "--threads", 1).json
    assert evaluations == ["alibi", "none"]
    assert again == first


def test_other_settings_are_evaluated(tmp_path: Path, evaluations: list[str]) -> None:
    config_file(tmp_path / "alibi.yaml", encoding="alibi")
    for windows in (6, 5, 5):
        pe("compare", "alibi.yaml", "--set", f"evaluation.windows={windows}", "--threads", 1)
    assert evaluations == ["alibi"] * 2


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff", 100_000 * b"["], ids=range(5))
def test_a_damaged_record_is_no_reason_to_trust_the_tables(
    tmp_path: Path, evaluations: list[str], content: bytes
) -> None:
    config_file(tmp_path / "alibi.yaml", encoding="alibi")
    pe("compare", "alibi.yaml", "--threads", 1)
    (record,) = tmp_path.glob("results/runs/alibi-*/evaluation.json")
    record.write_bytes(content)
    pe("compare", "alibi.yaml", "--threads", 1)
    assert evaluations == ["alibi"] * 2


def test_a_record_without_digests_is_no_reason_either(tmp_path: Path, evaluations: list[str]) -> None:
    """Rows may have gone from the tables meanwhile."""
    config_file(tmp_path / "alibi.yaml", encoding="alibi")
    first = pe("compare", "alibi.yaml", "--json", "--threads", 1).json
    (record,) = tmp_path.glob("results/runs/alibi-*/evaluation.json")
    (table,) = tmp_path.glob("results/runs/alibi-*/extrapolation.csv")
    content = json.loads(record.read_text())
    del content["tables"]
    record.write_text(json.dumps(content))
    table.write_text(table.read_text().splitlines()[0] + "\n")
    assert len(pe("compare", "alibi.yaml", "--json", "--threads", 1).json["rows"]) == len(first["rows"]) > 0
    assert evaluations == ["alibi"] * 2


def test_training_again_removes_the_record(tmp_path: Path, evaluations: list[str]) -> None:
    config_file(tmp_path / "alibi.yaml", encoding="alibi")
    pe("compare", "alibi.yaml", "--threads", 1)
    pe("compare", "alibi.yaml", "--force", "--threads", 1)
    assert evaluations == ["alibi"] * 2


def test_a_kill_before_the_picture_is_drawn_costs_no_picture(tmp_path: Path, evaluations: list[str]) -> None:
    config_file(tmp_path / "alibi.yaml", encoding="alibi")
    with patch.object(plots, "plot_extrapolation", side_effect=Interrupted("", signal.SIGTERM)):
        assert pe("compare", "alibi.yaml", "--threads", 1).code == 1
    assert list(tmp_path.glob("results/runs/alibi-*/extrapolation.csv"))
    assert pe("compare", "alibi.yaml", "--threads", 1).code == 0
    assert list(tmp_path.glob("results/runs/alibi-*/extrapolation.png"))
    assert evaluations == ["alibi"] * 2
