"""The measured properties: facts about known encodings, and encodings made up so that every number is known."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import only_run, pe, training
from refusals import refuses
from small_runs import refused
from torch import Tensor, nn

from pe_cli import describing, efficiency, properties, property_tables
from pe_cli.config import resolve
from pe_cli.encodings import registry
from pe_cli.encodings.base import EncodingOptions, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import ConfigError, PositionRangeError
from pe_cli.inspection import SAMPLE_TEXT
from pe_cli.model import Layer, Transformer
from pe_cli.probing import LONGEST, Probe, fresh_probe
from pe_cli.properties import PARTS, PROPERTIES, explanations, measure

LENGTH = 32
SMALL = {"model.d_model": "32", "model.n_heads": "4", "model.n_layers": "4", "training.length": str(LENGTH)}
SIZES = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
ALPHABET = "".join(sorted(set(SAMPLE_TEXT)))
SPEC = ModelSpec(16, 2, 2, LENGTH, ALPHABET, LENGTH)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small lose more by sharing them out than they take."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def found(encoding: str, **changes: Any) -> dict[str, dict[str, Any]]:
    """What is measured of an encoding with fresh weights, without times."""
    sets = {key.replace("__", "."): str(value) for key, value in changes.items()}
    experiment = resolve(None, {"encoding": encoding, **SMALL, **sets}).experiment
    return measure(fresh_probe(experiment), costs=False)


def value(encoding: str, name: str, **changes: Any) -> float:
    number = found(encoding, **changes)[name]["value"]
    assert number is not None
    return float(number)


# --- every encoding


@pytest.mark.parametrize("name", registry.names())
def test_every_encoding_has_values_in_range_or_reasons(name: str) -> None:
    ranges = {
        "uniqueness": (0, 1),
        "continuity": (-1, 1),
        "scalability": (1, 32),
        "relative_information": (-1, 1),
        "long_range_decay": (-1, 1),
    }
    probe = fresh_probe(resolve(None, {"encoding": name, **SMALL}).experiment)
    measured = measure(probe, costs=False)
    assert json.loads(json.dumps(measured, allow_nan=False)) == measured
    assert list(measured) == list(PROPERTIES)
    for key, one in measured.items():
        assert (one["value"] is None) == bool(one["reason"]), f"{key} has a value or a reason"
        if one["value"] is not None:
            low, high = ranges[key]
            assert low - 1e-9 <= one["value"] <= high + 1e-9
    assert measured["efficiency"]["parameters"] == sum(p.numel() for p in probe.model.encoding.parameters())


@pytest.mark.parametrize("name", registry.names())
def test_what_ids_are_for_agrees_with_what_an_encoding_says_of_itself(name: str) -> None:
    """After every parameter has moved a little, as a table that starts at zero shows nothing; half of the window
    reaches the first brackets and digits of the sample text."""
    probe = fresh_probe(resolve(None, {"encoding": name, **SMALL, "training.length": "96"}).experiment)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in probe.model.encoding.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    relative = properties.relative_information(probe)["value"]
    if probe.model.encoding.sees is Sees.ABSOLUTE:
        assert relative < 0.9999
    else:
        assert relative == pytest.approx(1, abs=1e-4)


# --- known encodings


def test_none_tells_nothing_apart() -> None:
    measured = found("none")
    assert (measured["uniqueness"]["value"], measured["uniqueness"]["pairs_alike"]) == (0, 1)
    assert measured["relative_information"]["value"] == 1
    assert measured["scalability"] == {"value": 32, "reason": None, "scores_in_range": 1.0, "limit": None}
    assert measured["continuity"] == {"value": None, "reason": "all positions are alike"}
    assert measured["long_range_decay"]["value"] is None
    assert "same at all distances" in measured["long_range_decay"]["reason"]


def test_relative_information_of_known_encodings() -> None:
    for name in ("rope", "alibi", "t5", "shaw", "fox", "stick_breaking", "sliding_window"):
        assert value(name, "relative_information") == pytest.approx(1, abs=1e-4), name
    assert abs(value("learned", "relative_information")) < 0.3  # other rows: nothing in common
    assert value("sinusoidal", "relative_information") < 0.8


def test_decay_of_known_encodings() -> None:
    alibi = found("alibi")["long_range_decay"]
    assert (alibi["value"], alibi["rank_correlation"]) == (pytest.approx(1), pytest.approx(-1))
    assert alibi["near_against_far"] > 0.3
    rope = found("rope", training__length=128, model__d_model=128)["long_range_decay"]
    assert rope["value"] > 0.4
    assert rope["near_against_far"] > 0.1
    assert abs(value("learned", "long_range_decay", training__length=128)) < 0.4
    assert value("sliding_window", "long_range_decay") > 0.5


def test_only_a_table_ends() -> None:
    learned = found("learned")["scalability"]
    assert (learned["value"], learned["scores_in_range"]) == (1, None)
    assert f"{LENGTH} rows" in learned["limit"]
    for name in ("none", "rope", "alibi", "t5", "sinusoidal", "strided", "fox"):
        assert value(name, "scalability") == 32
    assert found("t5")["scalability"]["scores_in_range"] > 0.5
    assert found("alibi")["scalability"]["scores_in_range"] < 0.1  # one key in 32 is as near as those within L


def test_far_keys_of_one_bucket_or_outside_a_window_are_alike() -> None:
    t5 = found("t5", encoding__buckets=8, encoding__max_distance=16)["uniqueness"]
    far = LENGTH - 14  # 14 of the edges of 8 buckets is the first distance of the last one
    assert t5["value"] == 0
    assert t5["pairs_alike"] > far * (far - 1) / (LENGTH * (LENGTH - 1))
    window = found("sliding_window", encoding__window=8, encoding__encoding="alibi")["uniqueness"]
    assert window["pairs_alike"] == pytest.approx(24 * 23 / (LENGTH * (LENGTH - 1)))
    assert found("learned")["uniqueness"]["pairs_alike"] == 0


def test_a_smooth_table_is_continuous_and_a_random_one_is_not() -> None:
    assert value("sinusoidal", "continuity", training__length=128) > 0.6
    assert abs(value("learned", "continuity", training__length=128)) < 0.1


def test_a_longest_length() -> None:
    with pytest.raises(ConfigError, match=f"training.length {LONGEST + 1}: .* at most {LONGEST}"):
        found("none", training__length=LONGEST + 1)


@pytest.mark.parametrize("length", [2, 3])
def test_the_shortest_windows(length: int) -> None:
    for name in ("none", "rope", "learned", "stick_breaking", "bipe"):
        json.dumps(found(name, training__length=length), allow_nan=False)


# --- made up: every number is known


def made_up(encoding: PositionEncoding) -> dict[str, dict[str, Any]]:
    return measure(probe_of(encoding), costs=False)


def probe_of(encoding: PositionEncoding) -> Probe:
    """Queries and keys are zero, so that nothing but the bias makes a difference."""
    torch.manual_seed(0)
    model = Transformer(SPEC, encoding)
    with torch.no_grad():
        for layer in model.blocks:
            assert isinstance(layer, Layer)
            layer.query.weight.zero_()
    return Probe(model)


class Known(PositionEncoding):
    """A bias by distance and the id of the key."""

    name = "known"
    sees = Sees.ABSOLUTE

    def __init__(self) -> None:
        super().__init__(EncodingOptions(), SPEC)

    def term(self, distance: Tensor, key: Tensor) -> Tensor:
        raise NotImplementedError

    def bias(self, block: Block) -> Tensor:
        key = block.layer.positions.ids[:, None, block.keys].expand(block.distance.shape)
        return self.term(block.distance, key)[:, None]


class Falling(Known):
    """Weights of 1 − n / L: equally spaced."""

    def term(self, distance: Tensor, key: Tensor) -> Tensor:
        return (1 - distance.clamp(0, LENGTH - 0.5) / LENGTH).log()


class Rising(Known):
    def term(self, distance: Tensor, key: Tensor) -> Tensor:
        return distance / LENGTH


class Alternating(Known):
    """Even keys have twice the weight of odd ones."""

    def term(self, distance: Tensor, key: Tensor) -> Tensor:
        return math.log(2) * (key % 2 == 0)


class EndsInInfinity(Known):
    """Not a number from twice the training length on."""

    def term(self, distance: Tensor, key: Tensor) -> Tensor:
        return torch.where(key < 2 * LENGTH, 0.0, torch.nan)


class Limited(Known):
    def term(self, distance: Tensor, key: Tensor) -> Tensor:
        if float(key.max()) > 4 * LENGTH:
            raise PositionRangeError("no more ids")
        return -distance


def test_equally_spaced_weights() -> None:
    measured = made_up(Falling())
    # distances |p − q| / L: the smallest is 1 of a mean of (L + 1) / 3, and so is every step
    assert measured["uniqueness"]["value"] == pytest.approx(3 / (LENGTH + 1), rel=1e-4)
    assert measured["continuity"]["value"] == pytest.approx(1 - 3 / (LENGTH + 1), rel=1e-4)
    assert measured["long_range_decay"]["rank_correlation"] == pytest.approx(-1)
    quarter = LENGTH // 4
    near, far = (sum(1 - n / LENGTH for n in r) for r in (range(quarter), range(LENGTH - quarter, LENGTH)))
    assert measured["long_range_decay"]["near_against_far"] == pytest.approx((near - far) / (near + far), rel=1e-4)
    assert measured["relative_information"]["value"] == pytest.approx(1, abs=1e-5)


def test_rising_weights() -> None:
    measured = made_up(Rising())
    assert measured["long_range_decay"]["value"] == pytest.approx(-1)
    # at 32 L the distances 0 … L − 1 are one in 32
    assert measured["scalability"]["scores_in_range"] == pytest.approx(1 / 32)


def test_alternating_weights() -> None:
    measured = made_up(Alternating())
    alike = 2 * (LENGTH // 2) * (LENGTH // 2 - 1) / (LENGTH * (LENGTH - 1))
    assert measured["uniqueness"] == {"value": 0.0, "reason": None, "pairs_alike": pytest.approx(alike)}
    assert measured["continuity"]["value"] == pytest.approx(1 - 1 / (1 - alike), rel=1e-5)  # below 0
    # of the shifts 6, 11 and 16 one is odd and turns every sign: (1 + 1 − 1) / 3
    assert measured["relative_information"]["value"] == pytest.approx(1 / 3, rel=1e-4)


def test_how_far_it_goes() -> None:
    infinite = made_up(EndsInInfinity())["scalability"]
    assert (infinite["value"], infinite["scores_in_range"]) == (2, 1)
    assert "not finite" in infinite["limit"]
    limited = made_up(Limited())["scalability"]
    assert (limited["value"], limited["limit"]) == (4, "no more ids")


def test_what_is_undefined_within_the_training_length_has_a_reason() -> None:
    class Never(Known):
        def term(self, distance: Tensor, key: Tensor) -> Tensor:
            return torch.full_like(distance, torch.nan)

    measured = made_up(Never())
    assert measured["scalability"]["value"] is None
    for name in ("uniqueness", "continuity", "relative_information", "long_range_decay"):
        assert measured[name]["value"] is None
        assert "not finite" in measured[name]["reason"]


class Rows(PositionEncoding):
    """A table with a row for each of L ids; `twin` is the place of a second copy of row 3."""

    name = "rows"
    sees = Sees.ABSOLUTE

    def __init__(self, twin: int | None) -> None:
        super().__init__(EncodingOptions(), SPEC)
        rows = torch.randn(32 * LENGTH, SPEC.d_model, generator=torch.Generator().manual_seed(0))
        if twin is not None:
            rows[twin] = rows[3]
        self.rows = nn.Parameter(rows)

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        return x + self.rows[positions.ids.long()]


def test_two_equal_rows() -> None:
    def measured(twin: int | None) -> dict[str, Any]:
        torch.manual_seed(0)
        spec = ModelSpec(16, 2, 1, LENGTH, ALPHABET, LENGTH)
        return measure(Probe(Transformer(spec, Rows(twin))), costs=False)["uniqueness"]

    assert measured(None)["value"] > 0.01
    twins = measured(20)
    assert twins["value"] == 0
    assert twins["pairs_alike"] == pytest.approx(2 / (LENGTH * (LENGTH - 1)))


# --- what it costs


class Wasteful(PositionEncoding):
    """Holds `kilobytes` while it rotates."""

    name = "wasteful"

    def __init__(self, kilobytes: int) -> None:
        super().__init__(EncodingOptions(), SPEC)
        self.kilobytes = kilobytes

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        held = torch.zeros(self.kilobytes, 256)
        return layer.q + held.sum(), layer.k


def test_memory_counts_what_is_alive_at_once() -> None:
    alive = efficiency.Alive([torch.zeros(5)])
    with torch.no_grad(), alive:
        first = torch.zeros(1000)
        del first
        second = torch.zeros(500)
        view = second[:10]
        del second
        third = view + 1
    assert alive.most == 4000
    assert alive.bytes == 4 * (500 + 10)
    del view, third
    assert alive.bytes == 0


def test_memory_against_none() -> None:
    def memory(encoding: PositionEncoding) -> int:
        probe = probe_of(encoding)
        return efficiency.evaluation_memory(probe.model, probe.tokens(256), 16)

    base = memory(Wasteful(0))
    assert 0.9 * base < memory(PositionEncoding(EncodingOptions(), SPEC)) < 1.1 * base
    more = memory(Wasteful(10_000)) - base
    assert 0.9 * 10_000 * 1024 < more < 1.01 * 10_000 * 1024


def test_times_come_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The median of ratios, without the first; a slow moment falls on both of a pair."""
    probe = probe_of(Falling())
    times = iter([90.0, 1.0, *[1.0, 1.0] * 3, 20.0, 10.0, *[9.0, 3.0] * 3])
    steps = []

    def seconds(work: partial[None]) -> float:
        steps.append(work.args[0])
        return next(times)

    monkeypatch.setattr(efficiency, "seconds", seconds)
    plain = probe.model.using(PositionEncoding(EncodingOptions(), SPEC))
    assert efficiency.step_time_ratio(probe, plain) == 2
    assert steps == [probe.model, plain] * (efficiency.ROUNDS + 1)


