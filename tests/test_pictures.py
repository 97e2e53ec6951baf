"""Pictures of encodings: the numbers in them, and what is written beside them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import only_run, pe, training
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from small_runs import refused

from pe_cli import distance_charts, distances, figures, kinds, pictures, plots, plotting, side_by_side
from pe_cli.charts import Charts, Line, Panel
from pe_cli.drawing import drawing, save
from pe_cli.encodings import registry
from pe_cli.errors import ConfigError, PeError
from pe_cli.heatmaps import Heat, Maps, Masks, palette
from pe_cli.plotting import Options, Picture

SMALL = ["model.d_model=16", "model.n_heads=2", "model.n_layers=2", "training.length=16"]
FRESH = sorted(set(registry.names()) - {registry.encoding_class("no").name})
"""All but the one that changes nothing."""


def asked(
    length: int | None = 8,
    kinds: str | None = None,
    *pairs: str,
    at_length: int | None = None,
    strategies: list[str] | None = None,
    layer: int | None = None,
) -> Options:
    several = None if kinds is None else kinds.split(",")
    stated = {pair.partition("=")[0] for pair in pairs}
    sizes = [pair for pair in SMALL if pair.partition("=")[0] not in stated]
    return Options(length, at_length, strategies, layer, several, [*sizes, *pairs])


def sections(names: str, *arguments: Any, **others: Any) -> list[Any]:
    """The sections of a picture of encodings, as they are handed over to be drawn."""
    return taken(names, *arguments, **others)[0]


def notes(names: str, *arguments: Any, **others: Any) -> str:
    return " ".join(taken(names, *arguments, **others)[1])


def taken(names: str, *arguments: Any, **others: Any) -> tuple[list[Any], list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        found: list[Any] = []
        patch.setattr(figures, "draw", lambda *given: found.append(given))
        picture = plotting.picture(names.split(" "), asked(*arguments, **others))
        picture.draw(Path("unused.png"))
    return found[0][0], found[0][3]


def only(names: str, kind: str, length: int | None = 8, *pairs: str, **others: Any) -> Any:
    [section] = sections(names, length, kind, *pairs, **others)
    return section


# ---- numbers


def test_the_table_has_the_sines_and_cosines_of_the_paper() -> None:
    table = only("sinusoidal", "table", 3, "model.d_model=8", "encoding.base=1e4")
    [[heat]] = table.rows
    waves = [[f(row * angle) for angle in (1, 0.1, 0.01, 0.001) for f in (math.sin, math.cos)] for row in range(3)]
    np.testing.assert_allclose(heat.values, waves, atol=1e-7)
    assert (table.x, table.y, table.unit) == ("dimension", "position id", "what is added to the embedding")


def test_the_similarity_of_rope_is_the_mean_of_the_cosines() -> None:
    """Σ cos(nθ) / pairs with θ = base^(−2k/d): the curve of long-range decay."""
    chart = only("rope", "similarity", 50, "model.d_model=32", "encoding.base=100")
    [[line]] = [panel.lines for panel in chart.panels]
    angles = 100.0 ** (-np.arange(8) / 8)
    np.testing.assert_allclose(line.values, np.cos(np.outer(np.arange(50), angles)).mean(axis=1), atol=1e-12)


def test_the_similarity_of_a_table_is_the_cosine_of_rows() -> None:
    """cos(p θ) cos(q θ) + sin(p θ) sin(q θ) = cos((p − q) θ), whatever the rows."""
    chart = only("sinusoidal", "similarity", 40, "model.d_model=16")
    [line] = chart.panels[0].lines
    angles = 10000.0 ** (-np.arange(8) / 8)
    np.testing.assert_allclose(line.values, np.cos(np.outer(np.arange(40), angles)).mean(axis=1), atol=1e-6)


def test_rows_of_zeros_have_no_similarity() -> None:
    """anchored: every fourth row is that of a sinusoidal table, the others are zeros."""
    chart = only("anchored", "similarity", 40, "model.d_model=16")
    [line] = chart.panels[0].lines
    angles, known = 10000.0 ** (-np.arange(8) / 8), np.arange(40) % 4 == 0
    np.testing.assert_allclose(
        line.values[known], np.cos(np.outer(np.arange(0, 40, 4), angles)).mean(axis=1), atol=1e-6
    )
    assert np.isnan(line.values[~known]).all()


def test_the_decay_of_alibi_is_the_slope_times_minus_the_distance() -> None:
    chart = only("alibi", "decay", 20)
    assert (chart.x, chart.y) == ("distance (characters)", "effect (nats)")
    [panel] = chart.panels
    assert [line.label for line in panel.lines] == ["head 0", "head 1"]
    for line, slope in zip(panel.lines, (2.0**-4, 2.0**-8), strict=True):
        np.testing.assert_allclose(line.values, -slope * np.arange(20), atol=1e-12)
        np.testing.assert_allclose(line.band, 0, atol=1e-12)


def test_the_decay_of_rope_is_the_similarity_less_one_in_logits() -> None:
    """Equal queries and keys with entries of size 1: their logit is √d times the similarity, in the mean."""
    sizes = ["model.d_model=256", "model.n_heads=2"]
    [similar] = only("rope", "similarity", 16, *sizes).panels[0].lines
    lines = only("rope", "decay", 16, *sizes).panels[0].lines
    mean = np.mean([line.values for line in lines], axis=0)
    np.testing.assert_allclose(mean, math.sqrt(128) * (similar.values - 1), rtol=0.15, atol=0.1)
    assert lines[0].band.max() > 0.1


def test_the_bias_is_that_of_the_paper_and_grey_in_the_future() -> None:
    section = only("alibi", "bias", 5)
    assert (section.x, section.y, section.unit) == ("key position", "query position", "nats")
    [[first, second]] = section.rows
    assert [first.title, second.title] == ["head 0", "head 1"]
    for heat, slope in ((first, 2.0**-4), (second, 2.0**-8)):
        wanted = [[slope * (j - i) if j <= i else math.nan for j in range(5)] for i in range(5)]
        np.testing.assert_array_equal(heat.values, wanted)


def test_a_mask_that_all_heads_share_is_one_panel() -> None:
    [[heat]] = only("sliding_window", "mask", 6, "encoding.window=2").rows
    assert heat.title == "all heads"
    wanted = [[float(i - j < 2) if j <= i else math.nan for j in range(6)] for i in range(6)]
    np.testing.assert_array_equal(heat.values, wanted)
    assert "hides nothing" in notes("sliding_window", 6, "mask", "encoding.window=6")


def test_attention_that_breaks_sticks_halves_with_every_key() -> None:
    """With logits around 0 a key takes about half of what is left, and the query's own takes nothing."""
    [*heads, reference] = only("stick_breaking", "attention", 12).panels[0].lines
    for line in heads:
        assert line.values[0] == 0
        np.testing.assert_allclose(line.values[1:4], [0.5, 0.25, 0.125], atol=0.06)
    assert reference.label == "no encoding"
    np.testing.assert_allclose(reference.values, 1 / 12)


