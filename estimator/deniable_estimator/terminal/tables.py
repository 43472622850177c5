"""An answer as a document for a terminal: its table, what fakes could do to it, and its warnings.

Here are shares and pairs, and what documents of all answers have. The strings were written by
strangers: characters that could move the cursor or reorder a line are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from deniable.protocol.coded_message import counted
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.pair_estimate import Given
from deniable_estimator.answers.pair_words import fakes_words, remarks, verdict_words
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.units import CONDITIONALS, Unit, half_width
from deniable_estimator.document.document import Column, Estimate, Frame, Note, Tone
from deniable_estimator.document.terminal import BAR
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.intervals import FloatArray

MOST_ROWS = 40
"""How many values a table shows; CSV and JSON have all of them."""

_NAMED = 5


class Told(NamedTuple):
    """What is particular to a kind: its tables, its finding, and what else is to be said."""

    frames: tuple[Frame, ...] = ()
    verdict: str = ""
    notes: tuple[Note, ...] = ()


def heading(estimate: Basis, *more: str) -> str:
    """The metric, its reports, its windows and its epsilon."""
    windows = estimate.windows
    if len(windows) > 1:
        when, what = f"{len(windows)} windows, {windows[0]} to {windows[-1]}", "reports"
    else:
        when = windows[0] if windows else "no window"
        what = "device" if estimate.n == 1 else "devices"
    parts = f"{estimate.n:,} {what}", when, f"epsilon {estimate.epsilon:.4g}", *more
    return f"{estimate.metric}  {'  ·  '.join(parts)}"


def warned(warnings: Iterable[str]) -> Iterator[Note]:
    """What to bear in mind, one note each."""
    return (Note(f"Note: {warning}.", "warn") for warning in warnings)


def alarms(estimate: Answer) -> Iterator[Note]:
    """What honest reports cannot explain, and what to do about it."""
    for figure in estimate.verdict.alarms(estimate.alarm_level):
        yield Note(f"Anomalous: {figure.text} (p = {figure.p_adjusted:.1g}).", "alarm")
    if estimate.anomalous:
        yield Note(
            "Honest devices do not report like this. See which windows it comes from with "
            f"`deniable estimate anomalies {estimate.metric}` and leave them out; do not correct "
            f"the {estimate.unit.heading[0]}s.",
            "alarm",
        )


def budget_words(answer: Answer, what: str) -> str:
    """What fakes could add, and to what."""
    return f"Poisoning budget: {answer.fakes * 100:.3g}% fake devices could add up to {what}."


def more_words(rest: int, what: str, where: str = "") -> tuple[str, ...]:
    """That a table does not show all; nothing if it does."""
    if rest <= 0:
        return ()
    return (f"and {counted(rest, f'more {what}')}{where}: --csv or --json shows all",)


def shares_told(found: Shares, truth: FloatArray | None = None) -> Told:
    """The largest shares first and ghosts last; with `truth`, shape (d,), beside them."""
    notes: list[Note] = []
    if found.impossible.any():
        names = ", ".join(printable(found.values[at]) for at in found.strange[:_NAMED])
        more = ", ..." if len(found.strange) > _NAMED else ""
        text = f"Impossible: {names}{more}. No honest crowd has such a share; do not rely on it."
        notes.append(Note(text, "alarm"))
    if not found.n:
        return Told(notes=tuple(notes))
    shown = np.lexsort((-found.share, found.ghosts))[:MOST_ROWS]
    top = max(float(np.max(found.high[shown])), 1e-12)
    total = "sums to" if found.complete else "at most"
    columns = (
        Column("value", "value", "words"),
        Column("truth", "truth\n%", data_only=truth is None),
        share_column(found.level, percent(top)),
        Column("normalized", f"normalized\n({total}\n100%)"),
        Column("p_adjusted", "adjusted\np"),
    )
    moved = found.moved
    rows = [
        (
            printable(found.values[at]),
            None if truth is None else percent(truth[at]),
            share_cell((each[at] for each in (found.share, found.low, found.high)), top),
            percent(found.normalized[at]) + ("*" if moved[at] else " "),
            f"{found.p_adjusted[at]:.2g}",
        )
        for at in shown.tolist()
    ]
    tones: list[Tone] = [
        "alarm" if wrong else "plain" if detected else "quiet"
        for wrong, detected in zip(found.impossible[shown], found.detected[shown], strict=True)
    ]
    below = (
        *(("* moved by more than its standard error",) if moved[shown].any() else ()),
        *more_words(len(found.values) - len(shown), "value"),
        *(
            ()
            if found.detected.all()
            else ("Dim: not distinguishable from a value that nobody has.",)
        ),
        budget_words(found, f"{percent(found.budget)} points to any one value"),
    )
    return Told((Frame("values", "", columns, rows, tones, below),), notes=tuple(notes))


def share_column(level: float, top: str, key: str = "share") -> Column:
    """Of shares in percent, with their bars from 0 to `top`."""
    interval = f"{level * 100:.3g}% interval\n%"
    return Column(key, f"{key}\n%", "estimate", interval=interval, scale=f"0{top:>{BAR - 1}}")


def share_cell(numbers: Iterable[float], top: float) -> Estimate:
    """A share in percent with its interval, and its bar from 0 to `top`."""
    share, low, high = map(float, numbers)
    between = f"{percent(low)} .. {percent(high)}"
    return Estimate(share, percent(share), "plain", between, (low / top, share / top, high / top))


def estimate_cell(
    unit: Unit, numbers: Iterable[float], axis: tuple[float, float] | None = None
) -> Estimate:
    """A number in its unit with its interval, and its bar on an axis between two ends."""
    value, low, high = map(float, numbers)
    spread = half_width(value, low, high)
    if math.isnan(value):
        return Estimate(value, unit.text(value, spread), between="")
    drawn = None
    if axis is not None:
        base, top = axis
        # An axis without a length is that of shares that are all 0 or below it.
        long = max(top - base, 1e-12)
        low_at, at, high_at = ((each - base) / long for each in (low, value, high))
        drawn = max(low_at, 0.0), at, min(high_at, 1.0)
    return Estimate(
        *(value, unit.text(value, spread), "plain", interval(unit, low, high, spread), drawn)
    )


def interval(unit: Unit, low: float, high: float, spread: float) -> str:
    """The ends of an interval in words, which may have no limit on a side."""
    if math.isfinite(low) and math.isfinite(high):
        return f"{unit.text(low, spread)} .. {unit.text(high, spread)}"
    if math.isfinite(low):
        return f"at least {unit.text(low, spread)}"
    if math.isfinite(high):
        return f"at most {unit.text(high, spread)}"
    return "unknown"


def percent(share: float) -> str:
    """A share in percent, with as many digits as a small one needs."""
    digits = 2 if abs(share) >= 0.001 or share == 0 else 4
    return f"{share * 100:.{digits}f}"


def printable(value: str) -> str:
    """The value without control characters for the terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in value
    )


