"""The run directory: who may write it, what is in it, and how it is found again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeGuard

from filelock import FileLock
from torch import Tensor

from pe_cli import checkpoint, files
from pe_cli.checkpoint import weight_sha256
from pe_cli.errors import Busy, RunError
from pe_cli.locks import acquire, is_locked
from pe_cli.naming import ROOT, known, near, run_directory_name, suggest
from pe_cli.schema import shown

__all__ = [
    "OVER", "ROOT", "RUN_FILES", "Run", "alone", "create", "is_number", "known", "near", "newest", "open_run",
    "point_latest", "run_directory_name", "weight_sha256",
]  # fmt: skip

STATUSES = ("running", "finished", "interrupted", "diverged", "failed")
OVER = ("finished", "diverged")  # nothing is left to train
STATE, PREVIOUS = "state.safetensors", "state.previous.safetensors"
# All that pe writes in a run directory: what a new training of the same run removes. Written by the process that holds
# the run's lock, and by no other.
RUN_FILES = (
    "run.json", "config.yaml", "model.safetensors", STATE, PREVIOUS, "training.csv", "validation.csv",
    "evaluation.json", "windows.csv", "positions.csv",
    "extrapolation.csv", "extrapolation.md", "extrapolation.png", "positions.png", "attention.csv", "attention.png",
)  # fmt: skip
# A reader that asks whether a run is alive holds its lock for an instant.
_LOCK_SECONDS = 1.0


class Run:
    """One run directory, from `create` (to train in it) or `open_run` (to read it).

    `path`: the directory. `info`: the content of run.json, empty before `begin`.
    As a context manager, a created run gives its lock back at the end.
    """

    def __init__(self, path: Path, info: dict[str, Any], lock: FileLock | None = None):
        self.path = path
        self.info = info
        self._lock = lock

    @property
    def status(self) -> str:
        """`new` before `begin`, else as in run.json; `running` without a living process is `interrupted`."""
        if not self.info:
            return "new"
        status: str = self.info["status"]
        if status == "running" and self._lock is None and not is_locked(self.path):
            return "interrupted"
        return status

    @property
    def has_state(self) -> bool:
        """Whether there is a checkpoint to resume from; a run killed before its first one begins again."""
        return any((self.path / name).is_file() for name in (STATE, PREVIOUS))

    @property
    def config_text(self) -> str:
        """The text of config.yaml."""
        path = self.path / "config.yaml"
        try:
            return files.read_bytes(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise RunError(f"{path.absolute()} is damaged ({error}): {_RETRAIN}") from error

    def text(self, key: str) -> str:
        """A text in run.json. RunError where there is none, as in a file of another program."""
        value = self.info.get(key)
        if not isinstance(value, str) or not value:
            raise self._without(key, "a text")
        return value

    def number(self, key: str) -> float:
        """A number in run.json. RunError where there is none."""
        value = self.info.get(key)
        if not is_number(value):
            raise self._without(key, "a number")
        return value

    def _without(self, key: str, kind: str) -> RunError:
        found = f"{shown(self.info[key])} is not {kind}" if key in self.info else "is missing"
        return RunError(f"{(self.path / 'run.json').absolute()} is damaged or not of pe: {key} {found}: {_RETRAIN}")

    def begin(self, config_text: str, **fields: Any) -> None:
        """Remove what an earlier training left; write config.yaml, and run.json: `fields`, status `running`.

        The order is such that a kill leaves either the old weights or a new run without a checkpoint.
        """
        with files.failing("write in", self.path):
            for name in (PREVIOUS, STATE):
                (self.path / name).unlink(missing_ok=True)
            self.info = {}
            self.update(**{"status": "running", **fields})
            for name in RUN_FILES:
                if name != "run.json":
                    (self.path / name).unlink(missing_ok=True)
        files.write_text(self.path / "config.yaml", config_text)

    def update(self, **fields: Any) -> None:
        """Set fields of run.json. Only for the process that trains; the update to `finished` comes last."""
        info = files.plain({**self.info, **fields})
        files.write_json(self.path / "run.json", info)
        self.info = info

    def save_state(self, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
        """Commit all that resuming needs: a kill at any moment leaves the previous state or this one."""
        checkpoint.save(self.path / STATE, tensors, meta, self.path / PREVIOUS)

    def load_state(self, warn: Callable[[str], None] | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors (on the CPU) and meta of the last `save_state`. RunError if missing, damaged or foreign.

        With `warn`, which only the process that trains may give, the state before it takes the place of a damaged one.
        """
        if warn is None or not (self.path / PREVIOUS).is_file():
            return checkpoint.load(self.path / STATE, _RETRAIN)
        return checkpoint.load_whole(self.path / STATE, self.path / PREVIOUS, _RETRAIN, warn)

    def drop_previous(self) -> None:
        """The last state is whole, and nothing will follow it."""
        files.remove(self.path / PREVIOUS)

    def save_weights(self, tensors: Mapping[str, Tensor]) -> None:
        """Write model.safetensors."""
        checkpoint.save(self.path / "model.safetensors", tensors, {})

    def load_weights(self) -> dict[str, Tensor]:
        """The tensors of model.safetensors, on the CPU. RunError if missing, damaged or of another run."""
        path = self.path / "model.safetensors"
        tensors, _ = checkpoint.load(path, _RETRAIN)
        if self.info["status"] == "finished" and self.info.get("weight_sha256") != weight_sha256(tensors):
            raise RunError(f"{path.absolute()} holds other weights than run.json names: {_RETRAIN}")
        return tensors

    def close(self) -> None:
        """Give the lock back. A process that is killed gives it back too."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value of run.json is a number that a sum may have in it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # not so for NaN, and an integer has no largest


def create(root: Path, name: str, identity: str, seed: int, *, force: bool, resume: bool) -> Run:
    """The directory to train in, locked for this process until `close`; nothing in it is lost before `begin`.

    Its `status` says what to do: `new` (also with `force`): `begin`; `interrupted` or `failed` (with
    `resume`): `load_state` where `has_state`, else `begin`; `finished` or `diverged`: nothing, and no lock is
    held. Busy: another process trains it. RunError: it was interrupted and neither `resume` nor `force` is given;
    `resume` and there is nothing; the directory holds something that is not a run.
    """
    path = root / run_directory_name(name, identity, seed)
    if force and resume:
        raise RunError("--force begins again and --resume goes on: give one of them")
    if resume and not path.exists():
        raise RunError(f"there is nothing to resume at {path.absolute()}{suggest(path.name, root)}")
    files.writable(root)
    try:
        lock = acquire(path, _LOCK_SECONDS)
    except Busy:
        if not force and (path / "run.json").is_file():
            found = Run(path, _read_info(path))
            if found.status in OVER:
                return found  # another process evaluates it
        raise
    try:
        info = _claim(path, force=force)
        if info and not force:
            if info["status"] == "running":
                info["status"] = "interrupted"  # we hold the lock, so its process is gone
            if info["status"] in OVER:
                lock.release()
                return Run(path, info)
            if not resume:
                ended = _ENDED[info["status"]]
                raise RunError(f"{path.absolute()} {ended}: go on with --resume, or begin again with --force")
        _tidy(path)
        return Run(path, {} if force else info, lock)
    except BaseException:
        lock.release()
        raise


@contextmanager
def alone(run: Run) -> Iterator[None]:
    """For an evaluation: nobody else writes in the directory meanwhile, or has trained the run again before.

    Busy where that is not so, RunError where nothing can be written at all.
    """
    files.writable(run.path, RUN_FILES)
    lock = acquire(run.path, _LOCK_SECONDS)
    try:
        if _read_info(run.path).get("weight_sha256") != run.info.get("weight_sha256"):
            raise Busy(f"{run.path.absolute()} has been trained again since it was opened: begin again")
        _tidy(run.path)
        yield
    finally:
        lock.release()


def open_run(run: str | Path, root: Path = ROOT) -> Run:
    """The run at a path (its directory or a file in it) or of a name under `root`, to read; else RunError."""
    where = Path(os.path.abspath(run))
    with files.failing("open", where):
        for path in (Path(run), root / run):
            if path.is_file() and path.name in RUN_FILES:
                path = path.parent
            if path.is_symlink():  # `latest`: the run has a name of its own
                path = path.parent / os.readlink(path)
            if path.name in ("", ".."):  # from inside of it: the name is that of the directory
                path = Path(os.path.realpath(path))
            if (path / "run.json").is_file():
                return Run(path, _read_info(path))
        there = next((path for path in (where, root.absolute() / run) if path.exists()), None)
    problem = "is not there" if there is None else "is not a run, it has no run.json"
    raise RunError(f"the run {there or where} {problem}{suggest(where.name, root)}")


def newest(root: Path = ROOT) -> Run:
    """The run that `latest` names. RunError if there is none."""
    latest = root / "latest"
    if not os.path.lexists(latest):
        names = known(root)
        advice = f"name a run, the newest is '{names[0]}'" if names else "train one with `pe train`"
        raise RunError(f"there is no {latest.absolute()} yet: {advice}")
    if not latest.exists():
        target = os.readlink(latest)
        raise RunError(f"{latest.absolute()} names '{target}', which is gone{suggest(target, root)}")
    return open_run(latest, root)


def point_latest(run: Run) -> None:
    """Make `run` the one that commands without RUN take."""
    files.write_link(run.path.parent / "latest", run.path.name)


def _tidy(path: Path) -> None:
    for file in RUN_FILES:
        files.remove_temporaries(path / file)


_RETRAIN = "train it again with --force"
_ENDED = {"interrupted": "was interrupted", "failed": "failed"}


def _claim(path: Path, *, force: bool) -> dict[str, Any]:
    """Make the directory, or make sure that it is ours; the content of run.json, {} for a new run."""
    with files.failing("make", path):
        path.mkdir(parents=True, exist_ok=True)
        entries = [entry for entry in path.iterdir() if not files.is_temporary(entry)]
    if not entries:
        return {}
    files.unobstructed(path, RUN_FILES)
    strange = sorted(entry.name for entry in entries if entry.name not in RUN_FILES)
    if not (path / "run.json").is_file():
        if strange:
            raise RunError(f"{path.absolute()} holds {strange[0]!r} and no run: move it away")
        if force:
            return {}
        raise RunError(f"{path.absolute()} has no run.json: {_RETRAIN}")
    if force and not strange:  # nothing but our files, so a damaged run.json is no obstacle
        return {}
    return _read_info(path)


def _read_info(path: Path) -> dict[str, Any]:
    file = path / "run.json"
    try:
        info = json.loads(files.read_bytes(file))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{file.absolute()} is damaged ({error}): {_RETRAIN}") from error
    if not isinstance(info, dict) or info.get("status") not in STATUSES:
        raise RunError(f"{file.absolute()} was not written by pe: no status {', '.join(STATUSES)} in it")
    return info
