"""How the package is built, read off its syntax trees: what may import what, and what may stand where."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pe_cli import samplers, strategies, tasks
from pe_cli.encodings import registry
from pe_cli.encodings.base import PositionEncoding

TESTS = Path(__file__).parent
PACKAGE = Path(sys.modules["pe_cli"].__path__[0])
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
ENCODINGS = [f"pe_cli.encodings.{name}" for name in registry.names()]
TASKS = [f"pe_cli.tasks.{name}" for name in tasks.names()]
STRATEGIES = [f"pe_cli.strategies.{name}" for name in strategies.names()]
SAMPLERS = [f"pe_cli.samplers.{name}" for name in samplers.names()]

# Each module imports only what stands above it, and no two in a line import each other.
ORDER = """
    pe_cli  errors  statistics  seeds  protocols  tables
    schema  files  naming  yaml_source  streams  built_in  devices  versions  progress  documents  inspection_tables
    reports
    answer_tables  curves
    drawing  property_tables  named  console  locks  signals  checkpoint  stated  corpus
    tasks.base
    tasks.registry
    TASKS
    tasks
    instances
    runs  plots  summary  variations
    panels  attention_plots  position_plots  benchmark_plots  benchmark_tables
    heatmaps  charts
    figures
    encodings  encodings.views
    encodings.base  encodings._sparse  encodings._relative  encodings._tables  encodings._distance  encodings._structure
    encodings.registry  encodings._composition  encodings._rotary
    ENCODINGS
    samplers.base  strategies.registry  strategies._ids  attention
    strategies._entries  strategies._extended  strategies._masks  strategies._frequencies  strategies._distances
    samplers.registry  STRATEGIES
    SAMPLERS  strategies
    samplers
    model
    experiment  scoring
    homes  sources  lengths
    config  options  catalogue
    muon
    optimizers  trained  compiling
    stepping
    training  evaluation  sampling  inspection
    task_evaluation  text_evaluation  evaluated
    distances  subjects  attended  comparison  probing
    extrapolation
    single
    execution  collection  efficiency  inequalities
    properties  peaks
    benchmark
    side_by_side  kinds
    maps  distance_charts
    pictures
    plotting
    commands  listing
    describing
    claims  benching
    verdicts
    claim_tables
    comparing  cli_encodings
    claiming
    cli
    __main__
"""

MODEL = {"attention", "encodings", "strategies", "samplers", "model", "training", "optimizers", "trained", "evaluation"}

# A name of an encoding or a strategy is a fact of its own file. Where another file says it all the same, and why:
NAMES_ELSEWHERE = {
    "experiment": ({"rope", "none", "interpolate", "repeat_last"}, "the defaults of a config"),
    "collection": ({"none"}, "a run without a strategy is always drawn"),
    "comparison": ({"none"}, "the strategy of a baseline that is named without one"),
    "encodings.anchored": ({"sinusoidal"}, "the default inner encoding"),
    "encodings.alibi": ({"fixed", "learned"}, "the values of an option"),
    "encodings.bipe": ({"sinusoidal", "rope"}, "the default parts of a composition"),
    "encodings.layered": ({"rope", "sliding_window", "none"}, "the default parts of a composition"),
    "encodings.mix": ({"learned", "t5"}, "the default parts of a composition"),
    "encodings.dape": ({"alibi"}, "the default inner encoding"),
    "encodings.dape_v2": ({"alibi"}, "the default inner encoding"),
    "encodings.dilated": ({"rope"}, "the default inner encoding"),
    "encodings.fixed": ({"rope"}, "the default inner encoding"),
    "encodings.sinks": ({"rope"}, "the default inner encoding"),
    "encodings.sliding_window": ({"rope"}, "the default inner encoding"),
    "encodings.strided": ({"rope"}, "the default inner encoding"),
    "encodings.registry": ({"none"}, "what the empty value of YAML means"),
    "encodings.base": ({"none"}, "the name of a family"),
    "stated": ({"none"}, "what the empty value of YAML means"),
    "schema": ({"none"}, "how a person writes the empty value"),
    "catalogue": ({"none"}, "how the empty value is called for a person"),
    "scoring": ({"none"}, "an argument of torch"),
    "drawing": ({"none"}, "an argument of matplotlib"),
    "plots": ({"none"}, "an argument of matplotlib"),
    "cli_encodings": ({"none"}, "the default strategy"),
    "plotting": ({"none"}, "the default strategy"),
    "side_by_side": ({"none"}, "the default strategy"),
    "inspection": ({"none"}, "the default strategy"),
    "evaluation": ({"none", "window"}, "no strategy is what others are measured against; a column of windows.csv"),
    "summary": ({"none", "window"}, "no strategy is what others are measured against; a column of windows.csv"),
    "encodings.pope": ({"zero"}, "the value of an option"),
    "heatmaps": ({"nearest"}, "an argument of matplotlib"),
    "trained": ({"log_n"}, "a key of the model"),
    "answer_tables": ({"mean"}, "an argument of pandas"),
    "inequalities": ({"none"}, "no strategy is what a run alone means"),
    "curves": ({"none"}, "no strategy is what strategies are measured against"),
    "reports": ({"none"}, "no strategy is what strategies are measured against"),
    "strategies.registry": ({"none"}, "it is listed first"),
}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


@cache
def imports(module: str) -> frozenset[str]:
    """Full names of all modules that a module imports anywhere, those of other projects too."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: imports are absolute"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in names if name in FILES} or {str(node.module)}
    return frozenset(found)


