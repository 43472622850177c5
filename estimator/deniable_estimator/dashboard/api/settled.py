"""Tells programs whose token sees settled windows alone up to which day these go."""

from __future__ import annotations

from datetime import UTC, datetime

from flask import Response

from deniable_estimator.dashboard.access import reads_settled
from deniable_estimator.dashboard.source import current_source

__all__ = ["tell_settled"]


def tell_settled(response: Response) -> Response:
    """Name the last day (UTC) that the token sees in a header: later windows still take reports,
    and are left out without another word."""
    if reads_settled():
        last = datetime.fromtimestamp(current_source().seen_until - 86_400, UTC).date()
        response.headers["Deniable-Settled"] = last.isoformat()
    return response
