"""The commands about encodings themselves, which train nothing: arguments in, one call, show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pe_cli import options

app = typer.Typer()


def example(command: str) -> str:
    """The last line of a help text, left on one line at any width: it is there to be copied."""
    return f"\b\nExample: {command}"


@app.command("list", epilog=example("pe list encodings"))
def list_(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[WHAT]", help="encodings, positions, strategies, corpora or tasks."),
    ] = None,
    json: options.Json = False,
    markdown: options.Markdown = False,
) -> None:
    """What exists, with options and references."""
    from pe_cli import listing

    listing.list_(what, json, markdown)


@app.command(epilog=example("pe inspect alibi --length 8 --set model.n_heads=6"))
def inspect(
    encoding: Annotated[str, typer.Argument(metavar="ENCODING", help="A name of `pe list encodings`.")],
    length: Annotated[int | None, options.length_shown("16")] = None,
    at_length: options.AtLength = None,
    strategy: Annotated[str, typer.Option("--strategy", metavar="NAME", help="The strategy.")] = "none",
    set_: options.SetEncoding = None,
    json: options.Json = False,
) -> None:
    """The numbers of an encoding before any training."""
    from pe_cli import describing

    describing.inspect(encoding, length, at_length, strategy, options.settings(set_), json)


@app.command(epilog=example("pe properties rope alibi --explain"))
def properties(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ENCODING or RUN]…", help="Names of encodings, or of runs; default: all encodings."),
    ] = None,
    set_: options.SetEncoding = None,
    fast: Annotated[bool, typer.Option("--fast", help="Measure no time and no memory.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the formulas; without a name, nothing is measured.")
    ] = False,
    threads: options.Threads = None,
    json: options.Json = False,
    markdown: options.Markdown = False,
    quiet: options.Quiet = False,
) -> None:
    """The measured properties of encodings, fresh or trained."""
    from pe_cli import describing

    describing.properties(names or [], options.settings(set_), fast, explain, threads, json, markdown, quiet)


@app.command(epilog=example("pe bench rope alibi t5 --lengths 1024,4096"))
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ENCODING]…", help="Names of `pe list encodings`; default: all."),
    ] = None,
    max_len: options.MaxLen = None,
    lengths: options.Lengths = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="What ratios refer to; default: rope, else the first."),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option("--rounds", metavar="N", parser=options.whole("--rounds", 1, 1000), help="Turns that count."),
    ] = 5,
    set_: options.SetEncoding = None,
    out: options.Out = Path("results"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Speed and memory of encodings, in training and beyond.

    Steps of training, then one window of each length, all encodings in turn. Results in results/bench.
    """
    from pe_cli import benching

    changes = options.settings(set_)
    benching.bench(
        benching.Request(names or [], lengths, max_len, baseline, rounds, changes, out, device, threads, json, quiet)
    )


@app.command(
    epilog=example("pe plot sinusoidal --set encoding.base=1000 --set encoding.base=10000 --kind table"),
)
def plot(
    names: Annotated[
        list[str],
        typer.Argument(metavar="ENCODING… or RUN", help="Encodings before training, runs as trained, or both."),
    ],
    length: Annotated[int | None, options.length_shown("64")] = None,
    at_length: options.AtLength = None,
    strategy: Annotated[
        list[str] | None, typer.Option("--strategy", metavar="NAME,…", help="The strategy, or several.")
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer",
            metavar="N",
            parser=options.whole("--layer", 0),
            help="The layer, from 0; default: the first that has the picture.",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND,…",
            help="ids, table, bias, mask, similarity, decay or attention; default: what the encoding is about.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Set a key; one key with several values draws them side by side."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            parser=options.path("--out"),
            help="A .png or .svg file, replaced if it is there; default: a PNG in results/plots.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Pictures of encodings, or a run's curves.

    RUN alone: its curves. With --kind, or beside an ENCODING: what its encoding has learned. A run is a directory
    or its name in results/runs; the name of an encoding is never taken for a directory (write ./rope).
    """
    from pe_cli import describing, plotting

    asked = plotting.Options(length, at_length, options.several(strategy), layer, options.several(kind), set_ or [])
    describing.plot(names, asked, out, json)
