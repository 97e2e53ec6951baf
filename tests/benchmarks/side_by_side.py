"""Training and long windows side by side with what people use today, on the same shapes, in turn.

    pip install -c constraints.txt -e '.[test,bench]'
    python tests/benchmarks/side_by_side.py --rounds 7

Each has a process of its own, and they take turns, so that whatever else the machine does meets all of them; ratios
are of one turn, and their median is told. A turn is five steps of training, or one window. Everyone takes forward and
backward pass, clipping and the step of the optimiser (AdamW; Muon and AdamW in pe). Writes results/benchmarks.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import others
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli import files, sources
from pe_cli.benchmark import evaluate
from pe_cli.config import resolve
from pe_cli.corpus import Batches, Corpus
from pe_cli.devices import compute_with
from pe_cli.documents import Table, document
from pe_cli.execution import context, end_with_parent
from pe_cli.peaks import raised
from pe_cli.seeds import seeded
from pe_cli.stepping import Stepper
from pe_cli.tables import Column
from pe_cli.trained import fresh_model
from pe_cli.versions import machine

FOLDER = Path(__file__).parents[2] / "results" / "benchmarks"
CPU = torch.device("cpu")
STEP_CHARS = 8192
CALLS = {"training": 5, "window": 1}
"""How many steps, or windows, make a turn."""
COLUMNS = ("work", "length", "who", "seconds", "seconds_low", "seconds_high", "chars_per_second", "peak_bytes")
TRAINED = {
    "plain GPT, float32": ("plain", "float32", False),
    "plain GPT, bfloat16": ("plain", "bfloat16", False),
    "plain GPT, bfloat16, compiled": ("plain", "bfloat16", True),
    "x-transformers rope, float32": ("x rope", "float32", False),
    "x-transformers alibi, float32": ("x alibi", "float32", False),
    "x-transformers t5, float32": ("x t5", "float32", False),
    "transformers Llama, float32": ("llama", "float32", False),
    "transformers Llama, bfloat16": ("llama", "bfloat16", False),
    "pe rope": ("rope", "auto", False),
    "pe alibi": ("alibi", "auto", False),
    "pe t5": ("t5", "auto", False),
    "pe rope, compiled": ("rope", "auto", True),
    "pe alibi, compiled": ("alibi", "auto", True),
    "pe t5, compiled": ("t5", "auto", True),
}
"""Who is trained: the model, the precision, and whether it is compiled."""
ASKED = {
    "x-transformers rope": "x rope",
    "x-transformers alibi": "x alibi",
    "x-transformers t5": "x t5",
    "transformers Llama": "llama",
    "transformers BLOOM (alibi)": "bloom",
    "pe rope": "rope",
    "pe alibi": "alibi",
    "pe t5": "t5",
}
"""Whose forward pass over one window is timed, in float32."""


@dataclass
class Contender:
    who: str
    model: str
    work: str
    length: int
    chars: int
    prepare: Callable[[], Callable[[], object]]
    compiles: bool = False
    peak_bytes: int | None = None
    seconds: list[float] = field(default_factory=list)

    def begin(self, threads: int) -> None:
        """In a process of its own: prepares the work and does it once, which compiles, and fills caches."""
        processes = context()
        self.pipe, theirs = processes.Pipe()
        self.process = processes.Process(  # type: ignore[attr-defined]
            target=serve, args=(self.prepare, is_ours(self.model), threads, theirs), daemon=True
        )
        self.process.start()
        theirs.close()  # else nobody would hear that it has died
        taken = self.pipe.recv()
        self.peak_bytes = None if self.compiles else taken

    def turn(self) -> None:
        self.pipe.send(CALLS[self.work])
        self.seconds.append(self.pipe.recv())

    def end(self) -> None:
        self.pipe.send(0)
        self.process.join()


def serve(prepare: Callable[[], Callable[[], object]], ours: bool, threads: int, pipe: Connection) -> None:
    """Tells the memory that the first call takes, and then for each number of calls the seconds of one."""
    end_with_parent()
    (compute_with if ours else torch.set_num_threads)(threads)
    call = prepare()
    pipe.send(raised(call, CPU))
    while calls := pipe.recv():
        started = time.perf_counter()
        for _ in range(calls):
            call()
        pipe.send((time.perf_counter() - started) / calls)


def other(model: str, letters: int, length: int) -> nn.Module:
    if model == "plain":
        return others.PlainGPT(letters, length)
    if model.startswith("x "):
        return others.x_transformers(model.removeprefix("x "), letters, length)
    return {"llama": others.llama, "bloom": others.bloom}[model](letters, length)


def experiment(encoding: str, length: int, precision: str, compile: bool) -> Any:
    settings = {
        "encoding": encoding,
        "training.length": str(length),
        "training.batch_size": str(STEP_CHARS // length),
        "training.precision": precision,
        "training.compile": str(compile).lower(),
    }
    return resolve(None, settings).experiment


def is_ours(model: str) -> bool:
    return model in ("rope", "alibi", "t5")


def training(model: str, precision: str, compile: bool, length: int) -> Callable[[], object]:
    """Steps of training, ready to be taken."""
    corpus = sources.load("pydocs")
    assert isinstance(corpus, Corpus)
    drawn = Batches(corpus.train, length, STEP_CHARS // length, seed=0)
    if is_ours(model):
        wanted = experiment(model, length, precision, compile)
        stepper = Stepper(fresh_model(wanted, corpus.alphabet), wanted.training, CPU, seeded(0, "ids"))
        stepper.begin(False, print)
        return lambda: stepper.step(*drawn.pair(), 0)
    torch.manual_seed(0)
    module = other(model, len(corpus.alphabet), length).train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    call = torch.compile(module) if compile else module
    return partial(step, call, module, optimizer, drawn, precision == "bfloat16")


def step(
    call: Callable[[Tensor], Tensor], module: nn.Module, optimizer: torch.optim.Optimizer, drawn: Batches, half: bool
) -> float:
    fed, wanted = drawn.pair()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        loss = F.cross_entropy(call(fed).flatten(0, 1).float(), wanted.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def window(model: str, length: int) -> Callable[[], object]:
    """A forward pass over one window, ready to be taken."""
    corpus = sources.load("pydocs")
    assert isinstance(corpus, Corpus)
    tokens = torch.from_numpy(corpus.ids[:length].astype("int64"))[None]
    if is_ours(model):
        module: Any = fresh_model(experiment(model, 128, "auto", False), corpus.alphabet)
        evaluate(module, tokens[:, :16])
        return partial(evaluate, module, tokens)
    torch.manual_seed(0)
    module = other(model, len(corpus.alphabet), length).eval()
    forward(module, tokens[:, :16])
    return partial(forward, module, tokens)


def forward(module: nn.Module, tokens: Tensor) -> None:
    with torch.inference_mode():
        module(tokens)


def contenders(lengths: list[int], windows: list[int]) -> list[Contender]:
    found = []
    for length in lengths:
        for who, (model, precision, compile) in TRAINED.items():
            prepare = partial(training, model, precision, compile, length)
            found.append(Contender(who, model, "training", length, STEP_CHARS, prepare, compile))
    for length in windows:
        for who, model in ASKED.items():
            found.append(Contender(who, model, "window", length, length, partial(window, model, length)))
    return found


def measure(found: list[Contender], rounds: int, threads: int) -> None:
    """All of one kind are there at the same time, and wait while another has its turn."""
    for one in found:
        one.begin(threads)
    for _ in range(rounds):
        for one in found:
            one.turn()
    for one in found:
        one.end()


def rows(found: list[Contender]) -> list[dict[str, Any]]:
    values = []
    for one in found:
        middle = median(one.seconds)
        kind = (one.work, one.length, one.who)
        values.append((*kind, middle, min(one.seconds), max(one.seconds), one.chars / middle, one.peak_bytes))
    return [dict(zip(COLUMNS, value, strict=True)) for value in values]


def table(found: list[Contender], work: str, length: int) -> Table:
    """Times and memory, and how many times as quick as each of the others."""
    here = [one for one in found if (one.work, one.length) == (work, length)]
    rivals = [one for one in here if not one.who.startswith("pe ")]
    shown = []
    for one in here:
        quicker = {
            rival.who: median(theirs / ours for ours, theirs in zip(one.seconds, rival.seconds, strict=True))
            for rival in rivals
            if one.who.startswith("pe ")
        }
        shown.append(
            {
                "who": one.who,
                "seconds": median(one.seconds),
                "range": f"{min(one.seconds):.3f} … {max(one.seconds):.3f}",
                "speed": one.chars / median(one.seconds),
                "mib": None if one.peak_bytes is None else one.peak_bytes / 2**20,
                **quicker,
            }
        )
    columns = [
        Column("who", "model"),
        Column("seconds", "seconds", ".3f"),
        Column("range", "least … most"),
        Column("speed", "characters/s", ",.0f"),
        Column("mib", "MiB", ",.0f"),
        *(Column(rival.who, f"× {rival.who}", ".2f") for rival in rivals),
    ]
    titles = {
        "training": f"Steps of training on {STEP_CHARS // length} windows of {length} characters",
        "window": f"A forward pass over one window of {length} characters, float32",
    }
    return Table(titles[work], columns, shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--lengths", type=int, nargs="*", default=[128, 256], help="of training windows")
    parser.add_argument("--windows", type=int, nargs="*", default=[4096], help="lengths of single windows")
    parser.add_argument("--out", type=Path, default=FOLDER)
    asked = parser.parse_args()
    began = time.perf_counter()
    found = contenders(asked.lengths, asked.windows)
    kinds = dict.fromkeys((one.work, one.length) for one in found)
    for kind in kinds:
        measure([one for one in found if (one.work, one.length) == kind], asked.rounds, asked.threads)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("x-transformers", "transformers"))
    facts = [
        "made by `python tests/benchmarks/side_by_side.py"
        f" --rounds {asked.rounds} --threads {asked.threads}` in {(time.perf_counter() - began) / 60:.1f} minutes on "
        f"{machine(CPU)}, threads: {asked.threads}, {libraries}",
        f"each in a process of its own, in turn; a turn is {CALLS['training']} steps, or {CALLS['window']} window; "
        "seconds: of one, medians over turns; × NAME: how many times as quick, the median of the ratios of single "
        "turns; pe trains in bfloat16 where the processor has units for it; MiB: what the first one takes besides its "
        "preparation",
    ]
    tables = [table(found, *kind) for kind in kinds]
    tables[-1] = Table(tables[-1].title, tables[-1].columns, tables[-1].rows, facts)
    asked.out.mkdir(parents=True, exist_ok=True)
    files.write_csv(asked.out / "side_by_side.csv", rows(found), COLUMNS)
    text = document("Side by side", tables)
    files.write_text(asked.out / "side_by_side.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
