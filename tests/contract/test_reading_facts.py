"""Facts are read from each form of output; outputs that say the same have the same facts."""

from __future__ import annotations

from .facts import difference, facts_of, same, written

PAGE = """<html><head><title>Browsers</title><style>p {}</style></head><body>
<header>Sign out</header><main><h1>Which <em>browser</em> leads?</h1><p hidden>No</p>
<table><thead><tr><th>Value</th><th>Share</th></tr></thead>
<tr><th>firefox</th><td>40.1%</td></tr><tr><th>chrome</th><td><p>30%</p></td></tr></table>
<dl><dt>Owner</dt><dd>web</dd></dl><input name="days" value="28"><input type="hidden" value="x">
<svg><title>A chart</title><text>25%</text><text>before: 50</text></svg><img alt="Two bars"></main>
</body></html>"""


def lines(text: str, form: str) -> list[str]:
    return written(facts_of(text, form))


def test_a_page() -> None:
    """Sentences are whole, cells have their row and column, and marks of axes are left out."""
    assert lines(PAGE, "html") == [
        *("A chart", "Browsers", "Owner: web", "Two bars", "Which browser leads?", "before: 50"),
        *("days = 28", "# chrome", "  Share: 30%", "# firefox", "  Share: 40.1%"),
    ]
    assert "Sign out" in written(facts_of(PAGE, "html", around=True))


def test_a_page_that_is_laid_out_otherwise() -> None:
    """Other tags, another order and other columns say the same."""
    other = """<main><div class="new">Two bars</div><figure aria-label="A chart"><i>before: 50</i>
    </figure><table><thead><tr><th>Value</th><th>n</th><th>Share</th></tr></thead>
    <tr><td>chrome</td><td></td><td>30%</td></tr><tr><td>firefox</td><td></td><td>40.1%</td></tr>
    </table><div><span>Which</span> <b>browser</b> leads?</div><dl><div><dt>Owner</dt><dd>web</dd>
    </div></dl><label>days = 28</label></main><title>Browsers</title>"""
    assert facts_of(other, "html") == facts_of(PAGE, "html")


def test_a_cell_that_moves_to_another_row() -> None:
    """Shares that are exchanged are another answer."""
    swapped = PAGE.replace("40.1%", "@").replace("30%", "40.1%").replace("@", "30%")
    assert difference(lines(PAGE, "html"), lines(swapped, "html")) == [
        *("- # chrome | Share: 30%", "+ # chrome | Share: 40.1%"),
        *("+ # firefox | Share: 30%", "- # firefox | Share: 40.1%"),
    ]


def test_json_and_csv() -> None:
    """Both name the object or the row that a number belongs to; the nesting above it is layout."""
    flat = lines('{"n": 3, "values": [{"value": "a", "share": 0.1234567891234}]}', "json")
    assert flat == ["n: 3", "# a", "  share: 0.123456789"]
    assert lines("value,share\na,0.5\nb,0.25\n", "csv") == [
        "# a",
        "  share: 0.5",
        "# b",
        "  share: 0.25",
    ]
    assert lines("value,share,n\na,0.5,7\nb,0.25,7\n", "csv")[0] == "n: 7"
    sides = lines('{"before": {"n": 1}, "after": {"n": 2}, "windows": ["w1", "w2"]}', "json")
    assert sides == ["windows: w1, w2", "# after", "  n: 2", "# before", "  n: 1"]


def test_a_terminal() -> None:
    """A row belongs to its first words, a bar says nothing, and a sentence stays whole."""
    shown = "value    %      95%\n│ fire fox  40.1 38.0 .. 42.2 ███▒┃\nNote: 3 of 4 rest on 5.\n"
    assert lines(shown, "text") == [
        *("Note: 3 of 4 rest on 5.", "# fire fox", "  38.0 .. 42.2", "  40.1"),
        *("# value · %", "  95%"),
    ]


def test_what_counts_as_the_same() -> None:
    """The last digits of long numbers may differ, and nothing else."""
    assert same("share: 0.123456789, 1.25", "share: 0.123456788, 1.25")
    assert not same("share: 0.123456789, 1.25", "share: 0.123456589, 1.25")
    assert not same("share: 0.123456789, 1.25", "share: 0.123456789, 1.24")
    assert not same("share: 0.123456789, 7", "share: 0.123456789, 8")
    assert not same("share: 1.25", "share: 1.250")
    assert not difference(["# a", "  low: 0.123456789"], ["# a", "  low: 0.123456788"])
    assert difference(["# a", "  low: 0.5"], ["# b", "  low: 0.5"]) == [
        *("- # a | low: 0.5", "+ # b | low: 0.5"),
    ]
