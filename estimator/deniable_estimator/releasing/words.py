"""What a release rests on and costs, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable_estimator.document.document import Column, Estimate, Frame
from deniable_estimator.document.units import NumberUnit, cell_words, value_words
from deniable_estimator.kinds.formats import interval_title, not_listed
from deniable_estimator.messages import message
from deniable_estimator.privacy.words import MAY_FAIL, OPERATOR, rounded_up

if TYPE_CHECKING:
    from deniable_estimator.releasing.preparing import Prepared

METHODS = {
    "exact": message("none: sums as they are"),
    "laplace": message("Laplace noise"),
    "gaussian": message("Gaussian noise"),
    "exponential": message("drawn at random"),
}
"""How a release was made private, in a few words."""
FORMS = {
    "table": message("one table"),
    "trend": message("one table for each window"),
    "leader": message("the leader alone"),
}
"""What was published, in a few words."""

_CHEAP, _DEAR = 0.01, 1.0
"""Noise that adds less than this part of the devices' own variance changes little; noise that adds
more than that costs more accuracy than theirs."""


def statement(manifest: Mapping[str, Any]) -> str:
    """A line that stands beneath published numbers."""
    epsilon = manifest["epsilon"]
    assert isinstance(epsilon, float)
    told = {
        "epsilon": epsilon_text(epsilon),
        "delta": manifest["delta"],
        "reports": manifest["reports"],
    }
    if manifest["method"] == "exact":
        return message(
            "Sums without further noise. To readers of sums they reveal of one device at most "
            "epsilon {epsilon} at delta {delta:g}; {reports:,} reports.",
            **told,
        )
    return message(
        "Released with noise: epsilon {epsilon}, delta {delta:g} for one device, also against "
        "readers who know all other reports; {reports:,} reports.",
        **told,
    )


def pair_part(manifest: Mapping[str, Any]) -> str | None:
    """Of which pair the released numbers are, in a few words; None if devices reported no pair."""
    pair = manifest["pair"]
    if pair is None:
        return None
    if pair["name"] != manifest["metric"]:
        return message("reported as a part of {pair}", pair=pair["name"])
    one, two = pair["of"]
    return message("the pair of {one} and {two}", one=one, two=two)


def holds_against(method: str) -> str:
    """Against whom the epsilon of a release holds."""
    if method == "exact":
        return message("readers of sums")
    return message("readers who know all other reports")


def added_noise(noise: Mapping[str, Any] | None) -> str | None:
    """How large the noise of a manifest is; None where there is none that adds to numbers."""
    if noise is None or noise.get("variance_added") is None:
        return None
    return message(
        "standard deviation {deviation:.3g} on each count; adds {part} to the variance of the "
        "devices' own noise",
        deviation=noise["std_dev"],
        part=_part(noise["variance_added"]),
    )


def _part(added: float) -> str:
    return f"{added:.1%}" if added >= 0.001 else message("less than 0.1%")


def verdict(prepared: Prepared) -> str:
    """What the noise of a release buys, and whether it is worth its price."""
    if prepared.noise is None:
        return (
            "No noise is added. Noise would protect only against readers who know the other "
            "reports: it is dear for few reports, and pointless for many."
        )
    if prepared.request.form == "leader":
        return (
            "Only the name of one value is published. It is the largest with high probability if "
            "it leads by many reports."
        )
    added = prepared.added()
    if added > _DEAR:
        price = (
            "It is dear: it costs more accuracy than the noise of the devices themselves. Release "
            "more reports together, or with a larger epsilon."
        )
    elif added < _CHEAP:
        price = "It is cheap here, because there are many reports."
    else:
        price = "It costs some accuracy."
    return (
        f"The noise adds {_part(added)} to the variance of the devices' own noise. {price} It "
        "protects against readers who know the other reports, and against nobody else: to readers "
        "of sums the sums without it reveal epsilon "
        f"{epsilon_text(prepared.outsider.epsilon.epsilon)} at most."
    )


def assumed(method: str, reports: int) -> Iterator[str]:
    """What must hold for the guarantee of a release, one sentence or two each; `reports` are those
    of one device at most."""
    yield message(
        "Two devices are compared that gave other reports in all of these windows, {count} at "
        "most. How many reports there are, in which rows and segments, counts as known.",
        count=reports,
    )
    if method == "exact":
        yield message(
            "The reader sees nothing but sums, and may know the values of all other devices. "
            "Whoever also knows the other reports, or sent them, learns what the device's own "
            "report reveals."
        )
    else:
        yield message(
            "The reader may know all other reports, and the values of all other devices. Numbers "
            "of the same windows that are published elsewhere without noise undo the noise."
        )
    yield OPERATOR
    if method in ("exact", "gaussian"):
        yield MAY_FAIL


def epsilon_text(epsilon: float) -> str:
    """An epsilon, rounded up in its third digit or later.

    What is beyond its twelfth decimal is the rounding of floats: 0.1 is not shown as 0.101.
    """
    return rounded_up(Fraction(f"{epsilon:.12f}"), 4 if epsilon < 0.1 else 3)


def of_shares(manifest: Mapping[str, Any]) -> bool:
    """Whether the estimates are shares, and no numbers in a unit."""
    return bool(manifest["estimates"] == "shares")


def released_frame(manifest: Mapping[str, Any], data: Mapping[str, Any], most: int) -> Frame:
    """The numbers of a release, at most so many rows; of a trend the newest, which matter most."""
    columns, rows = data["columns"], data["rows"]
    title = message("Released numbers")
    if columns == ["leader"]:
        leader = Column("leader", message("Probably the most common value"), "name")
        return Frame("released", title, (leader,), rows)
    dated = columns[0] == "window"
    shown = rows[max(0, len(rows) - most) :] if dated else rows[:most]
    told = [row[2:] if dated else row for row in shown]
    ends = [each for row in told for each in (row[1], row[3], row[4]) if each is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    span = (high - low) or 1.0

    def text(value: float | None) -> str:
        return _number_text(value, manifest)

    def at(value: float | None, missing: float) -> float:
        return float((missing if value is None else value) - low) / span

    lines = []
    for row, (name, estimate, error, start, end) in zip(shown, told, strict=True):
        cell = Estimate(
            estimate,
            text(estimate),
            between=message("{low} to {high}", low=text(start), high=text(end)),
            drawn=(at(start, low), at(estimate, low), at(end, high)),
        )
        window = row[:2] if dated else ()
        lines.append((*window, _row_name(manifest, name), cell, text(error)))
    of_windows = Column("window", message("Window")), Column("n", message("Reports"), "count")
    told_columns = (
        *(of_windows if dated else ()),
        Column("value", message("Value"), "name"),
        Column(
            *("estimate", message("Estimate"), "estimate"),
            interval=interval_title(manifest["level"]),
            scale=("" if low else "0", text(high)),
            zero=at(0.0, 0.0),
        ),
        Column("std_error", message("Standard error"), aside=True),
    )
    more = len(rows) - len(shown)
    notes = (not_listed(more),) if more else ()
    return Frame("released", title, told_columns, lines, notes=notes)


def _row_name(manifest: Mapping[str, Any], name: str) -> str:
    """What people call a row: that of a pair, or of a number that a pair cuts, in words."""
    pair = manifest.get("pair")
    if pair is None:
        return NumberUnit().label(name) if not of_shares(manifest) else name
    return value_words(name) if pair["name"] != manifest["metric"] else cell_words(name)


def _number_text(value: float | None, manifest: Mapping[str, Any]) -> str:
    if value is None:
        return "?"
    unit = manifest["unit"]
    return f"{value:z.2%}" if of_shares(manifest) else f"{value:.4g}{f' {unit}' if unit else ''}"
