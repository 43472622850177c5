"""The line of each key in a TOML text; tomllib does not report lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_QUOTES = re.compile(r'"""|' + r"'''")


def locate(text: str) -> dict[Path, int]:
    """The line (from 1) of every table and key that has its own line.

    The tables of an array are counted: the second `[[charts]]` is ("charts", "1"), and ("charts",)
    is the first of them. Best effort, only for messages: keys inside inline tables get the line of
    their table.
    """
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    quoted = False
    for number, line in enumerate(text.splitlines(), start=1):
        inside = quoted
        quoted ^= len(_QUOTES.findall(line)) % 2 == 1
        if inside:
            continue
        if header := _HEADER.match(line):
            table = _path(f"[{header[2]}]")
            lines.setdefault(table, number)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, str(counts[table]))
                lines[table] = number
        elif key := _KEY.match(line):
            lines.setdefault(table + _path(f"{key[1]} = {{}}"), number)
    return lines


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """The line of a path, or of the nearest thing around it that has one."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _path(text: str) -> Path:
    """The keys of a one-line document, read by TOML's own rules for dots and quotes."""
    try:
        nested = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while nested:
        key = next(iter(nested))
        path.append(key)
        nested = nested[key]
    return tuple(path)
