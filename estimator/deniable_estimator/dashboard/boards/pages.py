"""The pages of boards: their list, and each of them, with its charts calculated: what each shows,
or why it shows nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from flask import Blueprint, Flask, current_app, g, make_response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import NotFound

from deniable import DeniableError, Metric, Registry
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.asking.history import History
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.access.caller import has_role
from deniable_estimator.dashboard.access.people import Role
from deniable_estimator.dashboard.annotation_file import annotated
from deniable_estimator.dashboard.boards.definition import Board, BoardChart, BoardFolder
from deniable_estimator.dashboard.data import PAGE_PATIENCE, DataSource
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.recent import chart_told
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.timeline import plain_timeline, trend_of
from deniable_estimator.dashboard.view import View, read_view
from deniable_estimator.document.document import Picture
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import read_inputs
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.kind import Kind, Shown
from deniable_estimator.kinds.numbers.words import series_frame
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.kinds.shares.charts import bar_chart, bar_order
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import message

BARS = 12
LINES = 12
"""The most bars, and lines of a table, unless the board names the values."""

_HEIGHT = 160


def board_items(source: DataSource, board: Board) -> list[dict[str, Any]]:
    """The items of a board, as its template takes them. Each has its `number`, its place from 1,
    for ids on the page. A chart has the `metric` and what was found of it; one that cannot be shown
    says why (`problem`), or that it is being calculated (`waiting`), and the others are there."""
    strings = sum(source.registry[each.metric].needs_candidates for each in board.charts)
    # However many have strings to decode, the page waits no longer than any other does.
    quick = replace(source, patience=min(source.patience, PAGE_PATIENCE) / max(1, strings))
    return [
        {
            "item": item,
            "number": number,
            **(_draw(quick, item, number) if isinstance(item, BoardChart) else {}),
        }
        for number, item in enumerate(board.items, 1)
    ]


def view_of(source: DataSource, item: BoardChart, metric: Metric) -> View:
    """The view of the metric's page that a chart shows, and leads to: the days that are named, or
    those after an annotation, or those that the page shows by itself."""
    asked = MultiDict(item.asked)
    if item.view == "trend":
        asked.setlist("value", list(item.values))
    view = read_view(asked, metric, source)
    if item.days is None:
        return view
    first = view.days.last - timedelta(days=item.days - 1)
    days = replace(view.days, first=first)
    return replace(view, days=PageReading(source, metric, days).whole.days)


def _draw(source: DataSource, item: BoardChart, number: int) -> dict[str, Any]:
    """What is found of a chart; without reports no `kind`."""
    metric = source.registry[item.metric]
    drawn: dict[str, Any] = {"metric": metric}
    try:
        drawn["view"] = view = view_of(source, item, metric)
        reading = PageReading(source, metric, view.days, source.candidates(metric))
        drawn |= chart_told(reading, view)
        estimate = drawn["estimate"]
        if isinstance(metric.type, Discovery):
            told = message("A board does not show what a discovery finds: see its page.")
            drawn["problem"] = told
        elif estimate is None:
            drawn["problem"] = message("Any string: name those that you look for on its page.")
        elif kind := drawn.get("kind"):
            if item.view == "shares":
                drawn["pictures"] = _pictures(kind, estimate, item, view, number)
            elif item.view == "table":
                drawn |= _table(kind, estimate, item)
            elif item.view == "trend":
                drawn |= _trend(reading, view, estimate, drawn["alarm"], f"item-{number}")
    except (StillDecoding, TooManyDecodes):
        drawn["waiting"] = True
    except DeniableError as error:
        # One that cannot be shown must not take the others away.
        drawn["problem"] = str(error)
    return drawn


def _pictures(
    kind: Kind[Any], estimate: Answer, item: BoardChart, view: View, number: int
) -> tuple[Picture, ...]:
    pictures = kind.pictures(estimate, view.shown(), BARS)
    if isinstance(estimate, Shares) and item.values:
        order = bar_order(estimate).tolist()
        places = [place for place in order if estimate.values[place] in item.values]
        if not places:
            raise EstimateError(message("None of the values of this chart is estimated."))
        chart = bar_chart(estimate, places=np.array(places))
        pictures = (replace(pictures[0], chart=chart, notes=()),)
    # Ids must differ where a board shows a metric twice.
    return tuple(
        replace(each, chart=replace(each.chart, name=f"item-{number}-{place}"))
        for place, each in enumerate(pictures)
    )


def _table(kind: Kind[Any], estimate: Answer, item: BoardChart) -> dict[str, Any]:
    """The table, and how many values are not listed."""
    every = len(estimate.series.names)
    shown = Shown(drawn=False, rows=every if item.values else LINES)
    if isinstance(estimate, Shares):
        table = kind.frames(estimate, shown)[0].narrow
    else:
        table = series_frame(estimate, shown, message("Number"))
    rows, tones = list(table.rows), list(table.tones) or ["plain"] * len(table.rows)
    if item.values:
        labels = {estimate.unit.label(each): at for at, each in enumerate(item.values)}
        keys = [labels.get(getattr(row[0], "value", row[0]), -1) for row in rows]
        chosen = sorted((at for at, key in enumerate(keys) if key >= 0), key=keys.__getitem__)
    else:
        chosen = list(range(min(len(rows), LINES)))
    rows, tones = [rows[at] for at in chosen], [tones[at] for at in chosen]
    table = replace(table, rows=rows, tones=tones, notes=(), folded=0, fold="")
    return {"table": table, "more": max(0, every - len(rows))}


def _trend(
    reading: PageReading, view: View, estimate: Answer, alarm: History | None, name: str
) -> dict[str, Any]:
    """The trend and the annotations on it; without two periods that have reports, nothing."""
    shown = [each for each in view.values if each in estimate.series.names]
    shown = shown or kind_of(estimate).over_time(estimate, ())[:1]
    found, alarmed = trend_of(reading, estimate, view.asked["by"], shown, alarm)
    drawn = plain_timeline(found, shown, alarmed=alarmed, name=name, height=_HEIGHT)
    if not drawn:
        return {}
    periods = drawn.trend.periods
    noted = annotated(reading.metric, reading.days.around, reading.source.today, periods)
    # What came after these days has no place on a chart of them.
    return {"trend": drawn, "noted": noted and replace(noted, later=())}


boards = Blueprint("boards", __name__)

REFRESH = 5
"""Seconds after which a page looks again for charts that are being calculated."""


def offer_boards(app: Flask, folder: str, registry: Registry) -> None:
    """Show the boards of a folder; without one the list says how to make some."""
    kept = BoardFolder(Path(folder) if folder else None, registry)
    app.extensions["deniable_boards"] = kept
    app.register_blueprint(boards)
    app.jinja_env.globals["has_boards"] = lambda: bool(kept.names)
    # Mistakes are logged when the dashboard starts, not with the first reader.
    kept.all()


def current_boards() -> BoardFolder:
    """The boards of the current application."""
    found: BoardFolder = current_app.extensions["deniable_boards"]
    return found


@boards.get("/boards")
def boards_page() -> ResponseReturnValue:
    """All boards."""
    read_inputs((), request.args)
    return render_template(
        "boards.html", found=current_boards().all(), writing=has_role(Role.ANALYST)
    )


@boards.get("/boards/<name>")
def board_page(name: str) -> ResponseReturnValue:
    """One board: its charts over their latest complete windows."""
    return show_board(name)


def show_board(name: str, *, bare: bool = False) -> ResponseReturnValue:
    """A board on its page, or for a frame of another one."""
    read_inputs((), request.args)
    try:
        board, mistakes = current_boards().get(name)
    except KeyError as error:
        told = message("There is no board of that name.")
        if error.args:
            told = message(
                "There is no board of that name. Did you mean {name}?", name=error.args[0]
            )
        raise NotFound(told) from None
    lines: list[str] = []
    if mistakes and has_role(Role.ANALYST):
        # The name of the file's folder is not told.
        source = Path(mistakes.source).name
        lines = [each.describe(source) for each in mistakes.problems[:20]]
    if board is None:
        # Nothing has failed: the file waits for its mistakes to be corrected.
        g.nothing_to_share = True
        return render_template("board.html", name=name, board=None, mistakes=lines), 409
    items = board_items(current_source(), board)
    page = make_response(
        render_template(
            "board.html", name=name, board=board, items=items, mistakes=lines, bare=bare
        )
    )
    if any("waiting" in each for each in items):
        page.headers["Refresh"] = str(REFRESH)
    return page
