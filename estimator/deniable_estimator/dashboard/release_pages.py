"""Pages of released numbers, which shared links and frames show in place of sums if the operator
says so (DENIABLE_SHARE_RELEASES).

They read the ledger of `deniable release` and nothing else: no tally of the store is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from flask import Blueprint, Response, render_template
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound, ServiceUnavailable

from deniable_collector.operation.events import tell
from deniable_estimator.asking.results import digest
from deniable_estimator.dashboard.releases import line_of, spending_of, view_of
from deniable_estimator.dashboard.source import current_source, settings_in_force
from deniable_estimator.messages import message
from deniable_estimator.releasing.ledger import KeptRelease, LedgerError
from deniable_estimator.releasing.looking import (
    ListedRelease,
    ReleaseAccount,
    account_in,
    kept_release,
    ledger_stamp,
    listed_releases,
    newest_release,
)

released = Blueprint("released", __name__)

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
        rows=[line_of(each) for each in rows],
        older=older,
    )


@released.get("/releases/<name>")
def release_page(name: str) -> ResponseReturnValue:
    """The release with this id."""
    return _page(_named(name), name, "released.release_file")


@released.get("/releases/<name>.<form>")
def release_file(name: str, form: str) -> ResponseReturnValue:
    """Its document or its table."""
    return _file(_named(name), form)


@released.get("/released/<name>")
def newest(name: str) -> ResponseReturnValue:
    """The newest release of a metric."""
    return _page(_newest(name), name, "released.newest_file")


@released.get("/released/<name>.<form>")
def newest_file(name: str, form: str) -> ResponseReturnValue:
    """Its document or its table."""
    return _file(_newest(name), form)


def newest_view(metric: str) -> dict[str, Any] | None:
    """The newest release of a metric for a frame; None if there is none."""
    path = ledger_path()
    found = None if path is None else _from_ledger(lambda: newest_release(path, metric))
    return None if found is None else view_of(found, _SHOWN)


def _page(found: KeptRelease, name: str, file: str) -> str:
    """The page of a release; `file` is the endpoint of its files."""
    view = view_of(found, MOST_ROWS)
    return render_template("released.html", view=view, name=name, file=file)


_FORMS = {"json": "application/json", "csv": "text/csv"}


def _file(found: KeptRelease, form: str) -> Response:
    if form not in _FORMS:
        raise NotFound(message("There is no such file: the files are .json and .csv."))
    text = found.document if form == "json" else found.csv
    response = Response(text, mimetype=_FORMS[form])
    name = f"release-{found.id}.{form}"
    response.headers["Content-Disposition"] = f"attachment; filename={name}"
    return response


def release_named(name: str) -> KeptRelease | None:
    """The finished release with this id."""
    path = ledger_path()
    return None if path is None else _from_ledger(lambda: kept_release(path, name))


def _named(name: str) -> KeptRelease:
    found = release_named(name)
    if found is None:
        raise NotFound(message("There is no such release."))
    return found


def _newest(metric: str) -> KeptRelease:
    path = ledger_path()
    found = None
    if path is not None and metric in current_source().registry.metrics:
        found = _from_ledger(lambda: newest_release(path, metric))
    if found is None:
        raise NotFound(message("Nothing has been released of this metric."))
    return found


def listed(most: int, metrics: Sequence[str] = ()) -> list[ListedRelease]:
    """The newest finished releases, of these metrics or of all."""
    path = ledger_path()
    return [] if path is None else _from_ledger(lambda: listed_releases(path, most, metrics))


def release_account() -> ReleaseAccount | None:
    """What all releases spend, which is kept until the file changes; None without a ledger."""
    path = ledger_path()
    if path is None:
        return None
    settings = settings_in_force()
    given = settings.release_delta, settings.release_budget
    key = digest("releases spend", str(path), ledger_stamp(path), *given)
    results = current_source().results
    return _from_ledger(lambda: results.get(key, lambda: account_in(path, *given)))


def ledger_path() -> Path | None:
    """The ledger whose releases are shown; None if the operator has named none."""
    path = settings_in_force().releases
    return Path(path) if path else None


def _from_ledger(ask: Callable[[], _T]) -> _T:
    try:
        return ask()
    except LedgerError as error:
        tell("error", "releases-away", str(error))
        raise ServiceUnavailable(
            message("Releases cannot be read now. The log says why.")
        ) from None
