"""The overview: what needs attention, and a card or a line for each metric.

`filters.py` says which metrics are asked for, `listing.py` in which order; `summary.py` what is
said of one, with its change in `week.py`; `judged.py` and `attention.py` say why it needs somebody.
`cache.py` keeps the summaries, and `page.py` writes the page.
"""

from __future__ import annotations

from deniable_estimator.dashboard.overview.attention import attention
from deniable_estimator.dashboard.overview.cache import SummaryCache
from deniable_estimator.dashboard.overview.filters import read_filters
from deniable_estimator.dashboard.overview.listing import list_metrics, read_overview

__all__ = ["SummaryCache", "attention", "list_metrics", "read_filters", "read_overview"]
