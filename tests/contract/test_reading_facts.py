"""Facts are read from each form of output; outputs that say the same have the same facts."""

from .facts import difference, facts_of, same, written

PAGE = """<html><head><title>Browsers</title><style>p {}</style></head><body>
<header>Sign out</header><main><h1>Which <em>browser</em> leads?</h1><p hidden>No</p>
<table><thead><tr><th>Value</th><th>Share</th></tr></thead>
<tr><th>firefox</th><td>40.1%</td></tr><tr><th>chrome</th><td><p>30%</p></td></tr></table>
<dl><dt>Owner</dt><dd>web</dd></dl><input name="days" value="28"><input type="hidden" value="x">
<svg><title>A chart</title><text>25%</text><text>before: 50</text></svg><img alt="Two bars"></main>
</body></html>"""


def lines(text, form):
    return written(facts_of(text, form))


def test_a_cell_that_moves_to_another_row():
    """Shares that are exchanged are another answer."""
    swapped = PAGE.replace("40.1%", "@").replace("30%", "40.1%").replace("@", "30%")
    assert difference(lines(PAGE, "html"), lines(swapped, "html")) == [
        *("- # chrome | Share: 30%", "+ # chrome | Share: 40.1%"),
        *("+ # firefox | Share: 30%", "- # firefox | Share: 40.1%"),
    ]


def test_what_counts_as_the_same():
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
