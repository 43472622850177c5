"""The pages that make, list and revoke links."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Literal

from flask import Blueprint, current_app, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable.protocol import windows
from deniable_collector.upkeep.keeper import SETTLED
from deniable_estimator.dashboard.access.caller import allows, asked_for, caller
from deniable_estimator.dashboard.access.people import Role
from deniable_estimator.dashboard.sharing.links import (
    NOTE_LENGTH,
    LinksError,
    SharedLink,
    SharedLinks,
)
from deniable_estimator.dashboard.sharing.opening import VIEWS, SharedView, ViewError, read_address
from deniable_estimator.dashboard.source import current_source, settings_in_force, settled_day
from deniable_estimator.messages import message

sharing = Blueprint("sharing", __name__)

DAYS = 30
"""For how long a link opens if nothing else is chosen."""

_PAGE = "pages.metric_page"
_CHART = "embedding.embedded"
_ALONE = {_PAGE: _CHART, "boards.board_page": "embedding.embedded_board"}
"""Page -> the same without what is around its charts, for a frame."""

_SIZES = {_PAGE: (640, 420), "boards.board_page": (960, 720)}
"""Width and height of a frame, in pixels."""


def offer_share() -> str | None:
    """The address of the page that shares the view of this request; None if it cannot be shared,
    or not by whoever asks."""
    if request.endpoint not in VIEWS or not allows("sharing.share"):
        return None
    if g.get("nothing_to_share"):
        return None
    name = (request.view_args or {}).get("name")
    if g.get("kept_lists", {}).get(name) is not None:
        # The strings are this reader's own.
        return None
    return url_for("sharing.share", view=asked_for(request))


@sharing.get("/share")
def share() -> ResponseReturnValue:
    """The form: for how long, with which note."""
    return _page(read_address(request.args.get("view", "")))


@sharing.errorhandler(ViewError)
def _unshared(error: ViewError) -> ResponseReturnValue:
    return _page(None, str(error), status=400)


@sharing.post("/share")
def make() -> ResponseReturnValue:
    """Make the link, and show it once."""
    sent, most = request.form, settings_in_force().dashboard_link_days
    view = read_address(sent.get("view", ""))
    days, note = sent.get("days", "").strip(), sent.get("note", "").strip()
    mistakes = {}
    if not (days.isascii() and days.isdecimal() and 1 <= int(days[:9]) <= most):
        mistakes["days"] = message("must be a whole number of days from 1 to {most}", most=most)
    if len(note) > NOTE_LENGTH or not note.isprintable():
        told = message("must be one line of up to {most} characters", most=NOTE_LENGTH)
        mistakes["note"] = told
    if mistakes:
        return _page(view, mistakes=mistakes, status=400)
    person = caller()
    assert person is not None, "no token of the read API comes here"
    path = view.path
    if sent.get("part") == "chart" and view.endpoint in _ALONE:
        path = url_for(_ALONE[view.endpoint], name=view.name)
    today, unfinished = current_source().today, sent.get("unfinished") == "1"
    about = view.query, person.name, person.entry, note, unfinished
    try:
        link = _links().make(SharedLink(path, today, today + timedelta(int(days)), *about))
    except LinksError as error:
        return _page(view, str(error), status=409)
    settings = settings_in_force()
    public = settings.public_url or request.host_url.rstrip("/")
    # A link must be whole in a frame of another site, so it takes the dashboard's own address too.
    framed = path != view.path and settings.dashboard_frame_ancestors and settings.public_url
    return render_template(
        "share.html",
        link=link,
        view=view,
        address=f"{public}{link.opened_at}",
        frame=_SIZES[view.endpoint] if framed else None,
        lasting=_links().lasting,
    )


@sharing.get("/links")
def links() -> ResponseReturnValue:
    """The links that one has made; of an operator, those of everybody."""
    found = _links().listed(_own())
    today = current_source().today
    return render_template(
        "links.html",
        links=[each for each in found if each.until >= today],
        ended=[each for each in found if each.until < today],
        everybody=_own() is None,
        revoked=request.args.get("revoked") == "1",
        lasting=_links().lasting,
    )


@sharing.post("/links/<known>/revoke")
def revoke(known: str) -> ResponseReturnValue:
    """End a link of one's own; an operator, anybody's."""
    if _links().revoke(known, _own()) is None:
        raise NotFound(message("You have no such link. The list shows those that there are."))
    return redirect(url_for("sharing.links", revoked="1"), 303)


def _own() -> str | None:
    """Whose links this person may see and end; None for those of everybody."""
    person = caller()
    return None if person is None or person.role >= Role.OPERATOR else person.name


def _page(
    view: SharedView | None,
    refusal: str | None = None,
    mistakes: Mapping[str, str] | None = None,
    status: int = 200,
) -> ResponseReturnValue:
    """The form as it was sent, with what is wrong with it: as a whole, and by its fields."""
    sent = request.form or {"view": request.args.get("view", "")}
    page = render_template(
        "share.html",
        form=sent,
        days=sent.get("days", str(min(DAYS, settings_in_force().dashboard_link_days))).strip(),
        view=view,
        refusal=refusal,
        mistakes=mistakes or {},
        most=settings_in_force().dashboard_link_days,
        note_length=NOTE_LENGTH,
        framable=view is not None and view.endpoint in _ALONE,
        opens=_opens_instead(view),
        empty=_empty_until(view),
        since=view is not None and "since=" in view.query,
        fixed=view is not None and ("from=" in view.query or "to=" in view.query),
        lasting=_links().lasting,
    )
    return page, status


def _opens_instead(view: SharedView | None) -> Literal["release", "newest", "nothing"] | None:
    """What a link to this view opens, if it is not days of a metric: one release, the newest one of
    a metric, or nothing because links show released numbers alone."""
    if view is None:
        return None
    if view.endpoint == "released.release_page":
        return "release"
    if view.endpoint == "released.newest_page":
        return "newest"
    if not settings_in_force().share_releases:
        return None
    return "newest" if view.endpoint in (_PAGE, _CHART) else "nothing"


def _empty_until(view: SharedView | None) -> date | None:
    """The day until which a link to this metric would show nothing, as all its windows still take
    reports; None where it shows something, or nothing has been reported."""
    source = current_source()
    metric = source.registry.metrics.get(view.name) if view else None
    labels = source.labels(metric) if metric else []
    if not labels:
        return None
    if min(map(windows.end, labels)) + SETTLED <= source.clock():
        return None
    return min(map(settled_day, labels))


def _links() -> SharedLinks:
    found: SharedLinks = current_app.extensions["deniable_links"]
    return found
