"""What the option --since asks for: the days after an annotation, and the change from before."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deniable_estimator.files import ANNOTATIONS, file_in_folder

if TYPE_CHECKING:
    from deniable import Metric
    from deniable_estimator.answers.base import Answer, Comparison
    from deniable_estimator.asking.since import SinceDays


class AskedSince(NamedTuple):
    """What --since asks for."""

    moment: str
    days: SinceDays


def asked_since(
    since: str | None, metric: Metric, first: date | None, last: date | None
) -> AskedSince | None:
    """The days after the annotation and before it; None without --since.

    Raises:
        click.UsageError: there are other days too.
        EstimateError: there is no such annotation, or no complete window after it.
        CheckedFileError: the file has mistakes.
    """
    if since is None:
        return None
    if first or last:
        raise click.UsageError("--since takes the place of --from and --to")
    from deniable.protocol import windows
    from deniable_estimator.annotations import load_annotations
    from deniable_estimator.asking.since import days_since, find_moment, kept_from

    moment = find_moment(since, load_annotations(file_in_folder(ANNOTATIONS)), metric.name)
    now = time.time()
    newest = windows.last_complete(metric.window, now)
    kept = kept_from(metric, datetime.fromtimestamp(now, UTC).date())
    return AskedSince(moment.name, days_since(moment, metric.window, newest, kept))


def change_since(before: Answer, after: Answer) -> Comparison | None:
    """What has changed; None where one of the two has no reports."""
    from deniable_estimator.asking.comparison import compare

    return compare(before, after) if before.n and after.n else None


def told_since(asked: AskedSince, found: Comparison | None, metric: str) -> str:
    """What has changed, in a sentence, and the days."""
    from deniable_estimator.asking.since import since_headline
    from deniable_estimator.isolation import isolated

    days, moment = asked.days, isolated(asked.moment)
    compared = f"({days.first} to {days.last} vs {days.before_first} to {days.before_last})"
    if found is None:
        return f"{metric}: nothing to compare with since {moment} {compared}."
    notes = "".join(f"\nNote: {note}." for note in found.notes)
    return f"{since_headline(metric, found, moment)} {compared}.{notes}"


def since_document(asked: AskedSince, found: Comparison | None, metric: str) -> dict[str, Any]:
    """The same for JSON: `moment`, `text`, and the `change` as the API has a comparison."""
    return {
        "moment": asked.moment,
        "text": told_since(asked, found, metric),
        "change": None if found is None else found.to_dict(),
    }
