"""Which web pages may send batches: the Fetch standard's CORS, for the ingest route alone.

No credentials are ever allowed, so a browser sends no cookie along.
"""

from __future__ import annotations

from deniable_collector.settings import Settings

__all__ = ["Cors"]

_DAY = 86_400

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "authorization, content-encoding, content-type, x-deniable-key",
    "Access-Control-Max-Age": str(_DAY),
}


class Cors:
    """The headers that let pages of the configured origins read an answer."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._origins = frozenset(origins)
        self._anyone = "*" in self._origins

    @classmethod
    def of(cls, settings: Settings) -> Cors | None:
        """What the settings ask for; None where no page may send, which then costs nothing."""
        return cls(settings.cors_origins) if settings.cors_origins else None

    def headers(self, origin: str) -> dict[str, str]:
        """What an answer carries for a request from this origin; "" where it names none."""
        if self._anyone:
            allowed = {"Access-Control-Allow-Origin": "*"}
        elif origin in self._origins:
            allowed = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        else:
            return {"Vary": "Origin"}
        return {**allowed, "Access-Control-Expose-Headers": "Retry-After"}

    def preflight(self, origin: str) -> dict[str, str]:
        """What the answer to OPTIONS carries."""
        headers = self.headers(origin)
        return {**headers, **_PREFLIGHT} if "Access-Control-Allow-Origin" in headers else headers