def test_efficiency_of_an_encoding() -> None:
    probe = fresh_probe(resolve(None, {"encoding": "learned", **SMALL}).experiment)
    before = [parameter.clone() for parameter in probe.model.parameters()]
    costs = efficiency.efficiency(probe)
    assert costs["parameters"] == LENGTH * 32
    assert costs["value"] * costs["training_time"] == pytest.approx(1)
    assert 0.2 < costs["training_time"] < 5
    assert costs["evaluation_memory"] == pytest.approx(1, abs=0.5)
    for parameter, old in zip(probe.model.parameters(), before, strict=True):
        assert torch.equal(parameter, old)
        assert parameter.grad is None


# --- the command


def test_a_table() -> None:
    done = pe("properties", "alibi", "None", "--fast", "--threads", 1, *SIZES)
    assert done.code == 0
    title, _, _, alibi, none, *notes = done.out.splitlines()
    assert title == f"Properties of position encodings at a training length L of {LENGTH}"
    assert alibi.split()[0] == "alibi"
    assert none.split() == ["none", "0.000", "-", "32", "1.000", "1.000", "-", "0", "-", "-"]
    assert "none: continuity: all positions are alike" in notes
    assert "all: efficiency: times and memory were not asked for" in notes
    assert "alibi: 0 of 6 (0%), uniqueness" in done.err


