"""A fault that is provoked: commands in a folder of their own, what they said, and what must hold of it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from processes import COMMAND, kill_all, until
from small_runs import config_file


@dataclass
class Fault:
    """A folder to work in, what was seen there, and what must hold."""

    folder: Path
    seen: list[str] = field(default_factory=list)
    holds: dict[str, bool] = field(default_factory=dict)

    def pe(
        self, *arguments: object, program: Sequence[str] = COMMAND, at: Callable[[int], Any] | None = None, **more: Any
    ) -> str:
        """Run `pe ARGUMENTS`; `at` is told the process once it works. Returns what it said."""
        out, err = (self.folder / f".{stream}-{id(self)}" for stream in ("out", "err"))
        elsewhere = more.pop("stdout", None)
        with open(elsewhere or out, "w") as stdout, open(err, "w") as stderr:
            texts = list(map(str, arguments))
            process = subprocess.Popen(
                [*program, *texts], cwd=self.folder, stdout=stdout, stderr=stderr, start_new_session=True, **more
            )
            try:
                if at is not None:
                    at(process.pid)
                code = process.wait()
                code = code if code >= 0 else 128 - code  # as a shell says it
            finally:
                kill_all(process.pid)
        said = [path.read_text().rstrip() if path.exists() else "" for path in (out, err)]
        redirected = f" > {elsewhere}" if elsewhere else ""
        lines = [f"$ pe {shlex.join(texts)}{redirected}", *(text for text in said if text), f"exit code {code}"]
        self.seen.append("\n".join(lines).replace(f"{self.folder}/", "").replace(str(self.folder), "."))
        out.unlink(missing_ok=True)
        return "\n".join([*said, f"exit code {code}"])

    def ends(self, said: str, code: int, *parts: str) -> None:
        """The command ended so, said all of this, and no traceback."""
        wanted = [f"exit code {code}", *parts]
        missing = [part for part in wanted if part not in said]
        self.holds[f"says {', '.join(map(repr, wanted))}" + (f"; misses {missing}" if missing else "")] = not missing
        self.holds["no traceback"] = self.holds.get("no traceback", True) and "Traceback" not in said

    def config(self, name: str, **changes: Any) -> str:
        return config_file(self.folder / f"{name}.yaml", encoding=changes.pop("encoding", "rope"), **changes).name

    def run(self, name: str) -> Path:
        [path] = self.folder.glob(f"results/runs/{name}-*")
        return path

    def begun(self, name: str) -> Callable[[int], None]:
        """Waits until a run has a checkpoint that it does not have now."""
        before = self.states(name)
        return lambda process: until(lambda: self.states(name) != before)

    def states(self, name: str) -> dict[Path, int]:
        found = self.folder.glob(f"results/runs/{name}-*/state.safetensors")
        return {path: path.stat().st_mtime_ns for path in found}

    def left_behind(self) -> None:
        self.holds["nothing is left behind"] = not list(self.folder.rglob(".*.tmp"))


def long(**changes: Any) -> dict[str, Any]:
    """A training that is still at work when it is disturbed, and saves often."""
    return {"training": {"steps": 400, "save_every": 20, **changes}}


def after(begun: Callable[[int], Any], number: int) -> Callable[[int], None]:
    def act(process: int) -> None:
        begun(process)
        os.kill(process, number)

    return act


def opened(process: int) -> list[str]:
    try:
        return [os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir()]
    except OSError:  # it has ended, or closed what was listed
        return []


def info(run: Path) -> Any:
    return json.loads((run / "run.json").read_text())
