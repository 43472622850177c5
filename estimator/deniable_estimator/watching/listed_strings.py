"""The strings that the operator has listed for a metric."""

from __future__ import annotations

from pathlib import Path

from deniable import Metric
from deniable.value_list import read_values

__all__ = ["candidates_of"]


def candidates_of(metric: Metric, folder: Path | None) -> list[str] | None:
    """The strings to look for, from METRIC.txt in that folder; None if there is no such file.

    Raises:
        ValueListError: the list cannot be read or has a mistake.
    """
    if not metric.needs_candidates or folder is None:
        return None
    path = folder / f"{metric.name}.txt"
    return read_values(path) if path.is_file() else None
