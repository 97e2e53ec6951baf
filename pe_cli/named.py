"""Classes by name: what the modules of a package register, all of them imported when a name is first asked for."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from pe_cli.errors import Problem, canonical, nearest, refused
from pe_cli.schema import shown

T = TypeVar("T")


class Registry(Generic[T]):
    """Every module of a package registers one, but for those with a leading underscore and those in `besides`.

    `kind` is what errors call them: encodings, tasks.
    """

    def __init__(self, package: str, kind: str, *besides: str) -> None:
        self.package, self.kind, self.besides = package, kind, {"registry", *besides}
        self._classes: dict[str, type[T]] = {}

    def add(self, name: str, cls: type[T]) -> type[T]:
        """Make a class known by its name. TypeError where another module has that name."""
        if name in self._classes and self._classes[name].__module__ != cls.__module__:
            raise TypeError(f"two {self.kind} are named '{name}'")
        self._classes[name] = cls
        return cls

    @cached_property
    def classes(self) -> Mapping[str, type[T]]:
        """All of them by name."""
        for module in pkgutil.iter_modules(sys.modules[self.package].__path__):
            if not module.name.startswith("_") and module.name not in self.besides:
                importlib.import_module(f"{self.package}.{module.name}")
        return self._classes

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self.classes)

    def explained(
        self, problems: Iterable[Problem], name: str, options: Callable[[type[T]], Container[str]]
    ) -> list[Problem]:
        """With those that have it, where the class of this name does not have an option."""
        found = []
        for one in problems:
            if one.known is not None and one.text.startswith("unknown key"):
                owners = [other for other in self.names() if one.key in options(self.classes[other])]
                elsewhere = f"; it is an option of {', '.join(owners)}" if owners else ""
                text = one.text.replace("unknown key", f"{name} has no such option", 1)
                one = one._replace(text=text + elsewhere)
            found.append(one)
        return found

    def find(self, name: str, key: str = "") -> type[T]:
        """The class of a name; SectionError, at `key`, with the nearest name where there is none."""
        known = canonical(name)
        if known not in self.classes:
            raise refused(key, f"{shown(name)} is not known{nearest(name, self.names())}")
        return self.classes[known]
