"""The days that a page looks at: those that it is asked for, or the latest complete windows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

from deniable import Metric
from deniable.protocol import windows
from deniable_estimator.asking.comparison import asked_days, kept_since, left_out_alike
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.annotation_file import current_annotations
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import Asked, day_in
from deniable_estimator.messages import counted, message

_PRESETS = (7, 28, 91, 364)
"""Whole weeks, so that the days before them hold the same weekdays."""
_DEFAULT_DAYS = 28
_MONTHS = (1, 3, 12)
_DEFAULT_MONTHS = 3
_LONGEST = 3660
_MOST_SINCE = 4
"""So many annotations are one click away; an address can name any."""
_RUNNING = {
    "day": message("today"),
    "week": message("this week"),
    "month": message("this month"),
}


def read_range(
    asked: Asked,
    now: float,
    kind: windows.Kind = "day",
    metric: Metric | None = None,
    oldest: date = date.min,
) -> Days:
    """The range named by `from`, `to` and `without`, or by `since` and `without`; annotations that
    concern other metrics than this one are none, and `oldest` is the first day that has reports.

    What is left out ends with the last complete window of that kind, and lasts 28 days, or three
    months where windows are months. `now` is POSIX time in seconds.

    Raises:
        EstimateError: an end before its beginning, over ten years, or no window to leave out; or
            nothing of the name that `since` gives, or no complete window after it.
    """
    begin, end, since = (asked.get(name) for name in ("from", "to", "since"))
    last = end or windows.last_complete(kind, now)
    if end is None and begin is not None and begin > last:
        last = day_at(now)
    usual = Days(_back(last, kind, _DEFAULT_DAYS, _DEFAULT_MONTHS), last)
    fields = ("since",) if since else ("from", "to")
    try:
        noted = current_annotations() or () if since else ()
        found = asked_days(asked, usual, kind, noted, now, metric, oldest)
    except EstimateError as error:
        raise EstimateError(str(error), *(error.fields or fields)) from None
    if found.days > _LONGEST:
        told = message("The range is longer than ten years. Choose a shorter one.")
        raise EstimateError(told, *fields)
    return found


def is_ranged(arguments: Mapping[str, Any]) -> bool:
    """Whether an address names days."""
    return any(arguments.get(name) for name in ("since", "from", "to"))


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
    now: float, metric: Metric | None = None, running: Days | None = None
) -> list[tuple[str, Days]]:
    """Ranges that are one click away, each with its text: those that end with the last complete
    window of a metric, or with yesterday, and before them the days so far of the window that is
    `running`, if it has reports.

    Where they or the days before them were dropped, whole weeks take their place; where these are
    not kept, nothing does."""
    kind: windows.Kind = metric.window if metric else "day"
    found: list[tuple[str, Days]] = [(_RUNNING[kind], running)] if running else []
    kept = kept_since(metric, now)
    sums = kept.keys() - {kind}
    for count in _MONTHS if kind == "month" else _PRESETS:
        if kind == "month":
            text = counted("{count} month", "{count} months", count)
        else:
            text = message("{days} days", days=count)
        for each in (kind, "week") if kind == "day" and "week" in kept else (kind,):
            last = windows.last_complete(each, now)
            days = Days(_back(last, kind, count, count), last)
            if not sums or before(days, kind).first >= kept.get(each, date.min):
                found.append((text, days))
                break
    return found


def since_presets(
    metric: Metric | None, now: float, oldest: date = date.min
) -> list[tuple[str, Days]]:
    """The days after each of the latest annotations of a metric, or of all metrics, after which a
    window is complete; the latest first. `oldest` is the first day that has reports."""
    found: dict[str, tuple[str, Days]] = {}
    kind: windows.Kind = metric.window if metric else "day"
    for each in reversed(current_annotations() or ()):
        if metric is not None and not each.concerns(metric.name):
            continue
        if len(found) == _MOST_SINCE:
            break
        with suppress(EstimateError):
            days = read_range({"since": each.text}, now, kind, metric, oldest)
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


def earlier_range(days: Days, kind: windows.Kind, asked: Asked, now: float) -> Days:
    """The days that these are compared with: those `before`, or from `before_from` to `before_to`.

    Raises:
        EstimateError: they cannot be read.
    """
    earlier = before(days, kind)
    named = ("before_from", "before_to")
    first, last = (asked.get(each) for each in named)
    if not (first or last):
        return earlier
    if kind != "month":
        # One end alone: as many days as those that they are compared with.
        length = earlier.last - earlier.first
        with suppress(OverflowError):
            if last and not first:
                first = last - length
            elif first and not last:
                last = first + length
    ends = {"from": first or earlier.first, "to": last or earlier.last}
    try:
        for end in filter(None, (first, last)):
            day_in(end.isoformat())
        return left_out_alike(read_range(ends, now, kind), days)
    except (EstimateError, ValueError) as error:
        raise EstimateError(str(error), *named) from None


def _back(last: date, kind: windows.Kind, days: int, months: int) -> date:
    """The first of so many days that end with this one, or of so many months.

    Raises:
        OverflowError, ValueError: it lies before the year 1.
    """
    if kind != "month":
        return last - timedelta(days=days - 1)
    count = 12 * last.year + last.month - months
    return date(count // 12, count % 12 + 1, 1)


def day_at(now: float) -> date:
    """The day (UTC) of a POSIX time in seconds."""
    return datetime.fromtimestamp(now, UTC).date()
