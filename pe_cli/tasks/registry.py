"""Tasks by name: every module of this package without a leading underscore registers one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pe_cli.errors import SectionError, refused
from pe_cli.named import Registry
from pe_cli.schema import problems, read
from pe_cli.stated import TASK, task_block
from pe_cli.tasks.base import Task

_tasks: Registry[Task] = Registry(__package__, "tasks", "base")
names = _tasks.names


def register(cls: type[Task]) -> type[Task]:
    """Make a class known by its `name`."""
    return _tasks.add(cls.name, cls)


def task_class(name: str) -> type[Task]:
    """The class of a task; SectionError with the nearest name where there is none."""
    return _tasks.find(name, TASK)


def canonical_data(data: Any) -> str | dict[str, Any]:
    """A task, as `task:copy` or a block, as {"task": …, every option: …}; other text is a name or a path.

    Raises SectionError with keys as the block has them.
    """
    data = task_block(data)
    if not isinstance(data, Mapping):
        return str(read(str, data))
    if not isinstance(data.get(TASK), str):
        raise refused("", "the block names no task; write 'task: copy' in it")
    cls = task_class(data[TASK])
    try:
        options = cls.Options.model_validate({key: value for key, value in data.items() if key != TASK})
    except ValidationError as error:
        raise SectionError(problems(error)).of(cls.name) from None
    task = cls(options)
    for key, length in (("min_length", options.min_length), ("max_length", options.max_length)):
        if (why := task.lacking(length)) is not None:
            raise refused(key, f"{length} is none that {cls.name} has: {why}")
    return {TASK: cls.name, **options.model_dump(mode="json")}


def build(block: Any, alphabet: str | None = None) -> Task:
    """The task of a canonical block, for a run of another alphabet where one is given."""
    cls = task_class(block[TASK])
    return cls(cls.Options.model_validate({key: value for key, value in block.items() if key != TASK}), alphabet)