def test_attention_is_even_without_positions_and_sums_to_one() -> None:
    *heads, _ = only("sliding_window", "attention", 12, "encoding.window=4", "encoding.encoding=none").panels[0].lines
    for line in heads:
        np.testing.assert_allclose(line.values[:4], 0.25, atol=0.12)
        np.testing.assert_allclose(np.nansum(line.values), 1, atol=1e-12)
        assert np.isnan(line.values[4:]).all()


def test_means_by_offset_worked_by_hand() -> None:
    import torch

    values = torch.tensor([[4.0, 2.0, math.nan], [9.0, 1.0, 3.0]])  # queries 1 and 2 of three characters
    found = distances.by_offset(values, slice(1, 3))
    assert found.tolist() == [2.5, 2.5, 9.0]  # (2 + 3)/2, (4 + 1)/2, 9
    hidden = distances.by_offset(torch.tensor([[math.nan, 1.0]]), slice(1, 2))
    assert hidden[0] == 1
    assert math.isnan(hidden[1])


def test_ids_of_every_part_along_the_text() -> None:
    chart = only("bipe", "ids", 25)
    [panel] = chart.panels
    assert panel.text == "# Counts from 0 to 12.\nde"
    assert {line.label: line.values.tolist() for line in panel.lines} == {
        "sinusoidal": [*range(22), 0, 0, 1],
        "rope": [0] * 22 + [1, 2, 2],
    }
    assert "sample text" in notes("bipe", 25, "ids")