def test_blocks_of_one_encoding_are_told_apart() -> None:
    sinks = "{name: sinks, encoding: {name: rope, base: %s}}"
    asked = ("rope", "{name: rope, base: 7}", "alibi", sinks % 3, sinks % 4, "{name: sinks, encoding: t5}")
    told = ["rope, base=10000", "rope, base=7", "alibi", "sinks, encoding.base=3", "sinks, encoding.base=4"]
    arguments = ("properties", *asked, "--fast", "--quiet", *SIZES)
    lines = pe(*arguments).out.splitlines()[3:]
    assert all(line.startswith(f"{name}  ") for name, line in zip(told[:3], lines, strict=False)), lines
    rows = pe(*arguments, "--markdown").out
    assert all(f"| {name} |" in rows for name in told[:3])
    assert "| sinks, encoding.name=rope, encoding.base=3, encoding.layout=halves |" in rows
    assert "| sinks, encoding.name=t5, " in rows


def test_markdown() -> None:
    arguments = ("properties", "alibi", "--fast", "--quiet", "--markdown", *SIZES)
    plain, explained = pe(*arguments).out, pe(*arguments, "--explain").out
    table = f"## Properties of position encodings at a training length L of {LENGTH}\n\n| encoding | uniqueness |"
    assert plain.startswith(table)
    assert "###" not in plain
    assert explained.startswith(plain.rstrip())
    assert explained.count("\n### ") == len(PROPERTIES)
    assert all(parts["formula"].split("\\")[0][:40] in explained for parts in explanations().values())


