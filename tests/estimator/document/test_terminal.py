"""Documents in a terminal: the bars of estimates, and tables without headings."""

import pytest
from rich.console import Console

from deniable_estimator.answers.units import SHARES
from deniable_estimator.document.document import Column, Document, Frame, Note
from deniable_estimator.document.terminal import document_view, picture
from deniable_estimator.terminal.tables import estimate_cell


def shown(frame):
    """The lines of a document with that frame alone."""
    console = Console(width=80, force_terminal=False)
    with console.capture() as captured:
        console.print(document_view(Document("kind", "about", Note(""), frames=(frame,))))
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize("top", [-0.58, 0.0])
def test_a_share_that_is_not_above_zero_has_an_empty_bar(top):
    """Also if the axis of a trend has no length, as where all of its shares are forged."""
    cell = estimate_cell(SHARES, (-0.6, -0.62, top), (0.0, top))
    assert cell.drawn is not None
    assert picture(*cell.drawn).plain == "┃".ljust(20)


def test_a_table_without_headings_has_no_empty_line_for_them():
    """What stands in it begins right below its title."""
    frame = Frame("who", "Who learns what", (Column("who", ""), Column("what", "")), [("a", "b")])
    assert shown(frame) == ["about", "", "Who learns what", "a b"]
