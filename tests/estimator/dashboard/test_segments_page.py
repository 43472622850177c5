"""The page of a metric by segments: of shares, means, distributions and strings."""

import re

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable_collector.stores import open_store

from .conftest import YESTERDAY, browser_of, dashboard_of, fill, fill_numbers, text_of

OF = {"segments": ["platform"], "epsilon": 2.0, "lifetime_epsilon": 200.0}
SEGMENTS = declared(
    {"platform": ["web", "desktop", "a,b", "tv", "car"]},
    theme={"type": "category", "values": ["light", "dark"], **OF},
    tabs={"type": "number", "low": 0, "high": 50, "integer": True, "ask": "mean", **OF},
    load={"type": "number", "low": 0.1, "high": 10, "unit": "s", "scale": "log",
          "ask": "distribution", **OF},
    word={"type": "string", **OF},
    crashed={"type": "boolean", **OF},
    plain={"type": "boolean"},
)  # fmt: skip
N = 30_000


@pytest.fixture(scope="module")
def segmented(tmp_path_factory):
    """A day of each metric, in which desktop differs; of the others there are few reports,
    of two too few. A day before has them too, for the theme."""
    registry = Registry.parse(SEGMENTS)
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('segments')}/store.db")
    store.publish({each.name: [each.scheme] for each in registry})
    for place, n in enumerate((N, N, 200, 80, 90)):
        moved = place == 1
        for day in ("2026-11-12", YESTERDAY):
            fill(store, registry, "theme", [0.7, 0.3] if moved else [0.5, 0.5], n, day, place)
            fill(store, registry, "crashed", [0.1, 0.9], n, day, place)
        tabs = (10 + 20 * moved + np.arange(n) % 5).tolist()
        load = ((1.0 + 2 * moved) * np.exp(np.linspace(-1, 1, n))).tolist()
        for name, numbers in (("tabs", tabs), ("load", load)):
            fill_numbers(store, registry, name, numbers, segment=place)
    yield store, registry
    store.close()


@pytest.fixture(scope="module")
def reader(segmented):
    return browser_of(dashboard_of(*segmented))


def rows_of(text, panel):
    """Of each line of a panel: what is drawn, where it begins, how wide it is, where its point or
    arrow is, in percent, and what it says."""
    title = re.search(rf'<h3 id="series-\d+">{panel}</h3>\s*(<p class="sub">differs</p>)?', text)
    assert title is not None, panel
    table = text[title.start() : text.index("</table>", title.start())]
    found = {}
    for name, line in re.findall(r'<tr[^>]*><th scope="row">(.*?)</th>(.*?)</tr>', table, re.S):
        svg = re.sub(
            '<rect class="bar"[^>]*>', "", line[line.index("<svg") : line.rindex("</svg>")]
        )
        drawn = " ".join(re.findall(r'class="(interval|dot|open)"', svg))
        cells = re.findall(r"<td[^>]*>(.*?)</td>", line.replace(svg, ""), re.S)
        ends = re.findall(r'(?:[c]?x|width)="([0-9.]+)%"', svg)
        told = [re.sub(r"<[^>]*>", "", each) for each in cells]
        found[name] = (drawn, [*map(float, ends)], [told[0], *told[2:]])
    return {"differs": ("", [], []), **found} if title[1] else found


def check_scale(rows):
    """All lines of a panel are drawn on one scale, which begins at zero."""
    spots = [
        (number_in(number), at)
        for drawn, (_, start, width, point), (_, value, between, _) in [*rows.values()][1:]
        if drawn == "interval dot"
        for number, at in zip(
            (*between.split(" to "), value), (start, start + width, point), strict=True
        )
    ]
    most, far = max(spots)
    assert far > 60
    for number, at in spots:
        assert at == pytest.approx(far * number / most, abs=1)


def number_in(text):
    """A number without its unit."""
    return float(text.partition(" ")[0].rstrip("%"))


def near(found, wanted):
    return abs(number_in(found) - wanted) < 0.05 * wanted


def test_shares(reader):
    """Each segment with enough reports has a line, all lines one scale, and those that are compared
    say by how much they differ; values that differ are said to."""
    text = text_of(reader, "/metric/theme/segments")
    rows = {panel: rows_of(text, panel) for panel in ("light", "dark")}
    names = ["differs", "web", "desktop", "a,b", "tv", "car", "all"]
    assert [[*each] for each in rows.values()] == [names] * 2
    assert "2 of 2 series differ between segments" in text
    told = {name: said for name, (_, _, said) in rows["light"].items()}
    assert told["web"] == ["60,000", "50.0%", "49.3% to 50.7%", ""]
    assert told["desktop"] == ["60,000", "70.0%", "69.4% to 70.6%", "+20.0 (+19.1 to +20.9)"]
    assert told["a,b"] == ["400", "50.0%", "41.8% to 58.2%", "0.0 (−8.2 to +8.2)"]
    assert told["all"] == ["120,740", "59.9%", "59.5% to 60.4%", ""]
    for panel in rows.values():
        assert all(drawn == "interval dot" for drawn, _, _ in [*panel.values()][1:])
        check_scale(panel)
    # The smallest of the segments is planned with, by its part of the reports of a day.
    assert "devices=60370&amp;segment_share=0.00133&amp;size=2" in text


