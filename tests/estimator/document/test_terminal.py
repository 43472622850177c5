"""Documents in a terminal: the bars of estimates, and tables without headings."""

import pytest
from rich.console import Console

from deniable_estimator.document.document import Column, Document, Estimate, Fact, Frame, Note
from deniable_estimator.document.terminal import picture, show
from deniable_estimator.document.units import SHARES
from deniable_estimator.kinds.formats import estimate_of


@pytest.mark.parametrize("top", [-0.58, 0.0])
def test_a_share_that_is_not_above_zero_has_an_empty_bar(top):
    """Also if the axis of a trend has no length, as where all of its shares are forged."""
    cell = estimate_of(SHARES, -0.6, -0.62, top, axis=(0.0, top))
    assert cell.drawn is not None
    assert picture(*cell.drawn).plain == "┃".ljust(20)


BAR = 0.2, 0.25, 0.6
BARS = Frame(
    "bars",
    "How many",
    (
        Column("name", "name", "words"),
        Column("hidden", "hidden", data_only=True),
        Column("count", "how\nmany", "count", empty="none"),
        Column("part", "part", "share"),
        Column("share", "share\n%", "estimate", interval="between\n%", scale=("0", "9")),
    ),
    [
        (
            "a long name, or two words",
            1,
            1234,
            0.12345,
            Estimate(1, "1", "alarm", "", "0 .. 2", BAR),
        ),
        ("b", 1, None, 1.0, Estimate(None, "too few")),
    ],
    tones=("strong", "quiet"),
    notes=("A note.",),
)
WORDS = Frame("who", "", (Column("who", ""), Column("what", "", "words")), [("a", "b"), ("c", "d")])


def test_a_document_is_laid_out(stays):
    """Bars are left out where the words would have too little room beside them; a table without
    headings begins right below its title."""
    notes = (Note("Watch out.", "warn"),)
    facts = (Fact("is", "is it", False, "no", "why not"),)
    document = Document("kind", "about", Note("Well.", "good"), facts, (BARS, WORDS), notes)
    lines = []
    for width in (90, 56, 55):
        console = Console(width=width, force_terminal=True, color_system="standard", no_color=False)
        with console.capture() as captured:
            show(document, console)
        lines += [f"== {width}", *captured.get().replace("\x1b", "^").splitlines()]
    stays("laid_out.txt", lines)
