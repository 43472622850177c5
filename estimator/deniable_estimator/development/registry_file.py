"""The `metrics.toml` that a developer edits: what it says now, and whether it has changed."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deniable import Registry, RegistryError
from deniable.protocol.errors import Problem
from deniable.tools.commands import remarks

_EMPTY = Registry("development", {})


@dataclass
class RegistryFile:
    """`registry` is the last one without mistakes; before there was one, it is empty."""

    path: Path
    registry: Registry = field(default_factory=lambda: _EMPTY)
    mistakes: Sequence[Problem] = ()
    """What is wrong with the file as it is now; it is in force only if there is nothing."""
    warnings: Sequence[Problem] = ()
    """What can be read but protects nothing, or will not work."""
    _seen: tuple[object, ...] = ()

    def look(self) -> bool:
        """Read the file if it has changed. Returns whether it has, with or without mistakes."""
        seen = self._signature()
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            registry = Registry.load(self.path)
        except RegistryError as error:
            self.mistakes = tuple(error.problems)
            return True
        self.registry, self.mistakes = registry, ()
        found = remarks(registry, None)
        self.warnings = tuple(each for each in found if each.severity != "note")
        return True

    @property
    def source(self) -> str:
        """What messages call the file."""
        return self.path.name

    def _signature(self) -> tuple[object, ...]:
        """Something that is another when the file, or a list of values that it names, is."""
        return tuple((str(each), _stat(each)) for each in (self.path, *self._lists()))

    def _lists(self) -> list[Path]:
        try:
            document = tomllib.loads(self.path.read_text(encoding="utf-8"))
            metrics = document.get("metrics", {}).values()
            names = [each["values_file"] for each in metrics if "values_file" in each]
        except (OSError, ValueError, AttributeError, TypeError, RecursionError):
            return []
        return [self.path.parent / each for each in names if isinstance(each, str)]


def _stat(path: Path) -> object:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