def test_json(tmp_path: Path) -> None:
    asked = ("{name: alibi, max_exponent: 4}", "rope")
    rows = pe("properties", *asked, "--fast", "--json", "--quiet", "--explain", *SIZES).json
    first, second = rows["rows"]
    assert (first["encoding"], first["options"]["max_exponent"], first["run"]) == ("alibi", 4.0, None)
    assert (second["encoding"], second["train_length"]) == ("rope", LENGTH)
    assert list(first["properties"]) == list(rows["explanations"]) == list(PROPERTIES)
    assert list(pe("properties", "none", "--fast", "--json", *SIZES).json) == ["rows"]


def test_costs_are_measured_unless_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficiency, "step_time_ratio", lambda probe, plain: 1.25)
    done = pe("properties", "rope", "--json", "--quiet", *SIZES)
    costs = done.json["rows"][0]["properties"]["efficiency"]
    assert (costs["value"], costs["reason"], costs["training_time"]) == (0.8, None, 1.25)
    assert done.err == ""


def test_all_encodings_by_default_but_those_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describing, "measured", lambda subject, *others: {"encoding": subject.name})
    every = [row["encoding"] for row in pe("properties", "--json").json["rows"]]
    assert every == registry.names()
    some = pe("properties", "--json", "--set", "encoding.max_exponent=4")
    assert [row["encoding"] for row in some.json["rows"]] == ["alibi"]
    assert some.err.startswith("warning: left out: ")
    assert len(some.err.splitlines()) <= 15


