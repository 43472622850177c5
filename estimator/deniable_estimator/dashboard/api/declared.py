"""`/metrics`, `/metrics/<name>` and `/overview`: what is declared and collected, and what needs
attention."""

from __future__ import annotations

from flask import request
from flask.typing import ResponseReturnValue

from deniable.protocol.keep import FOREVER
from deniable_estimator.asking.results import StillDecoding
from deniable_estimator.dashboard.access import may_read
from deniable_estimator.dashboard.api.arguments import (
    asked_metric,
    asked_range,
)
from deniable_estimator.dashboard.api.listing import LISTED, LISTED_OF_NUMBERS, listed
from deniable_estimator.dashboard.api.overview_rows import overview_csv, overview_document
from deniable_estimator.dashboard.api.parameters import (
    Common,
    DeclaredParameters,
    ListParameters,
    OverviewParameters,
)
from deniable_estimator.dashboard.api.representations import (
    Form,
    etag,
    represent,
    to_csv,
    unchanged,
)
from deniable_estimator.dashboard.calculations import (
    to_json,
)
from deniable_estimator.dashboard.overview import list_metrics, read_filters, read_overview
from deniable_estimator.dashboard.source import current_source


def metrics(asked: ListParameters, form: Form) -> ResponseReturnValue:
    """All metrics that the token reaches, or those that are looked for."""
    source = current_source()
    days = asked_range(source, asked.first, asked.last)
    filters = read_filters(request.args, source.registry)
    rows = [
        listed(source, metric, days)
        for metric in source.registry
        if may_read(metric) and filters.admit(metric)
    ]
    # The list is cheap to make, so its content itself is the version.
    tag = etag(form, days, rows)
    if same := unchanged(tag):
        return same
    numbers = any(LISTED_OF_NUMBERS[0] in row for row in rows)
    columns = (*LISTED, *LISTED_OF_NUMBERS) if numbers else LISTED
    if form == "json":
        return represent(form, to_json({**days.told, "metrics": rows}), tag=tag)
    text = to_csv(form, columns, rows)
    return represent(form, text, tag=tag)


def overview(asked: OverviewParameters, form: Form) -> ResponseReturnValue:
    """What the overview says of all metrics that the token reaches, and what needs attention."""
    source = current_source()
    wanted = {
        name: text for name, text in request.args.items() if name not in Common.__struct_fields__
    }
    view = read_overview(wanted, source.registry, source.seen_until)
    reachable = [metric for metric in source.registry if may_read(metric)]
    found = list_metrics(source, view, source.patience, reachable=reachable, whole=True)
    if found.blank:
        raise StillDecoding(found.wanted - found.blank, found.wanted, 0.0)
    document = overview_document(found)
    # The summaries are at hand, so the content itself is the version.
    tag = etag(form, document)
    if same := unchanged(tag):
        return same
    text = to_json(document) if form == "json" else overview_csv(found, raw=form == "raw")
    return represent(form, text, tag=tag)


def metric(asked: DeclaredParameters, form: Form, name: str) -> ResponseReturnValue:
    """One metric: as it is declared, and what was collected of it."""
    source, metric = asked_metric(name, "read:metrics")
    schemes = [
        {
            "fingerprint": fingerprint,
            "mechanism": scheme.mechanism.name,
            "epsilon": scheme.mechanism.epsilon,
            "in_force": fingerprint == metric.scheme.fingerprint,
            "windows": source.reader.windows(name, fingerprint),
            "sums": source.reader.kept_sums(name, fingerprint),
        }
        for fingerprint, scheme in source.reader.schemes().get(name, {}).items()
    ]
    known = listed(source, metric, asked_range(source, "", "", metric=metric))
    values = list(metric.values) or None
    keep = {each: FOREVER if days is None else days for each, days in metric.keep} or None
    document = {**known, "values": values, "keep": keep, "schemes": schemes}
    tag = etag(form, document)
    return unchanged(tag) or represent(form, to_json(document), tag=tag)
