"""A release as pages show it: its numbers with their intervals drawn, and words of its manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from deniable_estimator.answers.units import NumberUnit, cell_words, value_words
from deniable_estimator.document.plot.marks import BarRow
from deniable_estimator.releasing.ledger import KeptRelease, ListedRelease
from deniable_estimator.releasing.words import (
    added_noise,
    assumed,
    figure,
    form_name,
    holds_against,
    method_name,
    of_shares,
    pair_part,
    statement,
)


@dataclass(frozen=True, slots=True)
class ReleasedRow:
    """One number as the page has it."""

    window: str
    row: BarRow


@dataclass(frozen=True, slots=True)
class ListedView:
    """A release as the list shows it."""

    id: str
    made: date
    manifest: Mapping[str, Any]

    @property
    def epsilon(self) -> str:
        """In figures."""
        return figure(self.manifest["epsilon"])

    @property
    def method(self) -> str:
        """How it was made private."""
        return method_name(self.manifest["method"])

    @property
    def form(self) -> str:
        """What was published."""
        return form_name(self.manifest["form"])

    @property
    def part(self) -> str | None:
        """Of which pair its numbers are, if of one."""
        return pair_part(self.manifest)


@dataclass(frozen=True, slots=True)
class ReleasedView(ListedView):
    """A release as its page shows it."""

    rows: tuple[ReleasedRow, ...]
    more: int
    leader: str | None
    trend: bool

    @property
    def statement(self) -> str:
        """The line beneath its numbers."""
        return statement(self.manifest)

    @property
    def assumed(self) -> tuple[str, ...]:
        """What must hold for its guarantee."""
        return tuple(assumed(self.manifest["method"], self.manifest["reports_of_a_device"]))

    @property
    def noise(self) -> str | None:
        """How large its noise is, if it adds to numbers."""
        return added_noise(self.manifest["noise"])

    @property
    def against(self) -> str:
        """Against whom its guarantee holds."""
        return holds_against(self.manifest["method"])


def view_of(found: KeptRelease, most: int) -> ReleasedView:
    """The release with its first rows, or of a trend its newest."""
    assert found.document is not None
    whole = json.loads(found.document)
    manifest, data = whole["manifest"], whole["data"]
    columns, rows = data["columns"], data["rows"]
    leader = rows[0][0] if columns == ["leader"] else None
    trend = columns[0] == "window"
    shown = [] if leader is not None else rows[:most]
    # The newest windows of a trend matter most.
    if trend:
        shown = rows[-most:] if most else []
    shares = of_shares(manifest)
    return ReleasedView(
        found.id,
        found.made,
        manifest,
        tuple(_rows(shown, manifest, trend=trend, shares=shares)),
        0 if leader is not None else len(rows) - len(shown),
        leader,
        trend,
    )


def line_of(found: ListedRelease) -> ListedView:
    """The release as a line of the list."""
    return ListedView(found.id, found.made, found.manifest)


def _rows(
    rows: list[list[Any]], manifest: Mapping[str, Any], *, trend: bool, shares: bool
) -> list[ReleasedRow]:
    told = [row[2:] if trend else row for row in rows]
    ends = [each for row in told for each in (row[1], row[3], row[4]) if each is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    span = (high - low) or 1.0

    def text(value: float | None) -> str:
        return _text(value, shares=shares, unit=manifest["unit"])

    def at(value: float | None, missing: float) -> float:
        place: float = missing if value is None else value
        return float(round(100 * (place - low) / span, 2))

    found = []
    for row, (name, estimate, _, start, end) in zip(rows, told, strict=True):
        places = at(estimate, low), at(start, low), at(end, high)
        texts = text(start), text(end)
        drawn = BarRow(_name(manifest, name), text(estimate), *places, *texts)
        found.append(ReleasedRow(row[0] if trend else "", drawn))
    return found


def _name(manifest: Mapping[str, Any], name: str) -> str:
    """What people call a row: that of a pair, or of a number that a pair cuts, in words."""
    pair = manifest.get("pair")
    if pair is None:
        return NumberUnit().label(name) if not of_shares(manifest) else name
    return value_words(name) if pair["name"] != manifest["metric"] else cell_words(name)


def _text(value: float | None, *, shares: bool, unit: str | None) -> str:
    if value is None:
        return "?"
    return f"{value:z.2%}" if shares else f"{value:.4g}{f' {unit}' if unit else ''}"