def own(module: str) -> set[str]:
    """The modules of the package that a module imports; not the package that it lies in."""
    return {name for name in imports(module) if name in FILES and not module.startswith(f"{name}.")}


def reached(module: str) -> set[str]:
    """A module with all of the package that it imports, directly or not."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += own(name)
    return found


def levels() -> list[list[str]]:
    groups = {"ENCODINGS": ENCODINGS, "STRATEGIES": STRATEGIES, "SAMPLERS": SAMPLERS, "TASKS": TASKS}
    groups["pe_cli"] = ["pe_cli"]
    return [
        [module for name in line.split() for module in groups.get(name, [f"pe_cli.{name}"])]
        for line in ORDER.strip().splitlines()
    ]


every_module = pytest.mark.parametrize("module", FILES)


def test_imports_point_one_way() -> None:
    placed = [module for level in levels() for module in level]
    assert sorted(placed) == sorted(FILES), "every module has its place in ORDER, once"
    level_of = {module: number for number, level in enumerate(levels()) for module in level}
    for module in FILES:
        for name in own(module):
            assert level_of[name] < level_of[module] or name == "pe_cli.errors", f"{module} imports {name}"


@pytest.mark.parametrize(
    "module",
    [
        "drawing", "plots", "attention_plots", "position_plots", "panels", "heatmaps", "charts", "figures",
        "benchmark_plots", "benchmark_tables", "documents", "reports", "curves", "console", "progress", "tables",
        "inspection_tables",
    ],
)  # fmt: skip
def test_what_shows_results_knows_no_model(module: str) -> None:
    for name in reached(f"pe_cli.{module}"):
        assert name.split(".")[1] not in MODEL, f"{module} comes to {name}"
        assert "torch" not in {found.split(".")[0] for found in imports(name)}, f"{module} comes to torch in {name}"


def test_only_commands_report() -> None:
    users = {module.removeprefix("pe_cli.") for module in FILES if "pe_cli.console" in imports(module)}
    assert users == {"cli", "commands", "comparing", "claiming", "describing", "listing", "benching"}


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("rich", {"console", "progress", "tables"}),
        (
            "matplotlib",
            {
                "drawing",
                "plots",
                "attention_plots",
                "position_plots",
                "benchmark_plots",
                "panels",
                "heatmaps",
                "charts",
                "figures",
            },
        ),
        ("typer", {"cli", "cli_encodings", "options"}),
        ("yaml", {"yaml_source"}),
        ("safetensors", {"checkpoint"}),
        ("pickle", set()),
    ],
)
def test_a_library_has_its_place(library: str, allowed: set[str]) -> None:
    users = {m.removeprefix("pe_cli.") for m in FILES if library in {name.split(".")[0] for name in imports(m)}}
    assert users == allowed


@pytest.mark.parametrize("module", ENCODINGS)
def test_an_encoding_knows_no_other(module: str) -> None:
    parts = {
        "views",
        "base",
        "registry",
        "_composition",
        "_rotary",
        "_sparse",
        "_relative",
        "_tables",
        "_distance",
        "_structure",
    }
    assert own(module) <= {f"pe_cli.encodings.{part}" for part in parts} | {"pe_cli.errors"}


@pytest.mark.parametrize("module", STRATEGIES)
def test_a_strategy_knows_no_encoding(module: str) -> None:
    parts = {"encodings": {"views", "base", "_composition", "_rotary"}}
    parts["strategies"] = {"registry", "_ids", "_extended", "_masks", "_frequencies", "_distances"}
    allowed = {f"pe_cli.{folder}.{part}" for folder, found in parts.items() for part in found}
    assert own(module) <= allowed | {"pe_cli.errors"}


@pytest.mark.parametrize("module", SAMPLERS)
def test_a_sampler_knows_no_encoding(module: str) -> None:
    allowed = {f"pe_cli.{part}" for part in ("encodings.base", "encodings.views", "errors", "schema", "seeds")}
    assert own(module) <= allowed | {"pe_cli.samplers.base", "pe_cli.samplers.registry"}


def names_said(module: str) -> Iterator[str]:
    """Names of encodings and strategies that are written as a text, but in the file that is called so."""
    names = {*registry.names(), *strategies.names()}
    if module in ENCODINGS or module in STRATEGIES:
        names.discard(module.rpartition(".")[-1])
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Constant) and node.value in names:
            yield node.value


@every_module
def test_names_are_said_in_their_own_file_only(module: str) -> None:
    said, (allowed, _) = set(names_said(module)), NAMES_ELSEWHERE.get(module.removeprefix("pe_cli."), (set(), ""))
    assert said == allowed, "an exception is listed with its reason, and only where it is one"


def calls(module: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree(module)) if isinstance(node, ast.Call))


@every_module
def test_what_no_file_has(module: str) -> None:
    for call in calls(module):
        called = call.func.id if isinstance(call.func, ast.Name) else ""
        assert called not in ("print", "eval", "exec"), f"{module}:{call.lineno}"
        assert called != "getattr" or len(call.args) == 2, f"{module}:{call.lineno}: getattr with a default"
    for node in ast.walk(tree(module)):
        assert not isinstance(node, ast.ExceptHandler) or node.type is not None, f"{module}:{node.lineno}: bare except"


@every_module
def test_a_process_is_set_up_for_computing_in_one_place(module: str) -> None:
    """Whoever sets the number of threads keeps memory, too."""
    named = {call.func.attr for call in calls(module) if isinstance(call.func, ast.Attribute)}
    assert ("set_num_threads" in named) == (module == "pe_cli.devices")


@every_module
def test_a_file_is_small_and_says_what_it_is(module: str) -> None:
    lines = FILES[module].read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 300, "split it by subject, or delete something"
    assert not lines or ast.get_docstring(tree(module))
    stem = FILES[module].stem.strip("_").removesuffix("s")
    assert stem not in ("util", "utilitie", "helper", "common", "misc", "tool")


@pytest.mark.parametrize("module", TASKS)
def test_a_task_knows_no_other(module: str) -> None:
    assert own(module) <= {"pe_cli.tasks.base", "pe_cli.tasks.registry", "pe_cli.errors"}


@pytest.mark.parametrize("module", [*ENCODINGS, *STRATEGIES, *SAMPLERS, *TASKS])
def test_what_has_a_name_is_a_file_with_a_test(module: str) -> None:
    _, folder, name = module.split(".")
    assert module in FILES
    assert (TESTS / folder / f"test_{name}.py").is_file()


def below(cls: type) -> Iterator[tuple[int, type]]:
    """The subclasses in the package, with their depth."""
    subclasses: list[type] = cls.__subclasses__()
    for subclass in subclasses:
        if subclass.__module__.startswith("pe_cli."):
            yield 1, subclass
            yield from ((depth + 1, deeper) for depth, deeper in below(subclass))


def test_classes_lie_at_most_two_below_an_encoding() -> None:
    found = list(below(PositionEncoding))
    assert {registry.encoding_class(name) for name in registry.names()} <= {cls for _, cls in found}
    assert {cls.__name__: depth for depth, cls in found if depth > 2} == {}
