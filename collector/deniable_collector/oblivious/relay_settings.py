"""A relay's settings: its own, and of a collector's those about connections."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from typing import Any

import deniable_collector.settings
from deniable.protocol.addresses import check_endpoint
from deniable_collector.settings import matching, parse_bind, setting, whole

_HEEDED = frozenset((
    *("bind", "metrics_bind", "workers", "log_format", "rate", "trusted_proxies", "cors_origins"),
    *("max_body", "request_timeout", "keep_alive", "max_connections", "network_connections"),
    *("queue", "relay_gateway", "relay_key", "relay_timeout"),
))  # fmt: skip
"""Its own settings, and the collector's that hold for a relay too."""


def _gateway(value: str) -> str:
    check_endpoint(value)
    return value.rstrip("/")


@dataclass(frozen=True)
class RelaySettings(deniable_collector.settings.Settings):
    """How a relay runs; each field is a variable, as for the collector."""

    bind: str = setting("127.0.0.1:8081", parse_bind, "host:port or unix:/path to listen at")
    relay_gateway: str = setting(
        "", _gateway, "the one gateway that capsules go to, like https://t.acme.example"
    )
    relay_key: str = setting(
        "",
        matching(
            "[A-Za-z0-9._~+/-]{16,256}=*",
            "must be a key of 16 to 256 letters, digits and - . _ ~ + /",
        ),
        "shown to the gateway, which knows it from DENIABLE_RELAY_KEYS",
        secret=True,
    )
    relay_timeout: int = setting(
        10, whole(1, 300), "seconds in which the gateway must have responded"
    )

    @classmethod
    def heeded(cls) -> list[Field[Any]]:
        """Those of a relay."""
        return [each for each in fields(cls) if each.name in _HEEDED]
