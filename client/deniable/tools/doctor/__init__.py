"""`deniable doctor`: why no report arrives, and what to do. docs/how-to/debug.md has its codes."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Level: TypeAlias = Literal["ok", "note", "warning", "error"]
"""An error stops reports or the service. A warning does not yet. A note is only to be known."""


class CheckResult(NamedTuple):
    """One thing that was checked.

    Attributes:
        check: what was looked at, like "state".
        code: what was found, for programs; docs/how-to/debug.md lists them.
        level: how bad it is.
        message: what was found, in words.
        advice: what to do about it; empty where nothing is to be done.
    """

    check: str
    code: str
    level: Level
    message: str
    advice: str = ""


def listed(names: list[str], most: int = 5) -> str:
    """Some names for people to read; of many, the first few."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