def test_ids_under_strategies_are_curves_of_one_panel() -> None:
    [panel] = only("rope", "ids", None, at_length=31, strategies=["none", "interpolate"]).panels
    assert [line.label for line in panel.lines] == ["rope", "rope + interpolate"]
    np.testing.assert_allclose(panel.lines[1].values, np.arange(31) / 2, atol=1e-6)


# ---- which pictures


def shown_kinds(names: str, *arguments: Any, **others: Any) -> list[str]:
    return [section.title.split(" ")[0] for section in sections(names, *arguments, **others)]


def test_what_an_encoding_is_about_is_drawn() -> None:
    assert shown_kinds("sinusoidal") == ["Table", "Similarity"]
    assert shown_kinds("rope") == ["Similarity"]
    assert shown_kinds("alibi") == ["Bias", "Effect"]
    assert shown_kinds("mix") == ["Table", "Similarity", "Bias", "Effect"]
    assert shown_kinds("strided") == ["Similarity", "Mask"]
    assert shown_kinds("stick_breaking") == ["Attention"]
    assert shown_kinds("rope", None, at_length=40, strategies=["interpolate"]) == ["Position", "Similarity"]


@pytest.mark.parametrize("name", FRESH)
def test_every_encoding_has_a_picture(name: str) -> None:
    assert len(figure(sections(name, 6)).axes) >= 1


@pytest.mark.parametrize("name", FRESH)
def test_every_kind_that_an_encoding_is_said_to_have_can_be_drawn(name: str) -> None:
    [shown] = side_by_side.shown([name], SMALL, ["none"], 6)
    every = ",".join(kinds.kinds_of(shown.window))
    for section in sections(name, 40, every, "training.length=40"):  # the sample text has a bracket by then
        values = [heat.values for row in getattr(section, "rows", []) for heat in row]
        values += [line.values for panel in getattr(section, "panels", []) for line in panel.lines]
        assert values
        assert all(np.isfinite(part).any() and not np.isinf(part).any() for part in values)


def test_layers() -> None:
    pattern = "{name: layered, pattern: [none, alibi]}"
    with pytest.MonkeyPatch.context() as patch:
        found: list[Any] = []
        patch.setattr(figures, "draw", lambda *given: found.append(given))
        plotting.picture([pattern], asked(4, "bias")).draw(Path("unused.png"))
    assert found[0][0][0].rows[0][0].values[3][0] == -3 * 2.0**-4
    assert any("bias of layer 1; layers 1 of 2 have one" in note for note in found[0][3])
    for layer, words in ((0, "has no bias there; those that have one: 1"), (2, "has the layers 0 to 1")):
        with pytest.raises(ConfigError, match=words):
            plotting.picture([pattern], asked(4, "bias", layer=layer))


def test_content_that_matters_is_told() -> None:
    assert "fox: the bias depends on the text; it is drawn for random content (seed 0)." in notes("fox", 6, "bias")
    assert "depends" not in notes("t5", 6, "bias")
    assert "Neighbours are blended" in notes("t5", 300, "bias")
    assert "blended" not in notes("t5", 256, "bias")


