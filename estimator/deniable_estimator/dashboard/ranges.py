"""The days that a page looks at: read from its address, or the latest complete windows."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from deniable import DeniableError, Metric, WindowError
from deniable.protocol import windows
from deniable_estimator.asking.comparison import asked_since, left_out_alike
from deniable_estimator.asking.query import Days, check_day
from deniable_estimator.dashboard.annotation_file import current_annotations
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import alternatives, counted, message

_T = TypeVar("_T", bound=str)

_PRESETS = (7, 28, 91, 364)
"""Whole weeks, so that the days before them hold the same weekdays."""
_DEFAULT_DAYS = 28
_MONTHS = (1, 3, 12)
_DEFAULT_MONTHS = 3
_LONGEST = 3660
_MOST_LEFT_OUT = 100
LONGEST_SEARCH = 200
"""Characters of a search."""
_MOST_SINCE = 4
"""So many annotations are one click away; an address can name any."""
DAYS = ("since", "from", "to", "without")
"""The parameters of a range."""
_RUNNING = {
    "day": message("today"),
    "week": message("this week"),
    "month": message("this month"),
}


class RangeError(DeniableError):
    """What was asked for cannot be shown; the message says what can, `fields` where to write it."""

    def __init__(self, text: str, *fields: str) -> None:
        super().__init__(text)
        self.fields = fields


def check_names(arguments: Iterable[str], known: Collection[str]) -> None:
    """Refuse a parameter that a page does not know: it would have been meant to change something.

    Raises:
        RangeError: one has another name than those `known`; the message names one like it.
    """
    for name in arguments:
        if name in known or name == "lang":
            continue
        near = difflib.get_close_matches(name, known, n=1)
        if near:
            raise RangeError(
                message(
                    "“{name}” is not known here. Did you mean “{near}”?", name=name, near=near[0]
                )
            )
        raise RangeError(
            message(
                "“{name}” is not known here. Remove it; {known} can be given.",
                name=name,
                known=alternatives(f"“{each}”" for each in known),
            )
        )


def one_of(text: str, name: str, choices: Iterable[_T]) -> _T:
    """What a parameter that is one of some choices says.

    Raises:
        RangeError: it is none of them.
    """
    for each in choices:
        if each == text:
            return each
    raise RangeError(
        message("“{name}” can be {choices} here.", name=name, choices=alternatives(choices)), name
    )


def searched(arguments: Mapping[str, str], name: str) -> str:
    """What a parameter looks for.

    Raises:
        RangeError: it is too long.
    """
    # Values are in normal form C.
    text = unicodedata.normalize("NFC", arguments.get(name, "")).strip()
    if len(text) > LONGEST_SEARCH:
        told = message(
            "“{name}” can have {most} characters at most.", name=name, most=LONGEST_SEARCH
        )
        raise RangeError(told, name)
    return text


def read_range(
    arguments: Mapping[str, str],
    now: float,
    kind: windows.Kind = "day",
    metric: Metric | None = None,
    prefix: str = "",
) -> Days:
    """The range named by `from`, `to` and `without`, or by `since` and `without`; annotations that
    concern other metrics than this one are none.

    What is left out ends with the last complete window of that kind, and lasts 28 days, or three
    months where windows are months. `now` is POSIX time in seconds; `prefix` stands before the
    first two names.

    Raises:
        RangeError: no date that can be asked for, an end before its beginning, over ten years, or
            no window to leave out; or nothing of the name that `since` gives, or no complete window
            after it.
    """
    since = not prefix and arguments.get("since")
    from_, to = ("since", "since") if since else (f"{prefix}from", f"{prefix}to")
    chosen = _since(arguments, now, kind, metric) if since else _range(arguments, now, kind, prefix)
    chosen = replace(chosen, without=_left_out(arguments.get("without", ""), kind))
    if chosen.days < 1:
        raise RangeError(
            message(
                "“{end}” ({last}) lies before “{begin}” ({first}). Swap the two dates.",
                end=to,
                last=chosen.last,
                begin=from_,
                first=chosen.first,
            ),
            from_,
            to,
        )
    if chosen.days > _LONGEST:
        told = message("The range is longer than ten years. Choose a shorter one.")
        raise RangeError(told, from_, to)
    return chosen


def _range(arguments: Mapping[str, str], now: float, kind: windows.Kind, prefix: str) -> Days:
    """The days from one to another."""
    begin, end = (_day(arguments.get(name), name) for name in (f"{prefix}from", f"{prefix}to"))
    last = end or windows.last_complete(kind, now)
    if end is None and begin is not None and begin > last:
        last = day_at(now)
    return Days(begin or _back(last, kind, _DEFAULT_DAYS, _DEFAULT_MONTHS), last)


def _since(
    arguments: Mapping[str, str], now: float, kind: windows.Kind, metric: Metric | None
) -> Days:
    """The days after what happened."""
    if arguments.get("from") or arguments.get("to"):
        raise RangeError(message("“since” takes the place of “from” and “to”."), "from", "to")
    try:
        return asked_since(arguments["since"], current_annotations() or (), kind, now, metric)
    except EstimateError as error:
        raise RangeError(str(error), "since") from None


def is_ranged(arguments: Mapping[str, Any]) -> bool:
    """Whether an address names days."""
    return any(arguments.get(name) for name in DAYS[:3])


def is_day(text: str) -> bool:
    """Whether a browser's field for dates takes the text; none of it is what such a field shows
    before anything is written."""
    if not text:
        return True
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def presets(
    now: float, kind: windows.Kind = "day", running: Days | None = None
) -> list[tuple[str, Days]]:
    """Ranges that are one click away, each with its text: those that end with the last complete
    window of that kind, and before them the days so far of the window that is `running`, if it has
    reports."""
    last = windows.last_complete(kind, now)
    found: list[tuple[str, Days]] = [(_RUNNING[kind], running)] if running else []
    for count in _MONTHS if kind == "month" else _PRESETS:
        if kind == "month":
            text = counted("{count} month", "{count} months", count)
        else:
            text = message("{days} days", days=count)
        found.append((text, Days(_back(last, kind, count, count), last)))
    return found


def since_presets(metric: Metric | None, now: float) -> list[tuple[str, Days]]:
    """The days after each of the latest annotations of a metric, or of all metrics, after which a
    window is complete; the latest first."""
    found: dict[str, tuple[str, Days]] = {}
    kind: windows.Kind = metric.window if metric else "day"
    for each in reversed(current_annotations() or ()):
        if metric is not None and not each.concerns(metric.name):
            continue
        if len(found) == _MOST_SINCE:
            break
        with suppress(RangeError):
            days = read_range({"since": each.text}, now, kind, metric)
            text = message("since {moment}", moment=days.since)
            found.setdefault(days.since, (text, days))
    return list(found.values())


def before(days: Days, kind: windows.Kind) -> Days:
    """The latest days before these that hold the same weekdays and share no window of that kind
    with them: as many whole weeks back as it takes, or as many months.

    What is left out of these days is left out of the others as `left_out_alike` says.
    """
    if days.before is not None:
        return left_out_alike(days.earlier, days)
    try:
        touched = len(windows.span(kind, days.first, days.last))
        if kind == "month":
            last = days.first.replace(day=1) - timedelta(days=1)
            return days.over(_back(last, kind, 0, touched), last)
        back = timedelta(weeks=touched if kind == "week" else -(-days.days // 7))
        return left_out_alike(Days(days.first - back, days.last - back), days)
    except (OverflowError, ValueError):
        return Days(date.min, date.min)


def newest_period(days: Days, now: float, kind: windows.Kind) -> Days | None:
    """The newest complete week, from Monday to Sunday, that ends with these days or before them;
    the newest complete month where windows are months. None where it lies before the year 1."""
    try:
        last = min(days.last, windows.last_complete(kind, now))
        if kind == "month":
            last = (last + timedelta(days=1)).replace(day=1) - timedelta(days=1)
            return days.over(last.replace(day=1), last)
        last -= timedelta(days=last.isoweekday() % 7)
        return days.over(last - timedelta(days=6), last)
    except OverflowError:
        return None


def earlier_range(days: Days, kind: windows.Kind, arguments: Mapping[str, str], now: float) -> Days:
    """The days that these are compared with: those `before`, or from `before_from` to `before_to`.

    Raises:
        RangeError: they cannot be read.
    """
    earlier = before(days, kind)
    ends = {"before_from": earlier.first.isoformat(), "before_to": earlier.last.isoformat()}
    named = {name: text for name in ends if (text := arguments.get(name))}
    if not named:
        return earlier
    asked = {**ends, **named}
    if kind != "month" and len(named) == 1:
        # One end alone: as many days as those that they are compared with.
        length = earlier.last - earlier.first
        with suppress(ValueError, OverflowError):  # what is no date is told below
            if "before_from" in named:
                asked["before_to"] = (date.fromisoformat(asked["before_from"]) + length).isoformat()
            else:
                asked["before_from"] = (date.fromisoformat(asked["before_to"]) - length).isoformat()
    return left_out_alike(read_range(asked, now, kind, prefix="before_"), days)


def _back(last: date, kind: windows.Kind, days: int, months: int) -> date:
    """The first of so many days that end with this one, or of so many months.

    Raises:
        OverflowError, ValueError: it lies before the year 1.
    """
    if kind != "month":
        return last - timedelta(days=days - 1)
    count = 12 * last.year + last.month - months
    return date(count // 12, count % 12 + 1, 1)


def _left_out(text: str, kind: windows.Kind) -> tuple[str, ...]:
    labels = {each.strip() for each in text.split(",") if each.strip()}
    try:
        known = {windows.kind_of(each) for each in labels} <= {kind}
        for each in labels:
            windows.start(each)
    except WindowError:
        known = False
    if not known:
        examples = {"day": "2026-11-21", "week": "2026-W47", "month": "2026-11"}
        raise RangeError(
            message(
                "“without” names the windows to leave out, divided by commas. Write each like "
                "{example}.",
                example=examples[kind],
            ),
            "without",
        )
    if len(labels) > _MOST_LEFT_OUT:
        raise RangeError(
            message("“without” can leave out {most} windows at most.", most=_MOST_LEFT_OUT),
            "without",
        )
    return tuple(sorted(labels))


def _day(text: str | None, name: str) -> date | None:
    if not text:
        return None
    try:
        return check_day(date.fromisoformat(text))
    except EstimateError as error:
        raise RangeError(str(error), name) from None
    except ValueError:
        raise RangeError(
            message(
                "“{name}” is not a date. Write year, month and day, like 2026-11-21.", name=name
            ),
            name,
        ) from None


def day_at(now: float) -> date:
    """The day (UTC) of a POSIX time in seconds."""
    return datetime.fromtimestamp(now, UTC).date()
