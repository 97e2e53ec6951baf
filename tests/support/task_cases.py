"""Tasks as the tests draw them."""

from __future__ import annotations

from random import Random
from typing import Any

from pe_cli.tasks import Instance, Task, build, canonical_data


def task(name: str, **options: Any) -> Task:
    return build(canonical_data({"task": name, **options}))


def instances(name: str, length: int, count: int = 50, **options: Any) -> list[Instance]:
    made = task(name, **options)
    return [made.instance(length, Random(number)) for number in range(count)]


class Scripted(Random):
    """Draws what a test says, so that an instance can be written down by hand."""

    def __init__(self, *values: Any) -> None:
        super().__init__(0)
        self.values = list(values)

    def choices(self, *arguments: Any, **options: Any) -> Any:
        return self.values.pop(0)

    def choice(self, *arguments: Any) -> Any:
        return self.values.pop(0)

    def randrange(self, *arguments: Any) -> Any:
        return self.values.pop(0)

    def sample(self, *arguments: Any, **options: Any) -> Any:
        return self.values.pop(0)

    def random(self) -> Any:
        return self.values.pop(0)