def test_of_many_heads_some_are_shown() -> None:
    heads = ["model.n_heads=12", "model.d_model=96"]
    rows = only("alibi", "bias", 4, *heads).rows
    titles = [heat.title for row in rows for heat in row]
    assert [len(row) for row in rows] == [4, 4]
    assert (titles[0], titles[-1], len(set(titles))) == ("head 0", "head 11", 8)
    assert "8 of 12 heads are shown" in notes("alibi", 4, "bias", *heads)


# ---- side by side


def test_a_repeated_key_gives_a_panel_for_each_value() -> None:
    table = only("sinusoidal", "table", 8, "encoding.base=1000", "encoding.base=10000", "encoding.base=1000")
    [row] = table.rows
    assert [heat.title for heat in row] == ["sinusoidal, base=1000", "sinusoidal, base=10000"]
    assert row[0].values[1, 2] == pytest.approx(math.sin(1000 ** (-1 / 8)), abs=1e-6)
    assert row[1].values[1, 2] == pytest.approx(math.sin(10000 ** (-1 / 8)), abs=1e-6)
    assert table.scales == [0]


def test_colours_are_shared_where_values_are_of_one_size() -> None:
    assert only("alibi t5", "bias", 256).scales == [0, 1]
    assert only("t5", "bias", 8, "seed=1", "seed=2").scales == [0, 0]


def test_each_of_several_encodings_is_named() -> None:
    table, similarity, bias, effect = sections("sinusoidal alibi")
    assert [table.rows[0][0].title, similarity.panels[0].title, effect.panels[0].title] == ["sinusoidal"] * 2 + [
        "alibi"
    ]
    assert [heat.title for heat in bias.rows[0]] == ["alibi, head 0", "alibi, head 1"]


def test_what_is_set_is_said_and_makes_another_file() -> None:
    found = [plotting.picture(["sinusoidal"], asked(8, None, f"encoding.base={base}", "seed=3")) for base in (2, 3)]
    assert [one.title for one in found] == ["sinusoidal, base=2", "sinusoidal, base=3"]
    assert "seed=3" in found[0].notes[1]
    assert found[0].default.name.startswith("sinusoidal-")
    assert "base_2" in found[0].default.name
    others = [asked(8), asked(8, "table"), asked(8, strategies=["interpolate"])]
    names = {plotting.picture(["sinusoidal"], one).default.name for one in others}
    assert len(names) == len(others)


# ---- refusals


@pytest.mark.parametrize(
    ("names", "arguments", "words"),
    [
        ("rope", (8, "table"), "rope has no picture of table; it has: ids, similarity, decay, attention"),
        ("alibi sinusoidal", (8, "bias"), "sinusoidal has no picture of bias; it has: ids, table, similarity"),
        ("none", (8,), "none has no picture of any kind; it changes nothing that a picture shows"),
        ("none", (8, "bias"), "none has no picture of bias"),
        ("rope", (8, "tabel"), "--kind: there is no picture 'tabel'; did you mean 'table'?"),
        ("rope", (2**16 + 1,), "length 65537: must be from 1 to 65536"),
        ("alibi", (2048, "bias"), "bias of alibi: 2 × 2048 × 2048 entries are too many to draw; lengths up to 1448"),
        ("learned", (17,), "the learned table has 16 rows"),
        ("rope", (8, None, "encoding.base=1", "encoding.base=2", "seed=1", "seed=2"), "encoding.base and seed have"),
        ("rope", (8, None, "encoding=alibi"), "name encodings as arguments"),
        ("alibi", (8, None, "encoding.base=3"), "encoding.base: alibi has no such option"),
        ("rope", (8, None, *(f"seed={n}" for n in range(13))), "13 encodings side by side: draw at most 12"),
    ],
)  # fmt: skip
def test_refusals(names: str, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(PeError) as error:
        sections(names, *arguments)
    assert words in str(error.value)


def test_what_is_too_large_is_left_out_with_a_word_where_nothing_was_asked_for() -> None:
    found, told = taken("alibi", 2048)
    assert [section.title for section in found] == ["Effect on the logits by distance"]
    assert "Left out: bias of alibi: 2 × 2048 × 2048 entries" in " ".join(told)


def test_long_texts_take_little_memory() -> None:
    [picture] = sections("alibi", 2**16, "decay", "model.n_heads=1", "model.d_model=8")
    np.testing.assert_allclose(picture.panels[0].lines[0].values[[1, 65535]], [-(2.0**-8), -65535 * 2.0**-8])
    with pytest.raises(ConfigError, match="curves are drawn up to length 16384"):
        sections("alibi", 2**15, "decay", "model.d_model=1024")


# ---- drawing


def figure(found: list[Any], title: str = "A title", *said: str) -> Figure:
    with drawing(Path("unused.png")):
        return figures.figure_of(found, title, said)


def texts(drawn: Figure) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in drawn.findobj(Text) if text.get_text()]


