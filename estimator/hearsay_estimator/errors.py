"""The estimator's leaves on the error tree of `hearsay.errors`.

::

    HearsayError
    └── EstimateError          these counts, this scheme or these values give no estimate
        ├── CandidatesError    a file of candidates cannot be used (carries path and line)
        └── PopulationError    a simulated population cannot be made (carries path and line)
"""

from __future__ import annotations

from hearsay import HearsayError

__all__ = ["CandidatesError", "EstimateError", "PopulationError"]


class EstimateError(HearsayError):
    """What was asked cannot be estimated; the message says what to ask instead."""


class _FileError(EstimateError):
    """A file of the analyst's has a mistake: `source` names it, `line` counts from 1."""

    def __init__(self, source: str, line: int | None, message: str) -> None:
        self.source = source
        self.line = line
        super().__init__(f"{source}: {message}" if line is None else f"{source}:{line}: {message}")


class CandidatesError(_FileError):
    """The file of candidates has a mistake."""


class PopulationError(_FileError):
    """The file of shares has a mistake."""
