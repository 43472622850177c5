"""What people have done: `/annotations`, what happened when beside the metrics that the token
reaches, and `/releases`, the numbers that were released and what they spend.

Releases are read from the ledger that DENIABLE_RELEASES names, and from no tally of the store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from typing import Any

from flask import Response
from werkzeug.exceptions import NotFound

from deniable_estimator.annotations import Annotation, between
from deniable_estimator.dashboard.access.caller import require, token_shown
from deniable_estimator.dashboard.annotation_file import current_annotations
from deniable_estimator.dashboard.api import parameters as takes
from deniable_estimator.dashboard.api.description import ESTIMATES, RELEASES, endpoint
from deniable_estimator.dashboard.api.representations import Form, respond, respond_content
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.problems import refusal
from deniable_estimator.dashboard.ranges import read_range
from deniable_estimator.dashboard.release_pages import listed, release_account, release_named
from deniable_estimator.dashboard.source import current_source, declared_metric, settings_in_force
from deniable_estimator.inputs import Asked
from deniable_estimator.releasing.release_ledger import ListedRelease

_NOTED = ("date", "at", "text", "link", "metrics")
_TOLD = ("metric", "description", "form", "method", "reports", "epsilon", "delta", "holds_against")
_LISTED = ("id", "made", *_TOLD, "window", "first", "last", "where", "data_sha256", "csv_sha256")
"""What is said of each annotation, and of each release, in the order of the columns."""


@endpoint("/annotations", ESTIMATES, "Annotations", takes.ANNOTATIONS, csv=True, errors=(404,))
def list_annotations(asked: Asked, form: Form) -> Response:
    """The annotations of some days and metrics; without days, of all."""
    source = current_source()
    _check_reached(ESTIMATES, asked["metric"])
    first, last = _days(asked, source)
    rows = []
    for each in between(current_annotations() or (), first, last):
        metrics = _metrics(source, each)
        if metrics != [] and (not asked["metric"] or any(map(each.concerns, asked["metric"]))):
            at = each.date if each.time else f"{each.day}T00:00:00Z"
            rows.append(
                dict(zip(_NOTED, (each.date, at, each.text, each.link, metrics), strict=True))
            )

    return respond_content(form, {"annotations": rows}, _NOTED, rows)


def _check_reached(scope: str, metrics: Sequence[str]) -> None:
    for name in metrics:
        require(scope, declared_metric(name))


def _days(asked: Asked, source: DataSource) -> tuple[date | None, date | None]:
    """The days that are asked for, each of which may be left out.

    Raises:
        EstimateError: one is no date, or the last lies before the first.
    """
    if not (asked["from"] or asked["to"]):
        return None, None
    ends = {"from": asked["from"] or asked["to"], "to": asked["to"] or asked["from"]}
    found = read_range(ends, source.clock())
    return found.first if asked["from"] else None, found.last if asked["to"] else None


def _metrics(source: DataSource, annotation: Annotation) -> list[str] | None:
    """The metrics that it concerns and the token reaches; None for all. So a token that is limited
    to some metrics does not learn what others are called."""
    if not annotation.metrics:
        return None
    reached = filter(token_shown().reaches, source.registry)
    return [each.name for each in reached if annotation.concerns(each.name)]


@endpoint("/releases", RELEASES, "Releases", takes.RELEASES, csv=True, errors=(404, 409))
def list_releases(asked: Asked, form: Form) -> Response:
    """The newest releases of the metrics that the token reaches, and what they spend."""
    _check_ledger()
    _check_reached(RELEASES, asked["metric"])
    reached = _reached()
    wanted = asked["metric"] or reached
    rows = [] if wanted == [] else [_row(each) for each in listed(asked["limit"], wanted or ())]
    account = release_account()
    assert account is not None
    spent = account.to_dict()
    if reached is not None:
        # What other metrics spend is none of this token's business, and neither is the total.
        metrics = {name: each for name, each in spent["metrics"].items() if name in reached}
        spent = {"total": None, "metrics": metrics}
    lines = [{**row, "where": [f"{k}={v}" for k, v in row["where"].items()]} for row in rows]
    return respond_content(form, {"releases": rows, **spent}, _LISTED, lines)


@endpoint("/releases/<release>", RELEASES, "Release", csv=True, errors=(409,))
def show_release(asked: Asked, form: Form, release: str) -> Response:
    """One release: its document with the manifest, or its table, byte by byte as it was made."""
    _check_ledger()
    found, reached = release_named(release), _reached()
    document = (found and found.document) or "{}"
    # The charge names the pair, if devices report that in the metric's place.
    metric = json.loads(document).get("manifest", {}).get("metric")
    if found is None or (reached is not None and metric not in reached):
        raise NotFound("There is no such release. /api/v1/releases lists those that there are.")
    # A release never changes.
    text = document if form == "json" else found.csv or ""
    return respond(form, (found.id, document), lambda: text)


def _check_ledger() -> None:
    if not settings_in_force().releases:
        raise refusal(
            409,
            "no-ledger",
            "This dashboard shows no releases: name the ledger of `deniable release` in "
            "DENIABLE_RELEASES.",
        )


def _reached() -> Sequence[str] | None:
    """The metrics that the token is limited to; None if it is not limited."""
    token = token_shown()
    if not token.limited:
        return None
    return [each.name for each in filter(token.reaches, current_source().registry)]


def _row(each: ListedRelease) -> dict[str, Any]:
    manifest, windows = each.manifest, each.manifest["windows"]
    return {
        "id": each.id,
        "made": each.made.isoformat(),
        **{name: manifest[name] for name in (*_TOLD, "where", "data_sha256", "csv_sha256")},
        "window": windows["kind"],
        "first": windows["first"],
        "last": windows["last"],
    }