def test_formulas_alone_measure_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, "measure", None)
    done = pe("properties", "--explain")
    assert (done.code, done.err) == (0, "")
    for name, parts in explanations().items():
        assert list(parts) == ["title", *PARTS], f"the docstring of {name} has all parts, in this order"
        assert f"{property_tables.words(name)}: {parts['title']}" in done.out
        assert all(f"  {part}: {parts[part]}" in done.out for part in PARTS)


def test_a_run_is_measured_as_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"training__steps": 3, "encoding": "learned", "training__precision": "float32"}
    assert pe(*training(tmp_path, **changes)).code == 0
    run = only_run(tmp_path)
    done = pe("properties", run, "learned", "--fast", "--json", "--quiet")
    trained, fresh = done.json["rows"]
    assert (trained["run"], trained["encoding"], trained["train_length"]) == (run.name, "learned", 16)
    assert fresh["run"] is None
    assert trained["properties"]["uniqueness"] != fresh["properties"]["uniqueness"]
    assert trained["properties"]["scalability"]["value"] == 1
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "runs").symlink_to(tmp_path / "runs")
    assert pe("properties", run.name, "--fast", "--json").json["rows"][0] == trained
    refused(pe("properties", run, "--set", "training.steps=3"), "--set training.steps", "as it was trained")
    (run / "model.safetensors").write_bytes(b"torn")
    refused(pe("properties", "rope", run, "--quiet"), "model.safetensors")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["ropee"], ["'ropee'", "did you mean 'rope'?", "nor a run"]),
        ([""], ["empty"]),
        (["rope", "{name: rope"], ["{name: rope"]),
        (["rope", "--set", "encoding.bsae=3"], ["encoding.bsae", "base"]),
        (["rope", "--set", "nonsense"], ["--set nonsense", "KEY=VALUE"]),
        (["rope", "--set", "encoding=alibi"], ["--set encoding", "arguments"]),
        (["rope", "--set", "training.length=99999"], ["99999", str(LONGEST)]),
        (["rope", "--set", "model.d_model=12", "--set", "model.n_heads=4"], ["3"]),
        (["folder/"], ["folder", "run.json"]),
        (["--set", "training.lenght=3"], ["training.lenght", "length"]),
    ],
)
def test_refusals(arguments: list[str], parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    refuses(tmp_path, ["properties", *arguments, "--fast", "--quiet"], *parts)
