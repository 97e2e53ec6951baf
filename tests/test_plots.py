"""Pictures, and what is in them before they are drawn."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import image
from matplotlib.figure import Figure

from pe_cli import benchmark_plots, plots
from pe_cli.curves import COLUMNS, Curve, bands, not_drawn, of_configs, of_strategies
from pe_cli.errors import RunError
from pe_cli.plots import COLOURS, MARKERS, plot_comparison, plot_extrapolation, tick_lengths

LENGTHS = (128, 256, 512, 1024)


def rows(
    run: str, loss: float = 1.5, seeds: tuple[int, ...] = (1,), lost: dict[int, str] | None = None, **more: Any
) -> pd.DataFrame:
    """A row per seed and length; `lost` has the status of lengths without a loss."""
    frame = [
        {
            "run": f"{run}-0123456789-s{seed}", "name": run, "encoding": "rope", "strategy": "none", "seed": seed,
            "train_length": 128, "length": length, "protocol": "same_targets", "scored_chars": 2048,
            "status": (lost or {}).get(length, "ok"),
            **dict.fromkeys(["loss", "loss_low", "loss_high"]),
            **({} if length in (lost or {}) else
               {"loss": loss + 0.01 * seed, "loss_low": loss - 0.1, "loss_high": loss + 0.2}),
            **more,
        }
        for seed in seeds for length in LENGTHS
    ]  # fmt: skip
    return pd.DataFrame(frame)


def test_one_run_is_labelled_by_its_encoding_and_strategies() -> None:
    frame = pd.concat([rows("a"), rows("a", strategy="repeat_last"), rows("a", strategy="interpolate")])
    assert [curve.label for curve in of_strategies(frame)] == ["rope", "rope + repeat_last", "rope + interpolate"]


def test_colours_tell_the_strategies_apart_where_dashes_would_repeat() -> None:
    many = ["none", "wrap", "mirror", "mean", "zero", "cubic", "nearest"]
    parts = [rows(name, strategy=strategy) for name in ("learned", "other") for strategy in many]
    curves = of_configs(pd.concat(parts))
    assert len({(curve.look, curve.dash) for curve in curves}) == 14
    assert {curve.dash for curve in curves} == {0, 1}
    assert len({COLOURS[curve.look % len(COLOURS)] for curve in curves}) == 7


def test_runs_are_labelled_by_name_where_it_says_more() -> None:
    parts = [rows("rope"), rows("Rope-base-1000"), rows("mine"), rows("a", encoding="kerple_log", name="kerple-log")]
    parts += [rows("twin-1", name="twin"), rows("twin-2", name="twin"), rows("rope", strategy="interpolate")]
    curves = of_configs(pd.concat(parts))
    assert [(curve.label, curve.look, curve.dash) for curve in curves] == [
        ("rope", 0, 0),
        ("rope + interpolate", 0, 1),
        ("Rope-base-1000", 1, 0),
        ("mine (rope)", 2, 0),
        ("kerple-log", 3, 0),
        ("twin-1-0123456789", 4, 0),
        ("twin-2-0123456789", 5, 0),
    ]


def test_configs_of_other_training_lengths_say_so() -> None:
    curves = of_configs(pd.concat([rows("rope"), rows("rope-256", train_length=256)]))
    assert [curve.label for curve in curves] == ["rope, trained at 128", "rope-256, trained at 256"]


@pytest.mark.parametrize(
    ("seeds", "band", "words"),
    [
        ((1,), (1.51, math.nan, math.nan), ""),
        ((1, 3), (1.52, 1.51, 1.53), "Curves: means over 2 seeds. Bands: from one seed to the other."),
        # Student's t of two degrees of freedom: 4.30265
        (
            (1, 2, 3),
            (1.52, 1.52 - 4.30265 * 0.01 / math.sqrt(3), 1.52 + 4.30265 * 0.01 / math.sqrt(3)),
            "Curves: means over 3 seeds. Bands: 95 % intervals of the mean over seeds.",
        ),
    ],
)
def test_means_and_bands(seeds: tuple[int, ...], band: tuple[float, ...], words: str) -> None:
    (curve,) = of_configs(rows("rope", seeds=seeds))
    points = curve.points()
    assert list(points.index) == list(LENGTHS)
    np.testing.assert_allclose(points.loc[256, ["loss", "low", "high"]].astype(float), band, rtol=1e-6)
    assert bands([curve]) == words


def test_what_is_not_drawn_is_told() -> None:
    beyond = {256: "undefined", 512: "undefined", 1024: "undefined"}
    parts = [
        rows("learned", encoding="learned", lost=beyond),
        rows("shaw", encoding="shaw", lost=beyond),
        rows("rope", lost=dict.fromkeys(LENGTHS, "refused"), strategy="interpolate"),
        rows("alibi", encoding="alibi", lost={256: "out_of_memory", 1024: "skipped"}),
        rows("t5", encoding="t5", seeds=(1, 2), loss=2.0),
        rows("t5", encoding="t5", seeds=(3,), lost=dict.fromkeys(LENGTHS, "diverged")),
        rows("fire", encoding="fire", loss=math.inf),
    ]
    assert not_drawn(of_configs(pd.concat(parts))) == [
        "learned, shaw: undefined beyond 128",
        "rope + interpolate: refused",
        "alibi: out of memory at 256",
        "alibi: skipped beyond 512",
        "t5: diverged (1 of 3 seeds)",
        "fire: loss not finite",
    ]
    skipped = {1024: "skipped"}
    both = pd.concat([rows("rope", lost=skipped), rows("rope-2", lost=skipped)])
    assert not_drawn(of_configs(both)) == ["all: skipped beyond 512"]


def test_names_with_commas_stay_apart() -> None:
    lost = dict.fromkeys(LENGTHS[1:], "undefined")
    parts = [rows("a, rate=1", lost=lost), rows("b", lost=lost), rows("c", loss=2.0)]
    assert not_drawn(of_configs(pd.concat(parts))) == ["a, rate=1 (rope); b (rope): undefined beyond 128"]


@pytest.mark.parametrize("seconds", [(0.11, 0.2), (0.1, 0.1001), (1.1, 90.0), (0.4, 2.0)])
def test_axes_of_a_benchmark_have_at_least_two_numbers(seconds: tuple[float, float]) -> None:
    values = {"windows": 32, "chars_per_second": 1e4, "peak_bytes": 2.0**20}
    frame = pd.DataFrame(
        {"encoding": name, "work": work, "length": 1024, "seconds": second, **values}
        for name, second in zip(("rope", "alibi"), seconds, strict=True)
        for work in ("training", "evaluation")
    )
    with plots.drawing(Path("unused.png")):
        figure = benchmark_plots._figure(frame, "A title", [])
        figure.draw_without_rendering()
        axis = figure.axes[1].xaxis
        low, high = figure.axes[1].get_xlim()
        assert low <= seconds[0]
        assert seconds[1] <= high
        assert sum(low <= place <= high for place in axis.get_majorticklocs()) >= 2


def test_seeds_that_diverged_in_training_are_told() -> None:
    """They have no rows, and the curve is the mean of the others."""
    lost = dict.fromkeys(LENGTHS, "undefined")
    parts = [rows("rope", seeds=(1, 3)), rows("rope", strategy="wrap", seeds=(1, 3)), rows("t5", encoding="t5")]
    parts += [rows("rope", strategy="zero", seeds=(1, 3), lost=lost)]
    assert not_drawn(of_configs(pd.concat(parts), {"rope", "gone"})) == [
        "rope, rope + wrap: without the seeds that diverged in training, which flatters",
        "rope + zero: undefined",
    ]


def test_colours_tell_fourteen_runs_apart_and_with_markers_many_more() -> None:
    assert len(set(COLOURS)) == 14
    pairs = {(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in range(154)}
    assert len(pairs) == 154


def test_tick_lengths_leave_room_and_keep_the_training_length() -> None:
    assert tick_lengths(LENGTHS, [128]) == list(LENGTHS)
    assert tick_lengths([128], [128]) == [128]
    crowded = tick_lengths([100, 127, 128, 129, 4000, 4095, 4096], [128])
    assert crowded == [128, 4096]


def drawn(curves: list[Curve]) -> Figure:
    with plots.drawing(Path("unused.png")):
        return plots._losses_by_length(curves, "A title")


def test_the_picture_of_losses_that_stay_near() -> None:
    frame = pd.concat([rows("rope"), rows("alibi", 1.4, encoding="alibi"), rows("my $1$ _x", 1.45)])
    figure = drawn(of_configs(frame))
    (axes,) = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["rope", "my $1$ _x (rope)", "alibi"]
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["128", "256", "512", "1024"]
    assert axes.get_yscale() == "linear"
    assert axes.get_ylabel() == "loss (nats per character)"
    assert axes.get_title("left") == "protocol same_targets, 2,048 characters scored"
    assert axes.texts[0].get_text() == "training length 128"
    assert [128, 128] in [np.asarray(line.get_xdata()).tolist() for line in axes.lines]
    assert figure.get_suptitle() == "A title"


def test_an_exploding_loss_is_whole_in_one_panel_and_the_others_are_close_up_in_another() -> None:
    frame = pd.concat([rows("rope", 15.0), rows("alibi", encoding="alibi")])
    whole, close_up = drawn(of_configs(frame)).axes
    assert whole.get_yscale() == "log"
    assert whole.get_ylim()[1] > 15.01
    assert close_up.get_yscale() == "linear"
    assert close_up.get_ylim() == pytest.approx((1.51 * 0.95, 1.51 * 1.5))


def test_a_panel_for_each_protocol() -> None:
    frame = pd.concat([rows("rope"), rows("rope", protocol="sliding", scored_chars=9000, lost={1024: "skipped"})])
    figure = drawn(of_strategies(frame))
    assert [axes.get_title("left") for axes in figure.axes] == [
        "protocol same_targets, 2,048 characters scored",
        "protocol sliding, 9,000 characters scored",
    ]
    notes = figure.get_supxlabel()
    assert notes == "Bands: 95 % intervals over windows.\nsliding: rope: skipped beyond 512"


def test_the_lengths_of_a_run_are_of_what_it_was_asked() -> None:
    training = pd.DataFrame({"step": [1, 2], "loss": [3.0, 2.0]})
    task = rows("rope", protocol="instances", exact_match=0.5, exact_match_low=0.4, exact_match_high=0.6)
    for frame, words in ((rows("rope"), "evaluation window (characters)"), (task, "instance")):
        with plots.drawing(Path("unused.png")):
            figure = plots._run(training, None, frame, "A title")
        assert figure.axes[1].get_xlabel() == f"length of the {words}"


def test_bands_of_shares_lie_between_0_and_1() -> None:
    """Student's t over three seeds that have 0, 0 and 1 reaches from -1.1 to 1.8."""
    parts = [rows("rope", seeds=(seed,), exact_match=float(seed == 3)) for seed in (1, 2, 3)]
    [curve] = of_configs(pd.concat(parts).assign(exact_match_low=0.0, exact_match_high=1.0))
    points = curve.showing("exact_match").points()
    assert points["low"].tolist() == [0.0] * len(LENGTHS)
    assert points["high"].tolist() == [1.0] * len(LENGTHS)
    assert np.allclose(points["loss"], 1 / 3)


