"""The dashboard's settings: the collector's, because both read one store, and its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import hearsay_collector.settings

__all__ = ["MIN_TOKEN_LENGTH", "Settings"]

MIN_TOKEN_LENGTH = 16
"""A signed session cookie lets its holder test guesses of the token without asking us, so
a token must be out of reach of guessing."""


def _token(value: str) -> str:
    if len(value) < MIN_TOKEN_LENGTH:
        raise ValueError(
            f"must have at least {MIN_TOKEN_LENGTH} characters: make one with "
            "`openssl rand -hex 16`"
        )
    return value


def _switch(value: str) -> bool:
    if value not in ("0", "1"):
        raise ValueError("must be 1 or 0")
    return value == "1"


def _folder(value: str) -> str:
    if not Path(value).is_dir():
        raise ValueError("must be a folder that exists")
    return value


@dataclass(frozen=True)
class Settings(hearsay_collector.settings.Settings):
    """How a dashboard runs. Each field is the variable HEARSAY_ and its name in capitals."""

    dashboard_token: str = field(
        default="", repr=False, metadata={"parse": _token, "help": "what lets people in"}
    )
    dashboard_bind: str = field(
        default="127.0.0.1:8090",
        metadata={"parse": str, "help": "host:port or unix:/path to listen at"},
    )
    dashboard_login_link: bool = field(
        default=False,
        metadata={"parse": _switch, "help": "1: /login?token=... signs in, once"},
    )
    candidates_dir: str = field(
        default="",
        metadata={
            "parse": _folder,
            "help": "a folder of METRIC.txt files: the strings to look for, one on each line",
        },
    )
