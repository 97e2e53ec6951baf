"""`pe bench`: what encodings are measured, where the tables go, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pe_cli import benchmark, benchmark_plots, benchmark_tables, describing, files, options, sources
from pe_cli.benchmark import Measured, Setting
from pe_cli.commands import command_line, show
from pe_cli.config import resolve
from pe_cli.console import Console
from pe_cli.corpus import Corpus
from pe_cli.devices import choose_device, choose_precision, choose_threads, compute_with
from pe_cli.documents import document
from pe_cli.errors import ConfigError, called, nearest
from pe_cli.experiment import NAMED_BLOCKS, EvaluationConfig
from pe_cli.stated import printable
from pe_cli.subjects import Subject
from pe_cli.versions import machine, versions

NAME = "bench"
FILES = ("bench.csv", "bench.md", "bench.png")
TITLE = "Speed and memory of position encodings"
OF_EVALUATION = "evaluation.lengths"
"""The one key of evaluation that is measured: whole windows, without a protocol or a strategy."""
WITHOUT_EFFECT = (
    "name", "training.steps", "training.warmup_steps", "training.learning_rate", "training.muon_learning_rate",
    "training.grad_clip", "training.eval_every", "training.save_every",
)  # fmt: skip
"""Keys that change no work of a step. How many are planned tells `compile: auto` whether to compile, and nothing more:
`training.compile` says that itself."""


@dataclass(frozen=True)
class Request:
    """The arguments of `pe bench`."""

    names: Sequence[str]
    lengths: list[str] | None
    max_len: str | None
    baseline: str | None
    rounds: int
    changes: Mapping[str, str]
    out: Path
    device: str
    threads: int | None
    json: bool
    quiet: bool


def bench(request: Request) -> None:
    console = Console(request.quiet)
    place, threads = choose_device(request.device), choose_threads(request.threads)
    asked = asked_for(request, console)
    baseline = baseline_of(request.baseline, asked)
    experiment = asked[0].experiment
    precision = choose_precision(experiment.training.precision, place)
    corpus = sources.load(experiment.data)
    if not isinstance(corpus, Corpus):
        key = next(key for key in request.changes if key.partition(".")[0] == "data")
        raise ConfigError(f"--set {key}={request.changes[key]}: windows of a text are timed; name a text")
    sources.check_length(corpus, experiment.training.longest, experiment.training.longest_key)
    compute_with(threads)
    setting, plan = Setting(corpus, place, threads, request.rounds), benchmark.planned(asked)
    folder = request.out / NAME
    with files.in_directory(folder), console.display() as display:

        def advance(one: Measured, done: int, total: int) -> None:
            display.update(NAME, done, total, f"{one.subject.name}, {one.work} at {one.length}")

        files.writable(folder, FILES)
        flops = benchmark.matmul_flops(precision, place)
        benchmark.measure(plan, setting, advance, console.note)
        rows = benchmark.rows(plan, baseline, len(corpus.alphabet), flops)
        files.write_csv(folder / "bench.csv", rows, benchmark.COLUMNS)
    kind = str(precision).removeprefix("torch.")
    facts = [
        f"{machine(place)}, threads: {threads}; training in {kind}, in which matrix products do {flops / 1e9:,.0f} "
        f"GFLOP/s here; evaluation in float32, all logits of the window; text: {corpus.name}",
        f"made by `{command_line()}`; turns of all: {request.rounds}, after a first step or a short window that does "
        "not count; memory of each in a process of its own",
    ]
    tables = benchmark_tables.tables(rows, baseline, facts)
    files.write_text(folder / "bench.md", document(TITLE, tables))
    frame = pd.DataFrame(rows, columns=list(benchmark.COLUMNS))
    benchmark_plots.plot_benchmark(frame, folder / "bench.png", TITLE, facts)
    if request.json:
        console.json(
            {
                "device": str(place),
                "threads": threads,
                "precision": kind,
                "matmul_flops": flops,
                "versions": versions(),
                "baseline": baseline,
                "rows": rows,
            }
        )
        return
    for table in tables:
        show(console, table)
        console.result("")
    console.result("\n".join(str(folder / name) for name in ("bench.csv", "bench.md", "bench.png")))


def asked_for(request: Request, console: Console) -> list[Subject]:
    """The encodings, with their lengths.

    ConfigError for a run, which would be measured as its encoding is, and for settings that nothing measured has.
    """
    refuse_without_effect(request.changes)
    changes = options.together(request.changes, options.evaluation_overrides(request.lengths, None, None))
    longest = options.longest_length(request.max_len, request.lengths)
    if longest is not None:
        of_training = {key: value for key, value in changes.items() if key.startswith("training.")}
        length = resolve(None, of_training).experiment.training.longest
        changes = options.together(changes, options.lengths_up_to(longest, length))
    found = describing.asked_for(request.names, changes, console)
    for one in found:
        if one.run is not None:
            raise ConfigError(f"{one.name} is a run, and bench is for encodings")
    return found


def refuse_without_effect(changes: Mapping[str, str]) -> None:
    """ConfigError for a setting that would be ignored; what is no key at all is left to the config to refuse."""
    measured_not = {f"evaluation.{key}" for key in EvaluationConfig.model_fields} - {OF_EVALUATION}
    for key, value in changes.items():
        if key not in measured_not and key not in WITHOUT_EFFECT:
            continue
        right = f"of evaluation it takes {OF_EVALUATION} alone" if key in measured_not else "leave it out"
        if key == "training.steps":
            right += "; whether a step is compiled, training.compile says"
        raise ConfigError(f"--set {key}={printable(value)}: {key} has no effect on what pe bench measures: {right}")


def baseline_of(name: str | None, asked: Sequence[Subject]) -> str:
    """What ratios refer to: the one named, else rope where it is measured, else the first."""
    names = [one.name for one in asked]
    if name is None:
        usual = NAMED_BLOCKS["encoding"]
        return usual if usual in names else names[0]
    known = called(name, names)
    if known is None:
        raise ConfigError(f"--baseline {name}: is not among those that are measured{nearest(name, names)}")
    return known
