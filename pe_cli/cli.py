"""The commands: arguments in, one call, show. What is heavy is imported inside the commands."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from pe_cli import __version__, cli_encodings, options
from pe_cli.cli_encodings import example
from pe_cli.errors import Interrupted, PeError
from pe_cli.streams import quiet_pipe

MOST_CHARS = 100_000
"""Each costs a pass over all the text before it."""


app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="What a position encoding does to a Transformer, and what happens beyond the length it was trained on.",
    epilog=example("pe train --encoding rope"),
)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pe {__version__}")
        raise typer.Exit


@app.callback()
def top(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an expected error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog=example("pe train --encoding alibi --seed 7 --set training.steps=200"))
def train(
    config: options.ConfigArgument = None,
    encoding: options.Encoding = None,
    data: options.Data = None,
    seed: options.Seed = None,
    set_: options.Set = None,
    out: options.Out = Path("results"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    resume: options.Resume = False,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train one model."""
    from pe_cli import commands

    wanted = options.overrides(set_, encoding, data, seed)
    commands.train(config, wanted, out, device, threads, resume, force, dry_run, json, quiet)


@app.command(epilog=example("pe extrapolate --max-len 4096 --strategy none,interpolate"))
def extrapolate(
    run: options.RunArgument = None,
    max_len: options.MaxLen = None,
    lengths: options.Lengths = None,
    strategy: options.Strategy = None,
    protocol: options.Protocol = None,
    attention: Annotated[
        bool,
        typer.Option("--attention", help="Also measure where the scored characters look: attention.csv and .png."),
    ] = False,
    data: options.Data = None,
    set_: options.SetEvaluation = None,
    out: options.Out = Path("results"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Evaluate a run beyond its training length."""
    from pe_cli import commands

    commands.extrapolate(
        run,
        max_len,
        lengths,
        strategy,
        protocol,
        attention,
        data,
        options.settings(set_),
        out,
        device,
        threads,
        json,
        quiet,
    )


@app.command(epilog=example("pe compare configs/*.yaml --quick"))
def compare(
    configs: Annotated[list[str], typer.Argument(metavar="CONFIG…", help="YAML files, or patterns in quotes.")],
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    max_len: options.MaxLen = None,
    lengths: options.Lengths = None,
    strategy: options.Strategy = None,
    protocol: options.Protocol = None,
    name: Annotated[str | None, typer.Option("--name", help="The directory of the comparison.")] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="NAME", help="The run, or RUN + STRATEGY, of the differences.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=VALUE,…",
            help="Also train every config with these values, and say which orderings survive; repeat it for others.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: few steps, few and short windows.")] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first run that fails.")] = False,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Leave out configs that cannot be run.")] = False,
    encoding: options.Encoding = None,
    data: options.Data = None,
    seed: options.Seed = None,
    set_: options.Set = None,
    out: options.Out = Path("results"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    resume: options.Resume = False,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train and evaluate configs, and compare them."""
    from pe_cli import comparing

    comparing.compare(
        comparing.Request(
            configs=configs,
            seeds=seeds,
            overrides=options.overrides(set_, encoding, data, seed),
            max_len=max_len,
            lengths=options.several(lengths),
            strategies=options.several(strategy),
            protocols=options.several(protocol),
            name=name,
            baseline=baseline,
            vary=vary or [],
            quick=quick,
            fail_fast=fail_fast,
            keep_going=keep_going,
            out=out,
            device=device,
            threads=threads,
            jobs=jobs,
            resume=resume,
            force=force,
            dry_run=dry_run,
            json=json,
            quiet=quiet,
        )
    )


@app.command(epilog=example("pe claims configs/claims/alibi_extrapolates.yaml --jobs 2"))
def claims(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]…", help="Claim files, or patterns in quotes; default: configs/claims/*.yaml."),
    ] = None,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    set_: options.Set = None,
    out: options.Out = Path("results"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run published claims as experiments, and judge them."""
    from pe_cli import claiming

    overrides = options.settings(set_)
    claiming.check(claiming.Request(files or [], seeds, overrides, out, device, threads, jobs, dry_run, json, quiet))


@app.command(epilog=example("pe config configs/rope.yaml --set training.steps=500"))
def config(
    config: options.ConfigArgument = None,
    encoding: options.Encoding = None,
    data: options.Data = None,
    seed: options.Seed = None,
    set_: options.Set = None,
    json: options.Json = False,
) -> None:
    """The resolved experiment, with origins."""
    from pe_cli import commands

    commands.config(config, options.overrides(set_, encoding, data, seed), json)


@app.command(epilog=example('pe sample --prompt "To be" --chars 300 --temperature 0.8'))
def sample(
    run: options.RunArgument = None,
    prompt: Annotated[str | None, typer.Option("--prompt", metavar="TEXT", help="The text to go on with.")] = None,
    chars: Annotated[
        int,
        typer.Option(
            "--chars", metavar="N", parser=options.whole("--chars", 1, MOST_CHARS), help="Characters to write."
        ),
    ] = 200,
    temperature: Annotated[
        float,
        typer.Option(
            "--temperature",
            metavar="X",
            parser=options.real("--temperature"),
            help="Above 1 bolder, below 1 safer.",
        ),
    ] = 1.0,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always the likeliest character.")] = False,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", parser=options.whole("--seed", 0), help="The seed of the draws."),
    ] = 0,
    out: options.Out = Path("results"),
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Text from a trained model."""
    from pe_cli import commands

    commands.sample(run, prompt, chars, temperature, greedy, seed, out, device, json)


app.add_typer(cli_encodings.app)


def stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted("interrupted" if number == signal.SIGINT else "ended by SIGTERM", number)


def main() -> None:
    """The entry point: an expected error is one message on standard error and an exit code."""
    debug = "--debug" in sys.argv[1:2]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with quiet_pipe():
        try:
            app(prog_name="pe")
        except (Exception, Interrupted) as error:
            known = expected(error)
            if debug or known is None:
                raise
            from pe_cli.console import Console

            message, code = known
            Console().error(message)
            sys.exit(code)


def expected(error: BaseException) -> tuple[str, int] | None:
    """The message and the exit code of what the person at the keyboard can act on; None for a fault of the program."""
    if isinstance(error, PeError | Interrupted):
        return str(error), error.exit_code
    if isinstance(error, OSError):  # what no command foresees of a file, or of a standard stream
        return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), 2
    from pe_cli.evaluation import is_out_of_memory

    return ("out of memory: smaller sizes, lengths or batches need less", 1) if is_out_of_memory(error) else None
