"""The dashboard: a read-only web page over the tallies, apart from the public collector."""

from __future__ import annotations

from deniable_estimator.dashboard.app import create_app

__all__ = ["create_app"]
