"""The weekly digest: of each metric whether it changed, what it says, and what needs attention; as
plain text, and as HTML that mail programs show.

The last complete weeks are compared with as many before them. A metric with windows of a month
takes part if a month ended in these weeks, and is compared by months. The days since the latest
annotation are compared with as many before it (`deniable_estimator.asking.comparison`). Over all
metrics and values of a digest together, the expected number of false changes is at most 1 in 20: a
metric's part of .05 is shared by its values and by both comparisons (Bonferroni). Intervals that
are shown have 95% each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.analyses.anomalies import ALARM_LEVEL
from deniable_estimator.annotations import Annotation, between
from deniable_estimator.asking.comparison import asked_since, compare, since_headline
from deniable_estimator.asking.fetch import Selection, select
from deniable_estimator.asking.listed import listed_strings
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.dashboard.language import LANGUAGES
from deniable_estimator.dashboard.ranges import before, newest_period
from deniable_estimator.errors import EstimateError
from deniable_estimator.judging.findings import findings_of, page_of, standing
from deniable_estimator.judging.newest_window import Judgement, MetricRules, newest_settled
from deniable_estimator.kinds.base import NO_CHANGE, Answer, ChangeTest, Comparison
from deniable_estimator.kinds.formats import estimate_of
from deniable_estimator.messages import counted, isolated, joined, message, sentence, translated

NEAR_DAYS = 3
"""An annotation up to so many days before the weeks that are told is named beside a change."""

SINCE_DAYS = 91
"""What changed since an annotation is told until it is so many days old."""

LEVEL = 0.05
"""The expected number of false changes in a digest."""

_TOLD = 0.95
_NAMED = 3
"""So many values of a metric are named; the others are counted."""

_VALUE = sentence("{series} {value} (95% CI {interval})")
_SAME = sentence("{told}; {no_change}")
_NEW = sentence("{told}; nothing before to compare with")
_OPEN = message("no list of strings to look for")
_DISCOVERY = message("`deniable estimate discover` lists the strings that were found")
_NOTHING = message("no reports in these weeks")
_NEVER = message("no reports so far")
_NEAR = sentence("near in time: {noted}")
_DISHONEST = sentence("these weeks look dishonest: {reasons}")
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
    for metric in metrics:
        query = Query(metric.name, candidates=listed_strings(metric, candidates_folder))
        whole = select(reader, registry, query)
        selection = whole.apart()
        period = newest_period(weekly, now, "month") if metric.window == "month" else weekly
        needs = [*_attention(metric, selection, rules.get(metric.name, MetricRules()), now)]
        page = page_of(dashboard, metric.name, {})
        if not whole.labels:
            digest.silent.append(DigestLine(metric.name, _NEVER, page))
        elif period and period.last >= weekly.first:
            after = _answer(selection, period)
            text, new, odd = _judged_line(metric, selection, period, after, family)
            shown = page_of(dashboard, metric.name, period.query)
            near = _noted(metric, period, annotations) if new else ""
            told = digest.changed if new else digest.unchanged
            told.append(DigestLine(metric.name, text, shown, near))
            if odd:
                needs.append(odd)
        if latest and latest.concerns(metric.name):
            _add_since(digest, metric, whole, latest, family, dashboard)
        digest.attention += [DigestLine(metric.name, each, page) for each in needs]
    return digest


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
    selection: Selection,
    noted: Annotation,
    family: int,
    dashboard: str,
) -> None:
    """Add what changed since an annotation, where that is known."""
    try:
        ended = windows.midnight(digest.last + timedelta(1))
        days = asked_since(noted.text, [noted], metric.window, ended, metric)
        found = _compared(metric, selection, days, _answer(selection, days), family)
    except EstimateError:
        return
    if found is None:
        return
    digest.compared += 1
    if found.changed.any():
        text = since_headline(metric.name, found, isolated(noted.text))
        page = page_of(dashboard, metric.name, {"since": noted.text})
        digest.since.append(DigestLine(metric.name, text, page))


def _judged_line(
    metric: Metric,
    selection: Selection,
    period: Days,
    after: Answer | None,
    family: int,
) -> tuple[str, bool, str | None]:
    """What is said of a metric, whether it changed, and what looks dishonest."""
    if after is None:
        told: str = _OPEN if metric.needs_candidates else _NOTHING
        if isinstance(metric.type, Discovery):
            told = _DISCOVERY
        return told if any(map(period.touches, selection.labels)) else _NOTHING, False, None
    figures = after.verdict.alarms(ALARM_LEVEL / family)
    odd = message(_DISHONEST, reasons=joined(e.text for e in figures)) if figures else None
    told = _leading(after)
    found = _compared(metric, selection, period, after, family)
    if found is None:
        return message(_NEW, told=told), False, odd
    changed = bool(found.places)
    said = _changes(found) if changed else message(_SAME, told=told, no_change=NO_CHANGE)
    # A note says, for example, that one of the weeks lacks a weekday.
    return joined((said, *found.notes)), changed, odd


def _compared(
    metric: Metric, selection: Selection, days: Days, after: Answer | None, family: int
) -> Comparison | None:
    """Beside the days before; None without reports then or now."""
    earlier = None if after is None else _answer(selection, before(days, metric.window))
    if after is None or earlier is None:
        return None
    return compare(earlier, after, ChangeTest(adjust="bonferroni", alpha=LEVEL / family))


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
        *([(message("No reports yet"), digest.silent)] if digest.silent else []),
    ]


def _teller(language: str) -> Callable[[str], str]:
    known = LANGUAGES[language]
    return lambda text: str(translated(text, known))
