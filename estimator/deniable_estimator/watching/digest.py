"""The weekly digest: of each metric whether it changed, what it says, and what needs attention; as
plain text, and as HTML that mail programs show.

The last complete weeks are compared with as many before them (`judging/newest_week.py`). A metric
with windows of a month is compared by the complete months in these weeks, if there are several, or
by the one that ended in them. The days since the
latest annotation are compared with as many before it (`deniable_estimator.asking.comparison`); then
both comparisons share a metric's part of the false changes. Intervals that are shown have 95% each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache, partial
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.analyses.anomalies import ALARM_LEVEL, Figure
from deniable_estimator.annotations import Annotation, between
from deniable_estimator.asking.comparison import asked_since, since_headline
from deniable_estimator.asking.fetch import Selection, first_day, select
from deniable_estimator.asking.history import History, history_in
from deniable_estimator.asking.listed import listed_strings
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.dashboard.language import LANGUAGES
from deniable_estimator.dashboard.ranges import before, newest_period
from deniable_estimator.errors import EstimateError, OnlyLongerError
from deniable_estimator.judging.findings import anomaly_of, findings_of, page_of, standing
from deniable_estimator.judging.newest_week import NoChange, judge_week, why_not
from deniable_estimator.judging.newest_window import Judgement, MetricRules, newest_settled
from deniable_estimator.kinds.base import NO_CHANGE, Answer, Comparison
from deniable_estimator.kinds.formats import estimate_of
from deniable_estimator.messages import counted, isolated, joined, message, sentence, translated

NEAR_DAYS = 3
"""An annotation up to so many days before the weeks that are told is named beside a change."""

SINCE_DAYS = 91
"""What changed since an annotation is told until it is so many days old."""

_TOLD = 0.95
_NAMED = 3
"""So many values of a metric are named; the others are counted."""

_VALUE = sentence("{series} {value} (95% CI {interval})")
_SAME = sentence("{told}; {no_change}")
_NOTHING_BEFORE = message("nothing before to compare with")
_OPEN = message("no list of strings to look for")
_DISCOVERY = message("`deniable estimate discover` lists the strings that were found")
_NOTHING = message("no reports in these weeks")
_NEVER = message("no reports so far")
_NEAR = sentence("near in time: {noted}")
_NO_MONTH = message("no month ended in these weeks")
_TITLE = sentence("deniable: {first} to {last}")
_NONE = message("nothing")
_FOOT = message(
    "Changes are told from noise over all metrics together: in 20 digests at most one false change "
    "is expected."
)


@dataclass(frozen=True, slots=True)
class DigestLine:
    """What is said of one metric."""

    metric: str
    text: str
    link: str
    noted: str = ""
    """What was noted near a change; that it was near says nothing about a cause."""


@dataclass(slots=True)
class WeeklyDigest:
    """All lines, by what they say."""

    first: date
    last: date
    moment: str = ""
    """The latest annotation, if it is not too old; empty without one."""
    changed: list[DigestLine] = field(default_factory=list)
    attention: list[DigestLine] = field(default_factory=list)
    unchanged: list[DigestLine] = field(default_factory=list)
    uncompared: list[DigestLine] = field(default_factory=list)
    """The metrics of which it is not known whether they changed."""
    silent: list[DigestLine] = field(default_factory=list)
    """The metrics that never had a report."""
    since: list[DigestLine] = field(default_factory=list)
    """The metrics that changed since."""
    compared: int = 0
    """Of how many metrics that is known."""


def weekly_digest(
    reader: Reader,
    registry: Registry,
    metrics: Sequence[Metric],
    rules: Mapping[str, MetricRules],
    dashboard: str,
    now: float,
    weeks: int = 1,
    candidates_folder: Path | None = None,
    annotations: Sequence[Annotation] = (),
) -> WeeklyDigest:
    """The digest of these metrics over the last complete weeks, and since the latest annotation. A
    change names the annotations of its metric that lie near it in time.

    Raises:
        StoreUnavailable: the store cannot answer now.
        ValueListError: a list of candidates has a mistake.
    """
    last = windows.last_complete("week", now)
    weekly = Days(last - timedelta(7 * weeks - 1), last)
    noted = between(annotations, last - timedelta(SINCE_DAYS), last - timedelta(1))
    latest = noted[-1] if noted else None
    digest = WeeklyDigest(weekly.first, last, latest.text if latest else "")
    family = len(metrics) * (2 if latest else 1)
    # Asked for two or three times, of one metric after the other.
    answer = lru_cache(maxsize=4)(_answer)

    def judged(selection: Selection, days: Days) -> tuple[Comparison | NoChange, History]:
        name, earlier = selection.metric.name, before(days, selection.metric.window)
        both = Query(name, Days(earlier.first, days.last))
        whole: Sequence[Figure] | None = None
        if selection.query.candidates is not None:
            # Of listed strings the sum of a week says what single windows cannot.
            whole = ()
            with suppress(OnlyLongerError):  # which is said below
                after = answer(selection, days)
                whole = after.verdict.figures if after else ()
        seen = history_in(reader, registry, both, ALARM_LEVEL / family, whole, now)
        return judge_week(partial(answer, selection), days, earlier, seen, family), seen

    for metric in metrics:
        query = Query(metric.name, candidates=listed_strings(metric, candidates_folder))
        whole = select(reader, registry, query)
        rule = rules.get(metric.name, MetricRules())
        needs = [*_attention(metric, whole.apart(), rule, now)]
        page = page_of(dashboard, metric.name, {})
        period = _months_in(weekly, now) if metric.window == "month" else weekly
        if not whole.labels:
            digest.silent.append(DigestLine(metric.name, _NEVER, page))
        elif period is None:
            digest.uncompared.append(DigestLine(metric.name, _NO_MONTH, page))
        else:
            found, seen = judged(whole, period)
            if isinstance(found, str):
                told, near = digest.uncompared, ""
                text = _not_compared(whole, period, found, partial(answer, whole))
            else:
                told = digest.changed if found.places else digest.unchanged
                near = _noted(metric, period, annotations) if found.places else ""
                text = _said(found)
            shown = page if found == "dropped" else page_of(dashboard, metric.name, period.query)
            told.append(DigestLine(metric.name, text, shown, near))
            if odd := seen.new(period.touches):
                needs.append(anomaly_of(odd, now).text)
        if latest and latest.concerns(metric.name):
            oldest = first_day(reader, registry, metric)
            _add_since(digest, metric, latest, partial(judged, whole), dashboard, oldest)
        digest.attention += [DigestLine(metric.name, each, page) for each in needs]
    return digest


def _months_in(weeks: Days, now: float) -> Days | None:
    """The complete months in these weeks; of less than two, the month that ended in them."""
    newest = newest_period(weeks, now, "month")
    if newest is None or newest.last < weeks.first:
        return None
    months = [
        each
        for each in windows.span("month", weeks.first, newest.last)
        if windows.first_day(each) >= weeks.first
    ]
    return Days(windows.first_day(months[0]), newest.last) if months else newest


def _noted(metric: Metric, period: Days, annotations: Sequence[Annotation]) -> str:
    """The annotations near a period, the latest of them if there are many; empty without any."""
    first = date.fromordinal(max(1, period.first.toordinal() - NEAR_DAYS))
    near = between(annotations, first, period.last, metric.name)
    told = [each.told() for each in near[-_NAMED:]]
    if (rest := len(near) - len(told)) > 0:
        told.append(counted("{count} more annotation", "{count} more annotations", rest))
    return message(_NEAR, noted=joined(told)) if told else ""


def _answer(selection: Selection, days: Days) -> Answer | None:
    """None without reports, for strings without a list, and for a discovery."""
    inside = [
        each
        for each in selection.labels
        if days.first <= windows.first_day(each) and windows.last_day(each) <= days.last
    ]
    question = selection.within(inside).read()
    if not question.n or any(part.unnamed for part in question.parts):
        return None
    return question.estimate(level=_TOLD, adjust="bonferroni")


def _attention(metric: Metric, selection: Selection, rules: MetricRules, now: float) -> list[str]:
    """That it expires, is silent or has too few reports."""
    found = list(standing(metric, newest_settled(selection.labels, now, 0), rules, now))
    # Reports come in for an hour, and later from devices that were away.
    settled = newest_settled(selection.labels, now)
    if settled is not None:
        judged = Judgement(settled, selection.within([settled]).read().n)
        found += findings_of(metric, judged, rules, own=not selection.of_pair)
    return [each.text for each in found]


def _add_since(
    digest: WeeklyDigest,
    metric: Metric,
    noted: Annotation,
    judged: Callable[[Days], tuple[Comparison | NoChange, History]],
    dashboard: str,
    oldest: date,
) -> None:
    """Add what changed since an annotation, where that is known."""
    try:
        ended = windows.midnight(digest.last + timedelta(1))
        days = asked_since(noted.text, [noted], metric.window, ended, metric, oldest)
        found, _ = judged(days)
    except EstimateError:
        return
    if isinstance(found, str):
        return
    digest.compared += 1
    if found.changed.any():
        text = since_headline(metric.name, found, isolated(noted.text))
        page = page_of(dashboard, metric.name, {"since": noted.text})
        digest.since.append(DigestLine(metric.name, text, page))


def _said(found: Comparison) -> str:
    """What is said of a metric that was compared."""
    told = message(_SAME, told=_leading(found.after), no_change=NO_CHANGE)
    # A note says, for example, that devices report otherwise since a day.
    return joined((_changes(found) if found.places else told, *found.notes))


def _not_compared(
    selection: Selection,
    period: Days,
    reason: NoChange,
    ask: Callable[[Days], Answer | None],
) -> str:
    """What is said of a metric that was not."""
    metric = selection.metric
    nothing_before = reason == "nothing_before"
    why = _NOTHING_BEFORE if nothing_before else why_not(reason, metric.window)
    try:
        after = ask(period)
    except OnlyLongerError:
        return why
    if after is not None:
        return message(_SAME, told=_leading(after), no_change=why)
    if not any(map(period.touches, selection.labels)):
        return _NOTHING
    if isinstance(metric.type, Discovery):
        return _DISCOVERY
    return _OPEN if metric.needs_candidates else _NOTHING


def _changes(found: Comparison) -> str:
    """The changes that are largest for their noise, and how many more there are."""
    places = sorted(
        found.places, key=lambda each: -abs(found.difference[each] / found.std_error[each])
    )
    unit = found.after.unit
    told = [
        message(
            sentence("{series} {change}"),
            series=unit.label(found.values[each]),
            change=found.describe(each),
        )
        for each in places[:_NAMED]
    ]
    if (rest := len(places) - _NAMED) > 0:
        told.append(counted("{count} more value changed", "{count} more values changed", rest))
    return joined(told)


def _leading(answer: Answer) -> str:
    """The series that is shown where there is room for one, with its interval."""
    series = answer.series
    name = series.names[series.place(answer.leading) or 0]
    told = estimate_of(answer.unit, *series.at(name))
    return message(_VALUE, series=answer.unit.label(name), value=told.text, interval=told.between)


def digest_title(digest: WeeklyDigest) -> str:
    """The subject of a mail."""
    return message(_TITLE, first=digest.first.isoformat(), last=digest.last.isoformat())


def as_text(digest: WeeklyDigest, language: str) -> str:
    """The digest for terminals and plain mail."""
    tell = _teller(language)
    lines = [tell(digest_title(digest)), ""]
    for heading, rows in _parts(digest):
        lines.append(f"{tell(heading)} ({len(rows)})")
        for each in rows:
            noted = [f"    {tell(each.noted)}"] if each.noted else []
            lines += [f"  {each.metric}: {tell(each.text)}", *noted, f"    {each.link}"]
        if not rows:
            lines.append(f"  {tell(_NONE)}")
        lines.append("")
    return "\n".join([*lines, tell(_FOOT), ""])


def as_html(digest: WeeklyDigest, language: str) -> str:
    """The digest as one page without anything that it would have to load."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["tell"] = _teller(language)
    page = environment.from_string(Path(__file__).with_name("digest.html").read_text("utf-8"))
    return page.render(
        language=language,
        title=digest_title(digest),
        parts=_parts(digest),
        nothing=_NONE,
        foot=_FOOT,
    )


def _parts(digest: WeeklyDigest) -> list[tuple[str, list[DigestLine]]]:
    since = counted(
        "Changed since {moment}, of {count} metric",
        "Changed since {moment}, of {count} metrics",
        digest.compared,
        moment=isolated(digest.moment),
    )
    return [
        *([(since, digest.since)] if digest.compared else []),
        (message("Changed"), digest.changed),
        (message("Needs attention"), digest.attention),
        (message("Not changed"), digest.unchanged),
        *([(message("Not compared"), digest.uncompared)] if digest.uncompared else []),
        *([(message("No reports yet"), digest.silent)] if digest.silent else []),
    ]


def _teller(language: str) -> Callable[[str], str]:
    known = LANGUAGES[language]
    return lambda text: str(translated(text, known))
