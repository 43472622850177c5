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
from deniable_estimator.dashboard.boards.board import Board
from deniable_estimator.dashboard.boards.drawing import draw
from deniable_estimator.dashboard.boards.folder import BoardFolder
from deniable_estimator.dashboard.ranges import check_names
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.files import CheckedFileError
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
    board, mistakes = found_board(name)
    told = mistake_lines(mistakes) if _writing() else ()
    if board is None:
        # Nothing has failed: the file waits for its mistakes to be corrected.
        g.nothing_to_share = True
        return render_template("board.html", name=name, board=None, mistakes=told), 409
    items = draw(current_source(), board)
    page = make_response(
        render_template(template, name=name, board=board, items=items, mistakes=told)
    )
    if any(each.waiting for each in items):
        page.headers["Refresh"] = str(REFRESH)
    return page


def found_board(name: str) -> tuple[Board | None, CheckedFileError | None]:
    """The board of that name, and what is wrong with its file.

    Raises:
        NotFound: there is none; the message names one that is spelt like it.
    """
    try:
        return current_boards().get(name)
    except KeyError as error:
        nearest = str(error.args[0]).removeprefix("; did you mean ").removesuffix("?")
        if nearest:
            told = message("There is no board of that name. Did you mean {name}?", name=nearest)
            raise NotFound(told) from None
        raise NotFound(message("There is no board of that name.")) from None


def mistake_lines(error: CheckedFileError | None) -> tuple[str, ...]:
    """What is wrong with a file, a line for each; the name of its folder is not told."""
    if error is None:
        return ()
    return tuple(each.describe(Path(error.source).name) for each in error.problems[:20])


def _writing() -> bool:
    """Whether mistakes are told to whoever asks."""
    person = caller()
    return person is not None and person.role >= Role.ANALYST
