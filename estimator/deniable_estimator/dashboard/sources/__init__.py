"""The data of the pages, in classes each of which adds one kind of question to the one before:
`lists`, `answers`, `trends` and `windows`."""

from __future__ import annotations

from deniable_estimator.dashboard.sources.windows import DataSource

__all__ = ["DataSource"]
