"""Which web pages may send batches: the Fetch standard's CORS, only for the ingest route.

Browsers ask before they send application/json to another origin, and not before they send
text/plain. So a body of text/plain from a page that may not send is refused when it comes
(`BatchReader.media_type`).

No credentials are ever allowed, so a browser sends no cookies.
"""

from __future__ import annotations

from deniable_collector.refusals import IntakeError
from deniable_collector.settings import Settings

_DAY = 86_400

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
        return {**headers, **_PREFLIGHT} if "Access-Control-Allow-Origin" in headers else headers


def origin_refused() -> IntakeError:
    """The error for a body of a page whose origin may not send."""
    return IntakeError(
        "origin-not-allowed",
        "pages of this origin may not send here: the operator names those that may in "
        "DENIABLE_CORS_ORIGINS",
    )