def test_every_axis_and_bar_is_named() -> None:
    drawn = figure(sections("alibi") + sections("sinusoidal") + sections("sliding_window"), "My title", "A note.")
    words = texts(drawn)
    for wanted in (
        "My title", "A note.", "head 0", "head 1", "key position", "query position", "nats", "dimension",
        "position id", "what is added to the embedding", "distance (characters)", "effect (nats)", "similarity",
        "seen", "hidden", "future",
    ):  # fmt: skip
        assert wanted in words, wanted


def test_characters_stand_along_an_axis_that_has_room() -> None:
    text = "a b\nc$"
    short = figure([Charts("Ids", "character", "position id", [Panel("", [Line("x", np.arange(6.0))], text)])])
    assert [label.get_text() for label in short.axes[0].get_xticklabels()] == ["a", "␣", "b", "↵", "c", "$"]
    long = figure([Charts("Ids", "character", "id", [Panel("", [Line("x", np.arange(60.0))], text * 10)])])
    assert "␣" not in texts(long)


def test_colours_are_centred_at_zero_where_both_signs_occur() -> None:
    assert palette(np.array([-1.0, 3.0, math.nan]))[:2] == (-3, 3)
    assert palette(np.array([-1.0, 3.0]))[2].name == "RdBu_r"
    assert palette(np.array([-4.0, 0.0]))[2].name == "viridis"
    assert palette(np.array([-4.0, 0.0]))[:2] == (-4, 0)
    assert palette(np.zeros(3))[:2] == palette(np.full(3, math.nan))[:2] == (-1, 1)


def test_rounding_is_not_magnified() -> None:
    flat = figure([Charts("A", "x", "y", [Panel("", [Line("x", 3 + 1e-14 * np.arange(5.0))])])])
    low, high = flat.axes[0].get_ylim()
    assert (low, high) == pytest.approx((2, 4))


@pytest.mark.parametrize(("least", "ticks"), [(0.011, ["0.02", "0.03"]), (0.0007, ["0.001", "0.01"])])
def test_a_logarithmic_axis_has_plain_numbers(least: float, ticks: list[str]) -> None:
    [axes] = figure(
        [Charts("A", "x", "y", [Panel("", [Line("x", np.array([least, 0.03]))])], scale="logarithmic")]
    ).axes
    low, high = axes.get_ylim()
    axis = axes.yaxis
    named = [*zip(axis.get_minorticklocs(), axis.get_minorticklabels(), strict=True)]
    named += zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    assert sorted(text.get_text() for at, text in named if low <= at <= high and text.get_text()) == ticks


def test_curves_keep_their_width_beside_long_names() -> None:
    names = ["learned_fourier, gamma=0.25, hidden=32", "a-run-with-a-long-name-03d459c552-s1337, trained"]
    chart = Charts("Similarity", "distance", "y", [Panel("", [Line(name, np.arange(4.0)) for name in names])])
    drawn = figure([Masks("Mask", "key", "query", [[Heat("all heads", np.eye(4))]]), chart])
    drawn.draw_without_rendering()
    [mask, curves] = [axes.get_window_extent() for axes in drawn.axes]
    assert mask.x1 < curves.x0, "side by side"
    assert curves.width / drawn.dpi > 0.9 * chart.panel[0]


