"""The run directory: who may write it, what is in it, and how it is found again."""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from filelock import FileLock
from torch import Tensor

from pe_cli import checkpoint, files
from pe_cli.checkpoint import weight_sha256
from pe_cli.errors import ConfigError, RunError
from pe_cli.locks import acquire, is_locked
from pe_cli.schema import shown

__all__ = [
    "ROOT", "RUN_FILES", "Run", "create", "known", "newest", "open_run", "point_latest", "run_directory_name",
    "weight_sha256", "writable",
]  # fmt: skip

ROOT = Path("results/runs")
STATUSES = ("running", "finished", "interrupted", "diverged", "failed")
# Written by the process that holds the run's lock, and by no other.
TRAINING_FILES = (
    "run.json", "config.yaml", "model.safetensors", "state.safetensors", "training.csv", "validation.csv",
)  # fmt: skip
# All that pe writes in a run directory: what a new training of the same run removes.
RUN_FILES = (
    *TRAINING_FILES, "evaluation.json", "windows.csv", "positions.csv",
    "extrapolation.csv", "extrapolation.md", "extrapolation.png", "positions.png", "attention.csv", "attention.png",
)  # fmt: skip
_LONGEST_NAME = 200  # bytes; file systems allow 255, and hash, seed and endings follow
# A reader that asks whether a run is alive holds its lock for an instant.
_LOCK_SECONDS = 1.0


