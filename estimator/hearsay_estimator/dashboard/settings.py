"""The dashboard's settings, read from HEARSAY_* variables; every bad one is named at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hearsay import HearsayError

__all__ = ["MIN_TOKEN_LENGTH", "Settings", "SettingsError"]

MIN_TOKEN_LENGTH = 16
"""A signed session cookie lets its holder test guesses of the token without asking us, so
a token must be out of reach of guessing."""


class SettingsError(HearsayError):
    """Settings that cannot be used; `problems` names each with what to do."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the dashboard cannot start:\n" + "\n".join(f"  {p}" for p in problems))


@dataclass(frozen=True)
class Settings:
    """What a dashboard needs to know."""

    token: str
    """What people and programs show to be let in."""
    registry: str = "metrics.toml"
    store: str = "sqlite:///hearsay.db"
    login_link: bool = False
    """Whether /login?token=... signs in, once, for a link printed in a terminal."""
    trusted_proxies: int = 0
    """How many proxies in front of us set X-Forwarded-Proto and -Host truthfully."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read HEARSAY_REGISTRY, HEARSAY_STORE, HEARSAY_DASHBOARD_TOKEN (or _TOKEN_FILE),
        HEARSAY_DASHBOARD_LOGIN_LINK (1 or 0) and HEARSAY_TRUSTED_PROXIES (a count).

        Raises:
            SettingsError: some are missing or cannot be read.
        """
        problems: list[str] = []
        token = _token(environment, problems)
        link = environment.get("HEARSAY_DASHBOARD_LOGIN_LINK", "0")
        if link not in ("0", "1"):
            problems.append("HEARSAY_DASHBOARD_LOGIN_LINK must be 1 or 0")
        proxies = environment.get("HEARSAY_TRUSTED_PROXIES", "0")
        if not (proxies.isascii() and proxies.isdigit()):
            problems.append("HEARSAY_TRUSTED_PROXIES must be the number of proxies in front: 0, 1")
        if problems:
            raise SettingsError(problems)
        return cls(
            token=token,
            registry=environment.get("HEARSAY_REGISTRY", cls.registry),
            store=environment.get("HEARSAY_STORE", cls.store),
            login_link=link == "1",
            trusted_proxies=int(proxies),
        )


def _token(environment: Mapping[str, str], problems: list[str]) -> str:
    path = environment.get("HEARSAY_DASHBOARD_TOKEN_FILE")
    token = environment.get("HEARSAY_DASHBOARD_TOKEN", "")
    if path:
        try:
            token = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            problems.append(f"HEARSAY_DASHBOARD_TOKEN_FILE names {path}, which cannot be read")
            return ""
    if len(token) < MIN_TOKEN_LENGTH:
        problems.append(
            f"HEARSAY_DASHBOARD_TOKEN must have at least {MIN_TOKEN_LENGTH} characters: "
            "make one with `openssl rand -hex 16`"
        )
    return token
