"""One mistake in a registry, a warning about it, or a note."""

from __future__ import annotations

from typing import Literal

from deniable.frozen import frozen

__all__ = ["Problem"]


@frozen
class Problem:
    """One mistake, warning or note: where it is and what to do about it."""

    line: int | None
    where: str
    message: str
    severity: Literal["error", "warning", "note"] = "error"

    def describe(self, source: str) -> str:
        """`file:line: severity: where: message`, as editors and people read it."""
        place = source if self.line is None else f"{source}:{self.line}"
        where = f"{self.where}: " if self.where else ""
        return f"{place}: {self.severity}: {where}{self.message}"
