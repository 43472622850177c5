"""What reports reveal of a device, and what published sums do."""

from __future__ import annotations

from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable import Metric
from deniable_estimator.asking.results import digest
from deniable_estimator.dashboard.access import require_all
from deniable_estimator.dashboard.api.arguments import (
    asked_metric,
)
from deniable_estimator.dashboard.api.parameters import (
    OutsiderParameters,
    PrivacyParameters,
)
from deniable_estimator.dashboard.api.representations import (
    Form,
    etag,
    represent,
    unchanged,
)
from deniable_estimator.dashboard.calculations import (
    outsider_text,
    to_json,
)
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.privacy import guarantee_in, together


def metric_privacy(asked: PrivacyParameters, form: Form, name: str) -> ResponseReturnValue:
    """What the reports of one metric can reveal about a device."""
    source, metric = asked_metric(name, "read:metrics")
    registry = source.registry
    in_place = registry.unasked.get(metric.name)
    about = registry.about(in_place or metric)
    tag = etag(form, metric, registry.lifetime_epsilon, asked.household, about, in_place)
    if same := unchanged(tag):
        return same
    document = guarantee_in(registry, metric, asked.household).to_dict()
    return represent(form, to_json(document), tag=tag)


def privacy(asked: PrivacyParameters, form: Form) -> ResponseReturnValue:
    """What the reports of all metrics together can reveal about a device."""
    registry = current_source().registry
    require_all("read:metrics")
    tag = etag(form, list(registry), registry.lifetime_epsilon, asked.household)
    if same := unchanged(tag):
        return same
    return represent(form, to_json(together(registry, asked.household).to_dict()), tag=tag)


def metric_outsider(asked: OutsiderParameters, form: Form, name: str) -> ResponseReturnValue:
    """What published sums of one metric reveal of a device to a reader who sees nothing else."""
    _, metric = asked_metric(name, "read:metrics")
    return _outsider([metric], metric.name, asked, form)


def outsider(asked: OutsiderParameters, form: Form) -> ResponseReturnValue:
    """What published sums of all metrics together reveal of a device."""
    metrics = list(current_source().registry)
    require_all("read:metrics")
    if not metrics:
        raise NotFound("The registry declares no metric, so there is nothing to publish.")
    return _outsider(metrics, None, asked, form)


def _outsider(
    metrics: list[Metric], name: str | None, asked: OutsiderParameters, form: Form
) -> ResponseReturnValue:
    """The response with what published sums reveal. It takes up to some seconds, so another
    process finds it."""
    source = current_source()
    registry = source.registry
    in_place = [registry.unasked.get(each.name) for each in metrics]
    tag = etag(form, metrics, in_place, registry.lifetime_epsilon, name, asked)
    if same := unchanged(tag):
        return same
    key = digest("outsider", tag)
    text = source.calculate(key, outsider_text, registry, name, asked.reports, asked.delta)
    return represent(form, text, tag=tag)
