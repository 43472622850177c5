"""What a mistake is, in words, and what to do about it."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from deniable import Metric, Registry
from deniable.protocol.types import Discovery
from deniable_estimator.messages import message

if TYPE_CHECKING:
    from deniable_estimator.development.arrivals import Mistake

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""A name that a metric may have; whatever else was recorded is not put into a command."""

_NAMED = 10
"""So many values of a list are named."""


def advice_on(mistake: Mistake, registry: Registry) -> tuple[str, str]:
    """What was found, and what to do, as texts that pages translate."""
    code, name = mistake.code, mistake.metric or ""
    metric = registry.metrics.get(name)
    if code == "unknown_metric":
        return message("There is no metric “{metric}”.", metric=name), _declare(name, registry)
    if code == "refused_value" and metric is not None:
        return (
            message(
                "“{metric}” cannot take a value that was recorded. Nothing was reported.",
                metric=name,
            ),
            _takes(metric),
        )
    if code == "undeclared_value":
        return (
            message(
                "A value that “{metric}” does not list was recorded. It counts as its “other”.",
                metric=name,
            ),
            message(
                "To count it separately, add it to `values`. Upper and lower case differ, and so "
                "do spaces."
            ),
        )
    if code == "expired_metric":
        return (
            message("“{metric}” has expired, so nothing is recorded.", metric=name),
            message("Set `expires` to a later day."),
        )
    if code == "missing_segment":
        return (
            message("The app has not told a segment, so its metrics are not recorded."),
            message(
                "Pass `segments` to the client or call set_segments() (in a page setSegments()). "
                "Or declare an “other” for the segment."
            ),
        )
    if code == "no_consent":
        return (
            message("The app records without consent, so nothing is kept or sent."),
            message("Pass consent=True (in a page `consent: true`), or call opt_in() (optIn())."),
        )
    if code == "disabled":
        return (
            message("Telemetry is switched off where the app runs, so nothing is recorded."),
            message(
                "Unset DO_NOT_TRACK and DENIABLE_DISABLED; in a browser, switch Global Privacy "
                "Control and Do Not Track off for this page."
            ),
        )
    if code == "unknown_scheme":
        return (
            message(
                "A report of “{metric}” was made with other parameters than metrics.toml has now. "
                "It was left out.",
                metric=name,
            ),
            message(
                "Restart the app, so that it reads the file again. If it ships a compiled "
                "registry, run `deniable compile` or `deniable compile web` first."
            ),
        )
    if code == "not_development":
        return (
            message("A batch came without the mark of development mode. It was refused."),
            message(
                "Set DENIABLE_DEV for the app, or `development` in the client. In a page, take the "
                "development build: a released one does nothing with `development`."
            ),
        )
    if code == "origin":
        return (
            message("A page of {origin} wanted to send. It was refused.", origin=mistake.detail),
            message("If the page is yours, start `deniable dev` with --origin and this address."),
        )
    if code == "batch":
        return (
            message("A batch was refused as a whole: {detail}.", detail=mistake.detail),
            message(
                "This is a mistake of the SDK that sent it; docs/reference/protocol.md has the "
                "format."
            ),
        )
    return (
        message(
            "A report of “{metric}” was left out ({reason}): {detail}.",
            metric=name,
            reason=code,
            detail=mistake.detail,
        ),
        message(
            "docs/reference/protocol.md says what each reason means. Check the clock of the device."
        ),
    )


def _declare(name: str, registry: Registry) -> str:
    near = difflib.get_close_matches(name, registry.metrics, n=1, cutoff=0.5)
    if near:
        return message(
            "Did you mean “{near}”? If not, declare the metric with `deniable add`.", near=near[0]
        )
    if not _NAME.fullmatch(name):
        return message("A metric's name has small letters, digits and underscores.")
    return message("Declare it: deniable add {metric}", metric=name)


def _takes(metric: Metric) -> str:
    """What the metric takes."""
    if metric.type.name == "boolean":
        return message("It takes true and false alone.")
    if metric.type.of:
        return message(
            "It is a pair, which is not recorded itself. Record {of}: the device joins them.",
            of=", ".join(metric.type.of),
        )
    if metric.values:
        named = ", ".join(metric.values[:_NAMED])
        if len(metric.values) > _NAMED:
            return message(
                "It takes one of its {count} values, like {named}; a list with `other` takes any "
                "text.",
                count=len(metric.values),
                named=named,
            )
        return message("It takes one of {named}. A list with “other” takes any text.", named=named)
    if isinstance(metric.type, Discovery):
        return message("It takes any text without half of a surrogate pair.")
    if metric.needs_candidates:
        return message("It takes a text of 1 to 1,024 bytes without control characters.")
    return message("It takes a number, and neither a text nor true or false.")
