"""The page of a metric by segments: what its address asks for, and what it cannot show."""

import re

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_estimator.asking.work import Workers

from .conftest import browser_of, dashboard_of, fill, text_of

OF = {"segments": ["platform"], "lifetime_epsilon": 200.0}
SEGMENTS = declared(
    {"platform": ["web", "desktop", "a,b"]},
    theme={"type": "category", "values": ["light", "dark"], **OF},
    word={"type": "string", **OF},
    crashed={"type": "boolean", **OF},
)


@pytest.fixture(scope="module")
def segmented(tmp_path_factory):
    """A day of each metric, with as many reports of each segment, and a day before it."""
    registry = Registry.parse(SEGMENTS)
    store = open_store(Settings(store=f"sqlite:///{tmp_path_factory.mktemp('segments')}/store.db"))
    store.publish((each.name, each.scheme) for each in registry)
    for place in range(3):
        for day in ("2026-11-12", "2026-11-20"):
            for name in ("theme", "crashed"):
                fill(store, registry, name, [0.7, 0.3], 400, day, place)
    yield store, registry
    store.close()


@pytest.fixture(scope="module")
def reader(segmented):
    return browser_of(dashboard_of(*segmented))


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("theme/segments?by=&against=desktop", "Difference from desktop"),
        ("theme/segments?by=,platform", "Difference from web"),
        ("theme/segments?against=[%22a,b%22]", "Difference from a,b"),
        ("theme/segments?against=nowhere", "“nowhere” has too few reports here"),
        ("theme/segments?where=&where=platform=web", "Difference from web"),
        ("theme/segments?where=platform=web", "“platform=web” is left out, because the page"),
        ("word/segments", "put them into word.txt in the folder"),
    ],
)
def test_what_an_address_asks_for(reader, address, told):
    """What the form sends and cannot be shown is left out, and said."""
    assert told in re.sub("[\u2068\u2069]", "", text_of(reader, f"/metric/{address}"))


def test_a_list_with_a_mistake(segmented, tmp_path):
    """Of strings, a list that cannot be used is told."""
    (tmp_path / "word.txt").write_text("x" * 100_000 + "\n")
    client = browser_of(dashboard_of(*segmented, candidates_dir=str(tmp_path)))
    text = text_of(client, "/metric/word/segments")
    assert "This cannot be shown" in text
    assert "word.txt" in text
    assert "panel" not in text


def test_large_answers_are_made_elsewhere(reader, segmented, monkeypatch):
    """What other processes estimate is what the server itself does."""
    address = "/metric/theme/segments.csv"
    here = text_of(reader, address)
    ran, run = [], Workers.run
    monkeypatch.setattr(Workers, "run", lambda *asked: ran.append(1) or run(*asked))
    monkeypatch.setattr("deniable_estimator.dashboard.metric_view._LIGHT_CELLS", 0)
    assert text_of(browser_of(dashboard_of(*segmented)), address) == here
    assert len(ran) == 4, "three segments and the total"


def test_one_series_is_no_choice(reader):
    """The trend of a boolean names its series in its heading, and not again below it."""
    for metric, links in (("crashed", 0), ("theme", 1)):
        page = text_of(reader, f"/metric/{metric}/segments")
        assert "Over time: " in page
        section = page[page.index('<h2 id="trend">') : page.index('<ul class="choices"')]
        assert section.count('<p class="since">') == links


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((0.4, 0.2, 0.1), r"web has the highest share of yes: 40\.\d%, twice desktop .*"),
        ((0.1, 0.5, 0.1), r"desktop has the highest share of yes: 50\.\d%, 5\.?\d? times .*"),
        ((0.1, 0.4, 0.4), r"\w+ has a higher share of yes than web: .*, 4\.?\d? times as .*"),
        ((0.5, 0.5, 0.45), r"\w+ has a higher share of yes than tv: .*% against 4\d\.\d%\."),
        ((0.3, 0.3, 0.3), "No difference between segments that can be told from noise"),
    ],
)  # fmt: skip
def test_the_headline_names_the_finding(empty_store, shares, told):
    """The segment with the highest share, and how many times that of the next, or of the lowest
    where the first two cannot be told apart; nothing where nothing stands out. 150,000 reports at
    epsilon 4: each share has a standard error of .3 points, 10 to 30 of which are between those
    that are named."""
    crashed = {"type": "boolean", "epsilon": 4.0, "segments": ["system"]}
    registry = Registry.parse(declared({"system": ["web", "desktop", "tv"]}, crashed=crashed))
    empty_store.publish([("crashed", registry["crashed"].scheme)])
    for place, share in enumerate(shares):
        fill(empty_store, registry, "crashed", [share, 1 - share], 50_000, segment=place)
    reader = browser_of(dashboard_of(empty_store, registry))
    page = text_of(reader, "/metric/crashed/segments")
    found = re.search(r'class="headline[^>]*>(.*?)</h2>', page)
    assert found is not None
    assert re.fullmatch(told, re.sub("[\u2066-\u2069]", "", found[1])), found[1]
