"""The error for a RAPPOR file."""

from __future__ import annotations

from pathlib import Path

from deniable_estimator.errors import EstimateError

__all__ = ["RapporFileError"]


class RapporFileError(EstimateError):
    """A file is malformed or contradicts another: `path`, `line` (from 1; None: all of it)."""

    def __init__(self, path: Path, line: int | None, message: str) -> None:
        self.path = path
        self.line = line
        where = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {message}")
