"""`/api/v1/releases`: the numbers that `deniable release` published, and what all of them spend.

The ledger alone is read, and no tally of the store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable_estimator.dashboard.access import may_read, require
from deniable_estimator.dashboard.access.caller import reads_all
from deniable_estimator.dashboard.api.parameters import (
    ReleaseParameters,
    ReleasesParameters,
)
from deniable_estimator.dashboard.api.representations import (
    Form,
    etag,
    represent,
    to_csv,
    unchanged,
)
from deniable_estimator.dashboard.calculations import to_json
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.dashboard.release_pages import (
    ledger_path,
    listed,
    release_account,
    release_named,
)
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.releasing.ledger import KeptRelease, ListedRelease

_SCOPE = "read:releases"
_TOLD = ("metric", "description", "form", "method", "reports", "epsilon", "delta", "holds_against")

COLUMNS = ("id", "made", *_TOLD, "window", "first", "last", "where", "data_sha256", "csv_sha256")
"""What is said of each release, in the order of the columns."""


def list_releases(asked: ReleasesParameters, form: Form) -> ResponseReturnValue:
    """The newest releases of the metrics that the token reaches, and what they spend."""
    _check_ledger()
    for name in asked.metric:
        require(_SCOPE, declared_metric(name))
    reached = _reached()
    wanted = asked.metric or reached
    rows = [] if wanted == [] else [_row(each) for each in listed(asked.limit, wanted or ())]
    account = release_account()
    assert account is not None
    spent = account.to_dict()
    if reached is not None:
        # What other metrics spend is none of this token's business, and neither is the total.
        metrics = {name: each for name, each in spent["metrics"].items() if name in reached}
        spent = {"total": None, "metrics": metrics}
    document = {"releases": rows, **spent}
    tag = etag(form, document)
    if same := unchanged(tag):
        return same
    if form == "json":
        return represent(form, to_json(document), tag=tag)
    lines = [{**row, "where": [f"{k}={v}" for k, v in row["where"].items()]} for row in rows]
    return represent(form, to_csv(form, COLUMNS, lines), tag=tag)


def show_release(asked: ReleaseParameters, form: Form, release: str) -> ResponseReturnValue:
    """One release: its document with the manifest, or its table, byte by byte as it was made."""
    _check_ledger()
    found = release_named(release)
    reached = _reached()
    if found is None or (reached is not None and _metric_of(found) not in reached):
        raise NotFound("There is no such release. /api/v1/releases lists those that there are.")
    assert found.document is not None
    assert found.csv is not None
    # A release never changes.
    tag = etag(form, found.id, found.document)
    text = found.document if form == "json" else found.csv
    return unchanged(tag) or represent(form, text, tag=tag)


def _metric_of(found: KeptRelease) -> str:
    # The charge names the pair, if devices report that in the metric's place.
    name: str = json.loads(found.document or "{}")["manifest"]["metric"]
    return name


def _check_ledger() -> None:
    if ledger_path() is None:
        raise ApiProblem(
            409,
            "no-ledger",
            "No ledger",
            "This dashboard shows no releases: name the ledger of `deniable release` in "
            "DENIABLE_RELEASES.",
        )


def _reached() -> Sequence[str] | None:
    """The metrics that the token is limited to; None if it is not limited."""
    if reads_all():
        return None
    return [metric.name for metric in current_source().registry if may_read(metric)]


def _row(each: ListedRelease) -> dict[str, Any]:
    manifest, windows = each.manifest, each.manifest["windows"]
    return {
        "id": each.id,
        "made": each.made.isoformat(),
        **{name: manifest[name] for name in _TOLD},
        "window": windows["kind"],
        "first": windows["first"],
        "last": windows["last"],
        "where": manifest["where"],
        "data_sha256": manifest["data_sha256"],
        "csv_sha256": manifest["csv_sha256"],
    }
