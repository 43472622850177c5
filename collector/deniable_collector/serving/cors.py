"""Which web pages may send batches: the Fetch standard's CORS, only for the ingest route.

Browsers ask before they send application/json to another origin, and not before they send
text/plain. So a body of text/plain from a page that may not send is refused when it comes
(`BatchReader.media_type`).

No credentials are ever allowed, so a browser sends no cookies.
"""

from __future__ import annotations

import re

from deniable_collector.operation.events import tell
from deniable_collector.refusals import IntakeError
from deniable_collector.settings import Settings

_DAY = 86_400

_MOST_TOLD = 20
"""How many origins a process remembers and logs; whoever sends requests chooses them."""

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,255}")

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "authorization, content-encoding, content-type, x-deniable-key",
    "Access-Control-Max-Age": str(_DAY),
}


class Cors:
    """The headers that let pages of the configured origins read a response."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._origins = frozenset(origins)
        self._anyone = "*" in self._origins

    @classmethod
    def of(cls, settings: Settings) -> Cors | None:
        """The headers that the settings ask for; None if no page may send."""
        return cls(settings.cors_origins) if settings.cors_origins else None

    def allows(self, origin: str) -> bool:
        """Whether pages of this origin may send."""
        return self._anyone or origin in self._origins

    def headers(self, origin: str) -> dict[str, str]:
        """The headers for a request from this origin; "" if the request names none."""
        if self._anyone:
            allowed = {"Access-Control-Allow-Origin": "*"}
        elif origin in self._origins:
            allowed = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        else:
            return {"Vary": "Origin"}
        return {**allowed, "Access-Control-Expose-Headers": "Retry-After"}

    def preflight(self, origin: str) -> dict[str, str]:
        """The headers of the response to OPTIONS."""
        headers = self.headers(origin)
        if "Access-Control-Allow-Origin" not in headers:
            tell_refused(origin)
            return headers
        return {**headers, **_PREFLIGHT}


_told: set[str] = set()
"""The refused origins that this process has logged."""


def tell_refused(origin: str) -> None:
    """Log that pages of an origin may not send, once for each origin. An origin names a site, and
    nobody who visits it."""
    if len(_told) < _MOST_TOLD and origin not in _told and _ORIGIN.fullmatch(origin):
        _told.add(origin)
        tell(
            "warning",
            "origin-refused",
            f"pages of {origin} may not send: if they are yours, add it to DENIABLE_CORS_ORIGINS",
            origin=origin,
        )


def origin_refused(origin: str) -> IntakeError:
    """The error for a body of a page whose origin may not send."""
    tell_refused(origin)
    return IntakeError(
        "origin-not-allowed",
        "pages of this origin may not send here: the operator names those that may in "
        "DENIABLE_CORS_ORIGINS",
    )