def run_directory_name(name: str, identity: str, seed: int) -> str:
    """`<name>-<identity>-s<seed>`. ConfigError for a name that no directory can have."""
    if not name or "/" in name or "\0" in name:
        raise ConfigError(f"name {name!r} cannot be the name of a directory: use a text without '/'")
    try:
        length = len(os.fsencode(name))
    except UnicodeEncodeError:
        codec = sys.getfilesystemencoding()
        raise ConfigError(f"name {name!r} cannot be the name of a directory here, where names are {codec}") from None
    if length > _LONGEST_NAME:
        raise ConfigError(f"name {name[:20]!r}… is too long: use at most {_LONGEST_NAME} bytes")
    return f"{name}-{identity}-s{seed}"


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
        return (self.path / "state.safetensors").is_file()

    @property
    def config_text(self) -> str:
        """The text of config.yaml."""
        path = self.path / "config.yaml"
        try:
            with files.failing("read", path):
                return path.read_text(encoding="utf-8")
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
        if isinstance(value, bool) or not isinstance(value, int | float):
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
            (self.path / "state.safetensors").unlink(missing_ok=True)
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
        checkpoint.save(self.path / "state.safetensors", tensors, meta)

    def load_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors (on the CPU) and meta of the last `save_state`. RunError if missing, damaged or foreign."""
        return checkpoint.load(self.path / "state.safetensors", _RETRAIN)

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


def create(root: Path, name: str, identity: str, seed: int, *, force: bool, resume: bool) -> Run:
    """The directory to train in, locked for this process until `close`; nothing in it is lost before `begin`.

    Its `status` says what to do: `new` (also with `force`): `begin`; `interrupted` or `failed` (with
    `resume`): `load_state` where `has_state`, else `begin`; `finished` or `diverged`: nothing, and no lock is
    held. RunError: another process trains it; it was interrupted and neither `resume` nor `force` is given;
    `resume` and there is nothing; the directory holds something that is not a run.
    """
    path = root / run_directory_name(name, identity, seed)
    if force and resume:
        raise RunError("--force begins again and --resume goes on: give one of them")
    if resume and not path.exists():
        raise RunError(f"there is nothing to resume at {path.absolute()}{_suggest(path.name, root)}")
    writable(root)
    lock = acquire(path, _LOCK_SECONDS)
    try:
        info = _claim(path, force=force)
        if info and not force:
            if info["status"] == "running":
                info["status"] = "interrupted"  # we hold the lock, so its process is gone
            if info["status"] in ("finished", "diverged"):
                lock.release()
                return Run(path, info)
            if not resume:
                ended = _ENDED[info["status"]]
                raise RunError(f"{path.absolute()} {ended}: go on with --resume, or begin again with --force")
        for file in TRAINING_FILES:
            files.remove_temporaries(path / file)
        return Run(path, {} if force else info, lock)
    except BaseException:
        lock.release()
        raise


def open_run(run: str | Path, root: Path = ROOT) -> Run:
    """The run at a path (its directory or a file in it) or of a name under `root`, to read; else RunError."""
    where = Path(os.path.abspath(run))
    with files.failing("open", where):
        for path in (Path(run), root / run):
            if path.is_file() and path.name in RUN_FILES:
                path = path.parent
            if path.is_symlink():  # `latest`: the run has a name of its own
                path = path.parent / os.readlink(path)
            if (path / "run.json").is_file():
                return Run(path, _read_info(path))
        there = next((path for path in (where, root.absolute() / run) if path.exists()), None)
    problem = "is not there" if there is None else "is not a run, it has no run.json"
    raise RunError(f"the run {there or where} {problem}{_suggest(where.name, root)}")


def newest(root: Path = ROOT) -> Run:
    """The run that `latest` names. RunError if there is none."""
    latest = root / "latest"
    if not os.path.lexists(latest):
        names = known(root)
        advice = f"name a run, the newest is '{names[0]}'" if names else "train one with `pe train`"
        raise RunError(f"there is no {latest.absolute()} yet: {advice}")
    if not latest.exists():
        target = os.readlink(latest)
        raise RunError(f"{latest.absolute()} names '{target}', which is gone{_suggest(target, root)}")
    return open_run(latest, root)


def point_latest(run: Run) -> None:
    """Make `run` the one that commands without RUN take."""
    files.write_link(run.path.parent / "latest", run.path.name)


def known(root: Path = ROOT) -> list[str]:
    """Names of the run directories in `root`, the last written first."""
    found = [path.parent for path in root.glob("*/run.json") if not path.parent.is_symlink()]
    return [path.name for path in sorted(found, key=_written, reverse=True)]


def writable(root: Path, size: int = 4096) -> None:
    """Make `root` and try to write `size` bytes there: RunError now, not after an hour of training."""
    files.probe(root, size)


_RETRAIN = "train it again with --force"
_ENDED = {"interrupted": "was interrupted", "failed": "failed"}


def _written(path: Path) -> float:
    try:
        return (path / "run.json").stat().st_mtime
    except FileNotFoundError:  # removed since it was listed
        return 0.0


def near(name: str, root: Path = ROOT) -> list[str]:
    """The runs that begin with a name, else the one that is most like it."""
    names = known(root)
    beginning = [other for other in names if name and other.startswith(name)]
    return beginning or difflib.get_close_matches(name, names, n=1, cutoff=0.6)


def _suggest(name: str, root: Path) -> str:
    names = known(root)
    if alike := near(name, root):
        return f"; did you mean '{alike[0]}'?"
    if names:
        return f"; the newest runs in {root}: {', '.join(names[:3])}"
    return f"; there are no runs in {root.absolute()}"


def _claim(path: Path, *, force: bool) -> dict[str, Any]:
    """Make the directory, or make sure that it is ours; the content of run.json, {} for a new run."""
    with files.failing("make", path):
        path.mkdir(parents=True, exist_ok=True)
        entries = [entry for entry in path.iterdir() if not files.is_temporary(entry)]
    if not entries:
        return {}
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
        with files.failing("read", file):
            info = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RunError(f"{file.absolute()} is damaged ({error}): {_RETRAIN}") from error
    if not isinstance(info, dict) or info.get("status") not in STATUSES:
        raise RunError(f"{file.absolute()} was not written by pe: no status {', '.join(STATUSES)} in it")
    return info
