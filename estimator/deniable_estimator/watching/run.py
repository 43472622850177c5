"""One run of `deniable watch`: judges what is new, tells each finding once, sends what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types.retention import Retention
from deniable_estimator.annotations import Annotation, between
from deniable_estimator.asking.fetch import select
from deniable_estimator.asking.history import history_in
from deniable_estimator.asking.listed import listed_strings
from deniable_estimator.asking.query import LENGTHS, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.dashboard.language import LANGUAGES
from deniable_estimator.dashboard.ranges import read_range
from deniable_estimator.judging.findings import (
    MetricFinding,
    anomaly_of,
    findings_of,
    page_of,
    standing,
)
from deniable_estimator.judging.newest_window import (
    Judgement,
    judge,
    judgement_level,
    newest_settled,
)
from deniable_estimator.messages import message, translated
from deniable_estimator.watching.channels import MOST_MESSAGES, ChannelError, NoticeChannel, send
from deniable_estimator.watching.digest import as_text, digest_title, weekly_digest
from deniable_estimator.watching.rules_file import WatchRules
from deniable_estimator.watching.seen import QUIET_DAYS, ToldFinding, WatchState

_LASTING = ("change", "anomaly")
"""What one window says, so that it ends when later windows do not say it."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one run told."""

    messages: tuple[Mapping[str, Any], ...]
    """Those that are new."""
    failed: tuple[str, ...]
    """What went wrong with channels, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """As a webhook has it, with what failed."""
        return {"schema": 1, "messages": list(self.messages), "failed": list(self.failed)}


@dataclass(frozen=True)
class Watcher:
    """What a run reads, and its rules."""

    reader: Reader
    registry: Registry
    rules: WatchRules
    candidates_folder: Path | None = None
    annotations: tuple[Annotation, ...] = ()
    """What the digest names beside changes, and a change of a retention itself."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those that are watched."""
        return tuple(each for each in self.registry if self.rules.watches(each.name))

    def run(
        self,
        state: WatchState,
        now: float,
        *,
        save: Callable[[], None] = lambda: None,
        sending: bool = True,
    ) -> RunResult:
        """Judge each metric, note in `state` what is new, and send what waits.

        `save` is called before and after sending: what was found is never lost, and at worst sent
        twice. Without `sending`, channels are left alone.

        Raises:
            StoreUnavailable: the store cannot answer now.
            ValueListError: a list of candidates has a mistake.
        """
        new = []
        for metric in self.metrics:
            new += self._metric(metric, state, now)
        self._end_others(state, now)
        messages = tuple(self._note(each, state, now) for each in new)
        messages += tuple(self._digest(state, now))
        state.forget(now)
        save()
        failed = tuple(self._send_waiting(state)) if sending else ()
        if sending:
            save()
        return RunResult(messages, failed)

    def _metric(self, metric: Metric, state: WatchState, now: float) -> list[MetricFinding]:
        """The findings of a metric that were not told; the others are noted as seen."""
        rules = self.rules.of(metric.name)
        query = Query(metric.name, candidates=listed_strings(metric, self.candidates_folder))
        whole = select(self.reader, self.registry, query)
        selection = whole.apart()
        awaited = None if whole.labels else state.awaited.setdefault(metric.name, now)
        if awaited is None:
            state.awaited.pop(metric.name, None)
        newest = newest_settled(selection.labels, now, 0)
        found = list(standing(metric, newest, rules, now, awaited))
        kinds = {"expires", "stale"}
        window = newest_settled(selection.labels, now, self.rules.wait_days)
        before = state.judged.get(metric.name)
        if window is not None and _is_later(window, before):
            level = judgement_level(self.rules.false_alarms, len(self.metrics), metric.window)
            # The days that pages show by themselves; what is read of them serves the judgement too.
            latest = Query(metric.name, read_range({}, windows.end(window), metric.window))
            history = history_in(self.reader, self.registry, latest, level.anomaly, None, now)
            asked = selection.labels, window, rules, level.span
            judged = judge(lambda each: selection.within(each).read(), *asked)
            if judged is not None:
                state.judged[metric.name] = window
                if anomalous := history.new(lambda label: _is_later(label, before)):
                    found.append(anomaly_of(anomalous, windows.end(window)))
                found += [
                    self._dated(metric, each)
                    for each in findings_of(metric, judged, rules, own=not selection.of_pair)
                ]
                kinds.add("few")
                self._end_lasting(metric, state, judged, now)
        keys = {each.key for each in found}
        for key, told in state.told.items():
            name, kind, _ = key.split("/", 2)
            if name == metric.name and kind in kinds and key not in keys and told.ended is None:
                told.ended = now
        new = []
        for each in found:
            if state.is_active(each.key):
                state.told[each.key].seen = each.until
            else:
                new.append(each)
        return new

    def _dated(self, metric: Metric, found: MetricFinding) -> MetricFinding:
        """With what happened where the cohorts began whose retention changed: that lies so many
        windows before the ones that show it."""
        series = str(found.facts.get("series", ""))
        if not isinstance(metric.type, Retention) or not series.startswith("age "):
            return found
        assert found.first is not None
        back = (int(series.removeprefix("age ")) + 1) * LENGTHS[metric.window]
        first = date.fromordinal(max(1, found.first.toordinal() - back.days))
        near = between(self.annotations, first, found.last, metric.name)
        if not near:
            return found
        told = message("{told}; {noted}", told=found.text, noted=near[-1].told())
        return replace(found, text=told)

    def _end_lasting(
        self, metric: Metric, state: WatchState, judged: Judgement, now: float
    ) -> None:
        """End the changes and anomalies that were not seen for long enough. A slow drift is seen
        now and then: a series that still leans to the side of its change has not ended it."""
        end = windows.end(judged.window)
        quiet = max(QUIET_DAYS * 86_400.0, 2 * LENGTHS[metric.window].total_seconds())
        for key, told in state.told.items():
            name, kind, detail = key.split("/", 2)
            lasting = name == metric.name and kind in _LASTING and detail not in judged.leaning
            if lasting and told.ended is None and end - told.seen > quiet:
                told.ended = now

    def _end_others(self, state: WatchState, now: float) -> None:
        """End what is about metrics that are watched no more."""
        watched = {each.name for each in self.metrics}
        for key, told in state.told.items():
            if told.ended is None and key.split("/", 1)[0] not in watched:
                told.ended = now
        for kept in (state.judged, state.awaited):
            for name in kept.keys() - watched:
                del kept[name]

    def _note(self, found: MetricFinding, state: WatchState, now: float) -> Mapping[str, Any]:
        """Note a new finding, with the message that its channels are to be sent."""
        text = self._in_language(found.text)
        address = page_of(self.rules.dashboard, found.metric, found.query)
        document = {
            "id": f"{found.key}/{found.since}",
            "metric": found.metric,
            "kind": found.kind,
            "text": text,
            "since": found.since,
            "link": address,
            "facts": dict(found.facts),
            "body": f"{found.metric}: {text}\n{address}",
        }
        before = state.told.get(found.key)
        if before is not None and before.waiting:
            # What was never sent is sent, under a key of its own.
            state.told[f"{found.key}/{before.since}"] = before
        state.told[found.key] = self._waiting(document, now, found.until, None)
        return document

    def _waiting(
        self, document: dict[str, Any], now: float, seen: float, ended: float | None
    ) -> ToldFinding:
        """What is told now, and waits for all channels."""
        channels = [each.name for each in self.rules.channels]
        kept = document if channels else None
        return ToldFinding(document["since"], now, seen, ended, channels, kept)

    def _digest(self, state: WatchState, now: float) -> Iterator[Mapping[str, Any]]:
        """The weekly digest as a message: once, on its weekday (UTC)."""
        today = datetime.fromtimestamp(now, UTC).date()
        # No metric has an empty name.
        key = f"/digest/{today.isoformat()}"
        if today.weekday() != self.rules.digest or key in state.told:
            return
        digest = weekly_digest(
            *(self.reader, self.registry, self.metrics),
            {each.name: self.rules.of(each.name) for each in self.metrics},
            dashboard=self.rules.dashboard,
            now=now,
            candidates_folder=self.candidates_folder,
            annotations=self.annotations,
        )
        document = {
            "id": f"digest/{today.isoformat()}",
            "metric": None,
            "kind": "digest",
            "text": self._in_language(digest_title(digest)),
            "since": digest.first.isoformat(),
            "link": f"{self.rules.dashboard}/",
            "facts": {
                "changed": [each.metric for each in digest.changed],
                "attention": [each.metric for each in digest.attention],
                "unchanged": [each.metric for each in digest.unchanged],
                "uncompared": [each.metric for each in digest.uncompared],
                "silent": [each.metric for each in digest.silent],
            },
            "body": as_text(digest, self.rules.language),
        }
        state.told[key] = self._waiting(document, now, now, now)
        yield document

    def _in_language(self, text: str) -> str:
        return str(translated(text, LANGUAGES[self.rules.language]))

    def _send_waiting(self, state: WatchState) -> Iterator[str]:
        """Send each channel what it waits for, the oldest first; yields what went wrong."""
        known = {each.name for each in self.rules.channels}
        for told in state.told.values():
            told.waiting = [each for each in told.waiting if each in known]
        for channel in self.rules.channels:
            if error := self._send(channel, state):
                yield error
        for told in state.told.values():
            if not told.waiting:
                told.message = None

    def _send(self, channel: NoticeChannel, state: WatchState) -> str | None:
        waiting = sorted(
            (each for each in state.told.values() if channel.name in each.waiting),
            key=lambda each: each.told,
        )
        for first in range(0, len(waiting), MOST_MESSAGES):
            part = waiting[first : first + MOST_MESSAGES]
            title = self._in_language(message("deniable: {count} new", count=len(part)))
            try:
                send(channel, title, [each.message for each in part if each.message is not None])
            except ChannelError as error:
                return str(error)
            for each in part:
                each.waiting.remove(channel.name)
        return None


def _is_later(window: str, judged: str | None) -> bool:
    if judged is None or windows.kind_of(judged) != windows.kind_of(window):
        return True
    return windows.start(window) > windows.start(judged)