NAMES = ["a $b$ [red]_x^2 \\frac", "日本 \ud800 \x07"]


def drawing_of(name: str) -> list[Any]:
    square = np.where(np.tri(4) > 0, 1.0, np.nan)
    return [
        Maps("Bias", "key", "query", "nats", [[Heat(name, -square)]], [0]),
        Masks("Mask", "key", "query", [[Heat(name, square)]]),
        Charts("Decay", "distance", "nats", [Panel(name, [Line(name, np.arange(4.0)), Line("b", np.ones(4))])]),
    ]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".PNG"])
@pytest.mark.parametrize("name", NAMES)
def test_equal_pictures_are_equal_files_and_names_are_as_given(suffix: str, name: str, tmp_path: Path) -> None:
    for stem in ("a", "b"):
        figures.draw(drawing_of(name), tmp_path / f"{stem}{suffix}", f"Title {name}", [f"Note {name}"])
    first, second = (tmp_path / f"{stem}{suffix}" for stem in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [first.name, second.name]
    if suffix == ".svg":
        found = first.read_text(encoding="utf-8")
        assert found.startswith("<?xml")
        as_given = name if name.isprintable() else "日本 \\ud800 \\x07"
        for wanted in (f"Note {as_given}", f"Title {as_given}", "Decay", "distance", "seen"):
            assert wanted in found, wanted
        assert "<dc:date>" not in found


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_layout_that_differs_in_its_last_digits_is_the_same_picture(suffix: str, tmp_path: Path) -> None:
    drawn = figure(drawing_of("a"))
    save(drawn, tmp_path / f"a{suffix}")
    places = [value for axes in drawn.findobj(Axes) for value in axes.get_position(original=True).bounds]
    places += [value for part in drawn.findobj(SubFigure) for value in part.bbox_relative.extents]
    assert len(places) > 20
    assert places == pytest.approx([round(value, 9) for value in places], rel=0, abs=1e-15)


# ---- the command


def test_plot_writes_where_it_is_told_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = pe("plot", "ALiBi", "--length", 6, "--out", "new/folder/a.svg")
    assert (done.code, done.out, done.err) == (0, "new/folder/a.svg\n", "")
    assert ">query position<" in (tmp_path / "new/folder/a.svg").read_text(encoding="utf-8")
    told = pe("plot", "rope", "sinusoidal", "--length", 6, "--kind", "similarity", "--json").json
    assert told["pictures"] == ["results/plots/rope-sinusoidal-similarity.png"]
    assert told["parts"] == ["Similarity by distance"]
    assert told["notes"][0] == "6 characters; d_model 128, heads 4, layers 4, training length 128."
    assert (tmp_path / told["pictures"][0]).read_bytes().startswith(b"\x89PNG")


def test_plot_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "dir.png").mkdir()
    refused(pe("plot", "rope", "--out", "a.pdf"), "--out a.pdf", ".png or .svg")
    refused(pe("plot", "rope", "--out", "file/a.png"), str(tmp_path / "file"), "not a directory")
    refused(pe("plot", "rope", "--length", 4, "--out", "dir.png"), str(tmp_path / "dir.png"), "directory is in the way")
    refused(pe("plot", "ropee"), "'ropee'", "'rope'?", "nor a run")
    refused(pe("plot", "none"), "none has no picture")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dir.png", "file"]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run with a learned table, in a folder whose name is no markup."""
    folder = tmp_path_factory.mktemp("plain") / "[b] $x$"
    assert pe(*training(folder, encoding="learned", training__eval_every=10)).code == 0
    return only_run(folder)


