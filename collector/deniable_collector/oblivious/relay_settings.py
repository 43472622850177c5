"""A relay's settings: its own, and of a collector's those about connections."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

import deniable_collector.settings
from deniable.protocol.addresses import check_endpoint
from deniable_collector.settings import parse_bind, setting

_SHARED = (
    *(
        "bind",
        "metrics_bind",
        "workers",
        "log_format",
        "rate",
        "trusted_proxies",
        "cors_origins",
        "max_body",
    ),
    *("request_timeout", "keep_alive", "max_connections", "network_connections", "queue"),
)
"""The collector's settings that hold for a relay too."""


def _gateway(value: str) -> str:
    check_endpoint(value)
    return value.rstrip("/")


def _key(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._~+/-]{16,256}=*", value):
        raise ValueError("must be a key of 16 to 256 letters, digits and - . _ ~ + /")
    return value


def _seconds(value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", value) or not 1 <= int(value) <= 300:
        raise ValueError("must be a whole number from 1 to 300")
    return int(value)


@dataclass(frozen=True)
class RelaySettings(deniable_collector.settings.Settings):
    """How a relay runs; each field is a variable, as for the collector."""

    bind: str = setting("127.0.0.1:8081", parse_bind, "host:port or unix:/path to listen at")
    relay_gateway: str = setting(
        "", _gateway, "the one gateway that capsules go to, like https://t.acme.example"
    )
    relay_key: str = setting(
        "", _key, "shown to the gateway, which knows it from DENIABLE_RELAY_KEYS", secret=True
    )
    relay_timeout: int = setting(10, _seconds, "seconds in which the gateway must have responded")

    @classmethod
    def table(cls) -> list[tuple[str, Any, str]]:
        """Every variable that a relay heeds, with its default and what it means."""
        heeded = {f"DENIABLE_{each.name.upper()}" for each in fields(cls)
                  if each.name in _SHARED or each.name.startswith("relay_")}  # fmt: skip
        return [row for row in super().table() if row[0] in heeded and row[0] != _KEYS]

    def in_force(self) -> dict[str, Any]:
        """Those with their values, without secrets."""
        heeded = {name for name, _, _ in self.table()}
        return {name: each for name, each in super().in_force().items() if name in heeded}


_KEYS = "DENIABLE_RELAY_KEYS"
"""The gateway's setting, not the relay's."""
