"""The analyst's file of candidates: UTF-8 text, one to a line, normalized to NFC."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from hearsay_estimator.errors import CandidatesError

__all__ = ["parse_candidates", "read_candidates"]


def read_candidates(path: str | Path) -> tuple[str, ...]:
    """The candidates in a file, in its order.

    Raises:
        CandidatesError: it cannot be read, is empty or not UTF-8, or holds a blank line or
            a candidate twice.
    """
    source = str(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CandidatesError(source, None, f"cannot be read: {error.strerror}") from error
    return parse_candidates(content, source)


def parse_candidates(content: bytes, source: str) -> tuple[str, ...]:
    """The candidates in the bytes of a file; `source` is what errors call it.

    Raises:
        CandidatesError: as `read_candidates`.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CandidatesError(source, line, "is not UTF-8: save the file as UTF-8") from None
    # No candidate is split or joined by this: a line end composes with nothing.
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    lines = text.removesuffix("\n").split("\n")
    if not text.strip():
        raise CandidatesError(source, None, "holds no candidates: write one to a line")
    if not all(lines) or any(map(str.isspace, lines)):
        blank = next(number for number, line in enumerate(lines, 1) if not line.strip())
        raise CandidatesError(source, blank, "is blank: remove the line")
    if len(set(lines)) != len(lines):
        raise _duplicate(lines, source)
    return tuple(lines)


def _duplicate(lines: list[str], source: str) -> CandidatesError:
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        earlier = first.setdefault(line, number)
        if earlier != number:
            return CandidatesError(
                source, number, f"{line!r} stands in line {earlier} already: remove one of them"
            )
    raise AssertionError("no line stands twice")
