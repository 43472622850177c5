"""The pages of boards: their list, and each of them."""

from __future__ import annotations

from pathlib import Path

from flask import (
    Blueprint,
    Flask,
    current_app,
    g,
    make_response,
    render_template,
    request,
)
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable import Registry
from deniable_estimator.dashboard.access.caller import caller
from deniable_estimator.dashboard.access.roles import Role
from deniable_estimator.dashboard.boards.drawing import draw
from deniable_estimator.dashboard.boards.file import BoardFolder
from deniable_estimator.dashboard.ranges import check_names
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.messages import message

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
    check_names(request.args, ())
    return render_template("boards.html", found=current_boards().all(), writing=_writing())


@boards.get("/boards/<name>")
def board_page(name: str) -> ResponseReturnValue:
    """One board: its charts over their latest complete windows."""
    return show_board(name, "board.html")


def show_board(name: str, template: str) -> ResponseReturnValue:
    """A board on the page that this template makes."""
    check_names(request.args, ())
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
    if mistakes and _writing():
        # The name of the file's folder is not told.
        source = Path(mistakes.source).name
        lines = [each.describe(source) for each in mistakes.problems[:20]]
    if board is None:
        # Nothing has failed: the file waits for its mistakes to be corrected.
        g.nothing_to_share = True
        return render_template("board.html", name=name, board=None, mistakes=lines), 409
    items = draw(current_source(), board)
    page = make_response(
        render_template(template, name=name, board=board, items=items, mistakes=lines)
    )
    if any(each.waiting for each in items):
        page.headers["Refresh"] = str(REFRESH)
    return page


def _writing() -> bool:
    """Whether mistakes are told to whoever asks."""
    person = caller()
    return person is not None and person.role >= Role.ANALYST