def test_files_are_whole_pictures_and_the_same_every_time(tmp_path: Path) -> None:
    frame = pd.concat([rows("rope", seeds=(1, 2, 3)), rows("日本語 \ud800", 9.0)])
    for name in ("a.png", "b.png"):
        plot_comparison(frame, tmp_path / name, "Title \ud800 $x$")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    height, width, _ = image.imread(tmp_path / "a.png").shape
    assert width == 8.5 * 150
    assert height > 1000


@pytest.mark.parametrize("lost", [dict.fromkeys(LENGTHS, "skipped"), dict.fromkeys(LENGTHS[1:], "undefined")])
def test_little_or_nothing_to_draw(tmp_path: Path, lost: dict[int, str]) -> None:
    plot_extrapolation(rows("rope", lost=lost), tmp_path / "a.png", "Little")
    assert (tmp_path / "a.png").exists()


@pytest.mark.parametrize("backend", ["TkAgg", "no such backend"])
def test_neither_display_nor_settings_matter(tmp_path: Path, backend: str) -> None:
    rows("rope").to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 20\nbackend: TkAgg\nsavefig.dpi: 10\n")
    code = """
import os, sys, pandas as pd
from pathlib import Path
from pe_cli.plots import plot_extrapolation
assert "matplotlib" not in sys.modules
plot_extrapolation(pd.read_csv("rows.csv"), Path("there.png"), "Title")
assert "matplotlib.pyplot" not in sys.modules and "torch" not in sys.modules
print(os.environ["MPLBACKEND"])
"""
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"} | {"MPLBACKEND": backend}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (backend + "\n", "")
    plot_extrapolation(rows("rope"), tmp_path / "here.png", "Title")
    assert (tmp_path / "there.png").read_bytes() == (tmp_path / "here.png").read_bytes()


def test_every_failure_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    with pytest.raises(RunError, match=rf"cannot draw {path}: the rows lack name$"):
        plot_comparison(rows("rope").drop(columns="name"), path, "Title")
    with pytest.raises(RunError, match=rf"cannot draw {path}: there are no rows"):
        plot_extrapolation(pd.DataFrame(columns=list(COLUMNS)), path, "Title")
    with pytest.raises(RunError, match=rf"cannot draw {path}: ValueError: .*wrong"):
        plot_extrapolation(rows("rope").assign(loss="wrong"), path, "Title")
    with pytest.raises(RunError, match=rf"cannot write {tmp_path}/none/a.png: there is no such"):
        plot_extrapolation(rows("rope"), tmp_path / "none" / "a.png", "Title")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(RunError, match=rf"cannot draw {path}: .*pip install matplotlib"):
        plot_extrapolation(rows("rope"), path, "Title")
    assert list(tmp_path.iterdir()) == []