def direction(answer: Answer, given: str | None) -> Given:
    """Which list the conditionals are given, by the name of its metric; the first if not said.

    Raises:
        EstimateError: the answer is no pair, or not of that metric.
    """
    if given is None:
        return "first"
    if not isinstance(answer, PairAnswer):
        raise EstimateError(f"{answer.metric} is not a pair: leave --given out")
    if given not in answer.names:
        raise EstimateError(
            f"{answer.metric} is a pair of {' and '.join(answer.names)}: give one of them"
        )
    return "first" if given == answer.names[0] else "second"


def pair_told(pair: PairAnswer, truth: FloatArray | None = None, given: Given = "first") -> Told:
    """Each cell with its share, and the share among those with one of its values; with `truth`,
    shape (cells,), beside them."""
    notes = tuple(warned(remarks(pair)))
    if not pair.n:
        return Told(verdict=verdict_words(pair), notes=notes)
    size, found = len(pair.joint.values), pair.residuals
    places = np.arange(size)
    if size > MOST_ROWS and found is not None:
        # Those furthest from independence first.
        places = np.argsort(found.p_value.ravel(), kind="stable")
    shown = places[:MOST_ROWS].tolist()
    between = f"{pair.level * 100:.3g}%\ninterval"
    condition = pair.names[0 if given == "first" else 1]
    columns = (
        *(Column(name, name, "words") for name in pair.names),
        Column("truth", "truth\n%", data_only=truth is None),
        Column("share", "share\n%", "estimate", interval=between),
        Column("given", f"of its {condition}\n%", "estimate", interval=between),
        Column("residual", "beyond\nchance\npoints"),
    )
    carries = pair.carries.ravel()
    below = (
        *more_words(size - len(shown), "cell", ", nearer to independence"),
        *(("Bold: cells that differ from independence.",) if carries.any() else ()),
        *(
            ()
            if pair.joint.detected.all()
            else ("Dim: not distinguishable from a cell that nobody is in.",)
        ),
        budget_words(pair, f"{CONDITIONALS.text(pair.budget, pair.budget)} points to any one cell"),
        *fakes_words(pair),
    )
    tones: list[Tone] = [
        "strong" if carries[at] else "plain" if pair.joint.detected[at] else "quiet" for at in shown
    ]
    rows = [_pair_row(pair, at, given, truth) for at in shown]
    frame = Frame("cells", "", columns, rows, tones, below)
    return Told((frame,), verdict_words(pair), notes)


def _pair_row(
    pair: PairAnswer, place: int, given: Given, truth: FloatArray | None
) -> Sequence[Any]:
    at = divmod(place, pair.shape[1])
    joint, side, apart = pair.joint, pair.conditionals[given], pair.residuals
    cells = [
        estimate_cell(CONDITIONALS, (each[index] for each in columns))
        for index, columns in (
            (place, (joint.share, joint.low, joint.high)),
            (at, (side.share, side.low, side.high)),
        )
    ]
    if not side.known[at]:
        cells[1] = Estimate(None, "too few")
    away = None
    if apart is not None:
        away = CONDITIONALS.signed(float(apart.value[at]), float(apart.std_error[at]))
    return (
        *(margin.values[each] for margin, each in zip(pair.margins, at, strict=True)),
        None if truth is None else CONDITIONALS.text(float(truth[place]), 0.001),
        *cells,
        away,
    )