@pytest.mark.parametrize(
    ("metric", "panel", "truths"),
    [("tabs", "mean", {"web": 12.0, "desktop": 32.0}), ("load", "p50", {"web": 1, "desktop": 3})],
)
def test_numbers(reader, metric, panel, truths):
    """A mean and a quantile have a scale of their own; small segments are together in the rest."""
    text = text_of(reader, f"/metric/{metric}/segments")
    rows = rows_of(text, panel)
    assert [*rows] == ["differs", "web", "desktop", "a,b", "rest", "all"]
    assert [said[0] for _, _, said in rows.values() if said] == [
        "30,000", "30,000", "200", "170", "60,370",
    ]  # fmt: skip
    assert all(near(rows[name][2][1], truth) for name, truth in truths.items())
    assert near(rows["desktop"][2][3].partition(" ")[0], truths["desktop"] - truths["web"])
    assert rows["rest"][2][3] == rows["all"][2][3] == rows["web"][2][3] == ""
    check_scale(rows)


def test_an_interval_without_a_limit(reader):
    """Where no upper limit is known, an arrow takes the place of the point, and the least that the
    number can be is told."""
    text = text_of(reader, "/metric/load/segments")
    drawn, (_, start, width, arrow), said = rows_of(text, "p99")["desktop"]
    assert drawn == "interval open"
    assert start + width == arrow == 100
    assert said[1].startswith("at least 7.")
    assert said[2].endswith("to no upper limit")
    assert said[3].startswith("at least +4.")
    assert "differs" not in rows_of(text, "p99")


@pytest.mark.parametrize(
    ("address", "status", "told"),
    [
        ("theme/segments?by=plan", 400, "theme is counted by platform: choose one"),
        ("theme/segments?by=platform,platform", 400, "theme is counted by platform: choose one"),
        ("theme/segments?by=&against=desktop", 200, "Difference from desktop"),
        ("theme/segments?by=,platform", 200, "Difference from web"),
        ("theme/segments?against=[%22a,b%22]", 200, "Difference from a,b"),
        ("theme/segments?against=nowhere", 200, "“nowhere” has too few reports here"),
        ("theme/segments?where=&where=platform=web", 200, "“platform=web” is left out, because"),
        ("theme/segments?where=plan=paid", 400, "There is no segment plan=paid."),
        ("theme/segments?series=sepia", 400, "There is no series sepia in all segments."),
        ("theme/segments?period=hour", 400, "period"),
        ("theme/segments?colour=red", 400, "colour"),
        ("plain/segments", 200, "plain is not counted by segments: declare them"),
        ("word/segments", 200, "put them into word.txt in the folder"),
        ("theme/segments.csv?against=nowhere", 400, "leave `against` out"),
        ("theme/segments.csv?where=plan=paid", 400, "There is no segment plan=paid."),
        ("plain/segments.csv", 400, "plain is not counted by segments: declare them"),
    ],
)
def test_what_an_address_asks_for(reader, address, status, told):
    """What there is not is refused in words; what the form sends too is left out, and said."""
    answer = reader.get(f"/metric/{address}")
    while answer.status_code == 202:
        answer = reader.get(f"/metric/{address}")
    text = re.sub("[\u2068\u2069]", "", answer.text.replace("\\u201c", "“").replace("\\u201d", "”"))
    assert answer.status_code == status
    assert told in text


def test_a_list_with_a_mistake(segmented, tmp_path):
    """Of strings, a list that cannot be used is told."""
    (tmp_path / "word.txt").write_text("x" * 100_000 + "\n")
    client = browser_of(dashboard_of(*segmented, candidates_dir=str(tmp_path)))
    text = text_of(client, "/metric/word/segments")
    assert "This cannot be shown" in text
    assert "word.txt" in text
    assert "panel" not in text


def test_one_series_is_no_choice(reader):
    """The trend of a boolean names its series in its heading, and not again below it."""
    for metric, links in (("crashed", 0), ("theme", 1)):
        page = text_of(reader, f"/metric/{metric}/segments")
        assert "Over time: " in page
        section = page[page.index('<h2 id="trend">') : page.index('<ul class="choices"')]
        assert section.count('<p class="since">') == links
