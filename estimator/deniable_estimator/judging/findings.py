"""What is told of a metric: changes of a window, anomalies, and what needs no test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlencode

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.mechanisms import FrequencyOracle
from deniable_estimator.asking.history import History
from deniable_estimator.asking.query import LENGTHS
from deniable_estimator.document.csv_files import plain
from deniable_estimator.judging.newest_window import Judgement, MetricRules, WatchedChange
from deniable_estimator.kinds.formats import series_name
from deniable_estimator.messages import counted, joined, message, sentence
from deniable_estimator.statistics.detection import detectable_share, reports_to_detect

FindingKind: TypeAlias = Literal["change", "anomaly", "expires", "stale", "few"]

_TOGETHER = sentence("{count} windows together are anomalous: {reasons}")
_EXPIRES = sentence("expires on {day}: then devices stop reporting")
_EXPIRED = sentence("expired on {day}: devices have stopped reporting")
_STALE_DAY = sentence("no reports since {window}")
_STALE = sentence("no reports since {window}, which ended on {day}")
_NEVER = sentence("no reports since {day}, when it was first watched")


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """One thing that is told of a metric."""

    metric: str
    kind: FindingKind
    detail: str
    """What distinguishes it from others of its kind, as `WatchedChange.detail`; no sentence."""
    text: str
    since: str
    """A window or a day."""
    until: float
    """POSIX time in seconds at which it was last true: the end of its window, or the time of the
    run."""
    first: date | None = None
    """The days that the link shows."""
    last: date | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Its numbers, for programs."""

    @property
    def key(self) -> str:
        """What is told once."""
        return f"{self.metric}/{self.kind}/{self.detail}"

    @property
    def query(self) -> dict[str, str]:
        """The days of the metric's page that show it."""
        ends = {"from": self.first, "to": self.last}
        return {name: day.isoformat() for name, day in ends.items() if day is not None}


def page_of(dashboard: str, metric: str, query: Mapping[str, str]) -> str:
    """The address of a metric's page, with what is asked of it."""
    address = f"{dashboard}/metric/{quote(metric)}"
    return f"{address}?{urlencode(query)}" if query else address


def findings_of(
    metric: Metric, judged: Judgement, rules: MetricRules, *, own: bool = True
) -> Iterator[MetricFinding]:
    """What the judgement of a window tells. `own` says whether the reports are the metric's own,
    and not those of a pair, of which more are needed."""
    end = windows.end(judged.window)
    for change in judged.changes:
        yield _change(metric, change, judged.window, end)
    if own and (few := _few(metric, judged, rules, end)):
        yield few


def anomaly_of(history: History, until: float) -> MetricFinding:
    """That windows raise an alarm: why the newest of them does. If none does by itself, all of them
    together."""
    newest = history.strange[0]
    labels = history.labels or tuple(each.label for each in reversed(history.windows))
    reasons = joined(each.text for each in newest.reasons)
    if newest.label is None:
        text = message(_TOGETHER, count=len(labels), reasons=reasons)
    else:
        text = counted(
            "{window} is anomalous: {reasons}",
            "{count} windows are anomalous, {window} last: {reasons}",
            len(labels),
            window=newest.label,
            reasons=reasons,
        )
    figures = [{"name": each.name, "p_adjusted": each.p_adjusted} for each in newest.reasons]
    days = windows.first_day(labels[-1]), windows.last_day(labels[0])
    facts = {"figures": figures}
    return MetricFinding(
        *(history.metric, "anomaly", "figures", text, labels[-1], until, *days), facts
    )


def standing(
    metric: Metric,
    newest: str | None,
    rules: MetricRules,
    now: float,
    awaited: float | None = None,
) -> Iterator[MetricFinding]:
    """What needs no test: that the metric expires, or is silent since its window `newest`; if it
    never had a report, since it is `awaited` (POSIX time)."""
    today = datetime.fromtimestamp(now, UTC).date()
    left = (metric.expires - today).days
    day = metric.expires.isoformat()
    if left <= rules.expires_days:
        text = message(_EXPIRED if left < 0 else _EXPIRES, day=day)
        facts = {"expires": day, "days": left}
        yield MetricFinding(metric.name, "expires", day, text, day, now, facts=facts)
    since = awaited if newest is None else windows.end(newest)
    if since is None or left < 0:
        return
    silent = now - since
    # The window that runs now has not ended, so its length is no silence; nor is that of the first,
    # of which a device may have had the end alone.
    running = LENGTHS[metric.window].total_seconds() * (1 if newest else 2)
    if silent < rules.stale_days * 86_400 + running:
        return
    facts = {"newest": newest, "days": int(silent // 86_400)}
    if newest is None:
        day = datetime.fromtimestamp(since, UTC).date().isoformat()
        text = message(_NEVER, day=day)
        yield MetricFinding(metric.name, "stale", "", text, day, now, facts=facts)
    else:
        told = _STALE_DAY if metric.window == "day" else _STALE
        text = message(told, window=newest, day=windows.last_day(newest).isoformat())
        yield _of_window(metric, "stale", "", text, newest, now, facts)


def _of_window(
    metric: Metric,
    kind: FindingKind,
    detail: str,
    text: str,
    window: str,
    until: float,
    facts: Mapping[str, Any],
) -> MetricFinding:
    """A finding that shows the days of a window."""
    first, last = windows.first_day(window), windows.last_day(window)
    return MetricFinding(metric.name, kind, detail, text, window, until, first, last, facts)


def _change(metric: Metric, change: WatchedChange, window: str, end: float) -> MetricFinding:
    found, place = change.comparison, change.place
    span = change.since if change.since == window else f"{change.since} – {window}"
    unit = found.after.unit
    columns = {
        "before": found.old,
        "after": found.new,
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
    }
    return MetricFinding(
        metric=metric.name,
        kind="change",
        detail=change.detail,
        text=counted(
            "{series} {change}, {span} vs {count} earlier window",
            "{series} {change}, {span} vs {count} earlier windows",
            len(found.before.windows),
            series=series_name(found.after, change.series),
            change=found.describe(place),
            span=span,
        ),
        since=change.since,
        until=end,
        first=windows.first_day(change.since),
        last=windows.last_day(window),
        facts={
            "series": change.series,
            "unit": "share" if unit.of_all else metric.type.unit,
            "level": found.level,
            **{name: plain(each)[place] for name, each in columns.items()},
            "window": window,
        },
    )


def _few(metric: Metric, judged: Judgement, rules: MetricRules, end: float) -> MetricFinding | None:
    """That the reports of a window cannot show the stated share; of closed lists alone."""
    mechanism = metric.scheme.mechanism
    if not metric.values or not isinstance(mechanism, FrequencyOracle):
        return None
    oracle, size = metric.scheme.oracle, len(metric.values)
    seen = detectable_share(oracle, size, judged.n)
    if seen is not None and seen <= rules.share:
        return None
    needed = reports_to_detect(oracle, size, rules.share)
    text = counted(
        "{window} has {count:,} report, too few to see a share of {share:.3g}%: that takes "
        "{needed:,}",
        "{window} has {count:,} reports, too few to see a share of {share:.3g}%: that takes "
        "{needed:,}",
        judged.n,
        window=judged.window,
        share=100 * rules.share,
        needed=needed,
    )
    facts = {"n": judged.n, "share": rules.share, "needed": needed}
    return _of_window(metric, "few", f"{rules.share:g}", text, judged.window, end, facts)
