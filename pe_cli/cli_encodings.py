"""The commands about encodings themselves, which train nothing: arguments in, one call, show."""

from __future__ import annotations

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
    from pe_cli import describing

    describing.list_(what, json, markdown)


@app.command(epilog=example("pe inspect alibi --length 8 --set model.n_heads=6"))
def inspect(
    encoding: Annotated[str, typer.Argument(metavar="ENCODING", help="A name of `pe list encodings`.")],
    length: Annotated[str, typer.Option("--length", metavar="N", help="Positions to show.")] = "16",
    at_length: Annotated[
        str | None,
        typer.Option("--at-length", metavar="N", help="What a strategy makes of it at this length."),
    ] = None,
    strategy: Annotated[str, typer.Option("--strategy", metavar="NAME", help="The strategy.")] = "none",
    set_: options.Set = None,
    json: options.Json = False,
) -> None:
    """The numbers of an encoding before any training."""
    from pe_cli import describing

    describing.inspect(encoding, length, at_length, strategy, options.settings(set_), json)
