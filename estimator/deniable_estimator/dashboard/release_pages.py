"""Pages of released numbers, which shared links and frames show in place of sums if the operator
says so (DENIABLE_SHARE_RELEASES): the numbers of one release drawn with its words, and what all of
them spend.

They read the ledger of `deniable release` and nothing else: no tally of the store is looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from flask import Blueprint, Response, render_template
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound, ServiceUnavailable

from deniable_collector.operation.events import tell
from deniable_estimator.asking.results import key_of
from deniable_estimator.dashboard.exports import download
from deniable_estimator.dashboard.source import current_source, settings_in_force
from deniable_estimator.document.plot.marks import DrawnLine, LineChart, RuleLine
from deniable_estimator.document.plot.scales import Tick, levels_from_zero
from deniable_estimator.kinds import formats
from deniable_estimator.messages import message
from deniable_estimator.releasing.charge import ReleaseAccount
from deniable_estimator.releasing.release_ledger import (
    KeptRelease,
    LedgerError,
    ListedRelease,
    ReleaseLedger,
)
from deniable_estimator.releasing.words import (
    FORMS,
    METHODS,
    added_noise,
    assumed,
    epsilon_text,
    holds_against,
    pair_part,
    released_frame,
    statement,
)

released = Blueprint("released", __name__)

# What templates say of a manifest.
for _each in (added_noise, assumed, epsilon_text, holds_against, pair_part, statement):
    released.add_app_template_filter(_each)
released.add_app_template_filter(METHODS.get, "method_name")
released.add_app_template_filter(FORMS.get, "form_name")


def view_of(found: KeptRelease, most: int) -> dict[str, Any]:
    """The release with its first rows, or of a trend its newest."""
    assert found.document is not None
    whole = json.loads(found.document)
    manifest, data = whole["manifest"], whole["data"]
    rows = data["rows"]
    leader = rows[0][0] if data["columns"] == ["leader"] else None
    table = released_frame(manifest, data, most) if rows and leader is None else None
    known = {"id": found.id, "made": found.made, "manifest": manifest}
    return {**known, "table": table, "leader": leader}


HEIGHT = 150

MOST_BARS = 30
"""The most metrics that have a bar; the others are counted."""


def spending_of(account: ReleaseAccount, today: date) -> dict[str, Any]:
    """What all releases spend, as it is drawn: `epsilon` is None if none can be stated, and `part`
    is of the budget in percent; for each metric a bar with its name, its releases, its epsilon and
    its width in percent, and a `line` unless everything was released on one day."""
    total, metrics = account.total, list(account.metrics.items())
    # One scale for all bars: the budget, unless more than that is spent.
    spent = (total.budget or 0.0, total.epsilon, *(each.epsilon for _, each in metrics))
    most = max(filter(math.isfinite, spent)) or 1.0

    def part(epsilon: float) -> float:
        return round(100 * min(1.0, epsilon / most), 2)

    def told(epsilon: float) -> str | None:
        return epsilon_text(epsilon) if math.isfinite(epsilon) else None

    return {
        "total": total,
        "unfinished": account.unfinished,
        "epsilon": told(total.epsilon),
        "part": None if total.budget is None else part(total.epsilon),
        "bars": [
            (name, each.releases, told(each.epsilon) or "?", part(each.epsilon))
            for name, each in metrics[:MOST_BARS]
        ],
        "more": max(0, len(metrics) - MOST_BARS),
        "line": _spent_line(account, today),
    }


def _spent_line(account: ReleaseAccount, today: date) -> LineChart | None:
    steps = [(day, epsilon) for day, epsilon in account.steps if math.isfinite(epsilon)]
    if not steps:
        return None
    first, last = steps[0][0], max(today, steps[-1][0])
    spent, budget = max(epsilon for _, epsilon in steps), account.total.budget
    if first == last or not spent:
        return None
    # A budget that is far away would press the line to the ground.
    drawn = budget if budget is not None and budget <= 20 * spent else None
    levels, step = levels_from_zero(max(spent, drawn or 0.0))
    top = max(levels[-1], spent, drawn or 0.0)

    def across(day: date) -> float:
        return round(100 * (day - first).days / (last - first).days, 2)

    def down(epsilon: float) -> float:
        return round(HEIGHT * (1 - epsilon / top), 1)

    digits = max(0, -math.floor(math.log10(step)))
    at = 0.0 if drawn is None else down(drawn)
    return LineChart(
        form="reach",
        name="spent",
        title=message("What had been released by each day"),
        description=message(
            "Epsilon of all releases together: {first} on {day}, {last} by {today}.",
            first=epsilon_text(steps[0][1]),
            day=formats.day(first),
            last=epsilon_text(steps[-1][1]),
            today=formats.day(last),
        ),
        height=HEIGHT,
        lines=(DrawnLine(paths=(_path(steps, across, down),)),),
        rules=()
        if drawn is None
        else (RuleLine((0, at), (100, at), message("budget {budget}", budget=f"{budget:g}")),),
        levels=tuple(Tick(down(each), f"{each:.{digits}f}" if each else "") for each in levels),
        ticks=(Tick(0.0, formats.day(first)), Tick(100.0, formats.day(last))),
    )


def _path(
    steps: Sequence[tuple[date, float]],
    across: Callable[[date], float],
    down: Callable[[float], float],
) -> str:
    """Stairs: what is spent stays spent."""
    parts = [f"M0 {down(0.0):g}"]
    for day, epsilon in steps:
        parts += [f"H{10 * across(day):g}", f"V{down(epsilon):g}"]
    return "".join([*parts, "H1000"])


MOST_LISTED = 500
MOST_ROWS = 400
"""The most rows of a page; the files have all."""

_T = TypeVar("_T")

_SHOWN = 12
"""The most rows of a frame."""


@released.get("/releases")
def releases_page() -> ResponseReturnValue:
    """The newest releases."""
    rows, account = listed(MOST_LISTED), release_account()
    older = 0
    if account is not None:
        older = max(0, account.total.releases - account.unfinished - len(rows))
    return render_template(
        "releases.html",
        spending=account and spending_of(account, current_source().today),
        rows=rows,
        older=older,
        gone=account is not None and not Path(settings_in_force().releases).exists(),
    )


def _offer(which: str, path: str, find: Callable[[str], KeptRelease]) -> None:
    """Offer the page of what is found by a name, and its files: its document and its table."""

    def page(name: str) -> str:
        view = view_of(find(name), MOST_ROWS)
        return render_template("released.html", view=view, name=name, file=f"released.{which}_file")

    def file(name: str, form: str) -> Response:
        found = find(name)
        text = found.document if form == "json" else found.csv
        return download(text or "", f"release-{found.id}", form)

    released.add_url_rule(f"{path}/<name>", f"{which}_page", page)
    released.add_url_rule(f"{path}/<name>.<any(json, csv):form>", f"{which}_file", file)


def newest_view(metric: str) -> dict[str, Any]:
    """The newest release of a metric for a frame.

    Raises:
        NotFound: there is none.
    """
    return view_of(_newest(metric), _SHOWN)


def release_named(name: str) -> KeptRelease | None:
    """The finished release with this id."""
    return _from_ledger(lambda ledger: ledger.finished(name))


def named_release(name: str) -> KeptRelease:
    """The same, for a page.

    Raises:
        NotFound: there is none.
    """
    found = release_named(name)
    if found is None:
        raise NotFound(message("There is no such release."))
    return found


def _newest(metric: str) -> KeptRelease:
    declared = metric in current_source().registry.metrics
    found = _from_ledger(lambda ledger: ledger.newest(metric)) if declared else None
    if found is None:
        raise NotFound(message("Nothing has been released of this metric."))
    return found


_offer("release", "/releases", named_release)
_offer("newest", "/released", _newest)


def listed(most: int, metrics: Sequence[str] = ()) -> list[ListedRelease]:
    """The newest finished releases, of these metrics or of all."""
    return _from_ledger(lambda ledger: ledger.listed(most, metrics)) or []


def release_account() -> ReleaseAccount | None:
    """What all releases spend, which is kept until the file changes; None without a ledger."""

    def spent(ledger: ReleaseLedger) -> ReleaseAccount:
        known = str(ledger.path), ledger.stamp(), ledger.delta, ledger.budget
        return current_source().results.get(key_of("releases spend", *known), ledger.account)

    return _from_ledger(spent)


def _from_ledger(ask: Callable[[ReleaseLedger], _T]) -> _T | None:
    """What the ledger says whose releases are shown; None if the operator has named none."""
    settings = settings_in_force()
    if not settings.releases:
        return None
    limits = settings.release_delta, settings.release_budget
    try:
        return ask(ReleaseLedger(Path(settings.releases), *limits))
    except LedgerError as error:
        tell("error", "releases-away", str(error))
        raise ServiceUnavailable(
            message("Releases cannot be read now. The log says why.")
        ) from None