def test_plot_of_a_run_draws_its_curves(learned: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    told = pe("plot", learned, "--out", path, "--json").json
    assert told["parts"] == ["Loss while training"]
    assert pe("extrapolate", learned, "--lengths", "16,32", "--set", "evaluation.windows=4", "--threads", 1).code == 0
    told = pe("plot", learned, "--out", path, "--json").json
    assert told["parts"] == ["Loss while training", "Loss beyond the training length"]
    found = path.read_text(encoding="utf-8")
    for words in (learned.name, "while training", "step", "validation", "loss (nats per character)", "same_targets"):
        assert words in found, words
    refused(pe("plot", learned, "--length", 3), "--length", "--kind")
    refused(pe("plot", learned, "--kind", "bias"), "has no picture of bias; it has: ids, table")
    refused(pe("plot", learned, "--kind", "table", "--set", "seed=3"), "--set seed=3", "as it was trained")


def test_plot_of_a_trained_table_beside_a_fresh_one(learned: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    with pytest.MonkeyPatch.context() as patch:
        found: list[Any] = []
        patch.setattr(figures, "draw", lambda *given: found.append(given))
        picture: Picture = plotting.picture([str(learned), "learned"], Options(16, None, None, None, ["table"], []))
        picture.draw(tmp_path / "a.png")
    [[trained, fresh]] = found[0][0][0].rows
    weights = load_file(learned / "model.safetensors")
    np.testing.assert_array_equal(trained.values, weights["encoding.table"].double().numpy())
    assert trained.title == f"{learned.name}, trained"
    assert fresh.title == "learned, before training"
    assert fresh.values.shape == (16, 16)
    assert 0 < np.abs(trained.values - fresh.values).max() < 1, "the table that this run began with"


def test_plot_of_a_damaged_or_unfinished_run(learned: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    info = json.loads((learned / "run.json").read_bytes())
    (copy / "run.json").write_text(json.dumps(info))
    refused(pe("plot", copy, "--out", tmp_path / "a.png"), "config.yaml")
    for name in ("config.yaml", "model.safetensors"):
        (copy / name).write_bytes((learned / name).read_bytes())
    refused(pe("plot", copy, "--out", tmp_path / "a.png"), "has no training.csv yet")
    (copy / "training.csv").write_text("step,los\n1,2\n")
    refused(pe("plot", copy, "--out", tmp_path / "a.png"), "training.csv", "is damaged", "loss")
    (copy / "training.csv").write_text("step,loss,learning_rate,chars_per_second\n1,2,3,4\n2,1.5x,3,4\n")
    refused(pe("plot", copy, "--out", tmp_path / "a.png"), "training.csv", "line 3: loss: must be a number, not '1.5x'")
    assert not (tmp_path / "a.png").exists()


def test_a_run_that_is_mistyped(learned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ropee-base-1000-s1", "learned-0123456789-s1"):
        folder = tmp_path / "results" / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_bytes((learned / "run.json").read_bytes())
    for command in ("plot", "properties"):
        refused(pe(command, "learned-0123456780-s1"), "did you mean the run 'learned-0123456789-s1'?")
        refused(pe(command, "ropee"), "did you mean 'rope' or the run 'ropee-base-1000-s1'?")
        refused(pe(command, "sinusoidl"), "did you mean 'sinusoidal'?")


def test_a_picture_that_is_not_written_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(pe("plot", "rope", "--length", 4, "--out", f"new/{'x' * 300}/a.png"), "cannot make")
    refused(pe("plot", "rope", "--length", 4, "--out", f"new/folder/{'x' * 300}.png"), "the name is too long")
    assert list(tmp_path.iterdir()) == []
    refused(pe("train", "--out", f"new/{'x' * 300}", "--set", "training.steps=0"), "the name is too long")
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_few_numbers_is_drawn(tmp_path: Path) -> None:
    training_rows = pd.DataFrame({"step": [1], "loss": [math.nan]})
    plots.plot_run(training_rows, None, None, tmp_path / "a.png", "a $name$")
    assert (tmp_path / "a.png").exists()


def test_modules_agree() -> None:
    assert list(pictures.SECTIONS) == list(kinds.HOOKS) == list(kinds.MAIN)
    assert distance_charts.MOST_HEADS == kinds.MOST_HEADS
