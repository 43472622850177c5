"""What changed since an annotation: pages, files, pictures, links and the read API."""

from contextlib import closing
from datetime import date, timedelta

import pytest

from deniable import Registry
from deniable.protocol import windows
from deniable_collector.stores import open_store

from .conftest import REGISTRY, SEGMENTED, browser_of, dashboard_of, fill, text_of

RELEASE = date(2026, 11, 10)


@pytest.fixture
def since_app(empty_store, registry, tmp_path):
    """Three weeks before and ten days after a release, with which dark mode rose from 20 to 32%.
    Nothing else changed, and a second annotation has no complete day after it."""
    for ago in range(31):
        day = date(2026, 11, 20) - timedelta(ago)
        yes = 0.32 if day > RELEASE else 0.2
        fill(empty_store, registry, "dark_mode", [yes, 1 - yes], 20_000, day.isoformat())
        fill(empty_store, registry, "browser", [0.25, 0.74, 0.01, 0], 20_000, day.isoformat())
    path = tmp_path / "annotations.toml"
    path.write_text(
        f'schema = 1\n[[annotations]]\ndate = {RELEASE}\ntext = "Release 4.2"\n'
        '[[annotations]]\ndate = 2026-11-20\ntext = "Release 4.3"\n'
    )
    return dashboard_of(empty_store, registry, data=str(tmp_path))


@pytest.fixture
def reader(since_app):
    return browser_of(since_app)


def test_the_segment_that_moved_most_is_named(tmp_path):
    """The platform in which a theme became common, and no other, with its trend over both
    periods."""
    registry = Registry.parse(REGISTRY + SEGMENTED)
    store = open_store(f"sqlite:///{tmp_path}/segments.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    for ago in range(21):
        day = date(2026, 11, 20) - timedelta(ago)
        for segment in (0, 1):
            light = 0.4 if segment and day > RELEASE else 0.6
            fill(store, registry, "theme", [light, 1 - light], 9_000, day.isoformat(), segment)
    reader = browser_of(dashboard_of(store, registry))
    page = text_of(reader, "/metric/theme/segments?since=2026-11-10")
    assert "Since 2026-11-10, 1 segment changed beyond noise, desktop:" in page
    store.close()


def test_the_days_before_are_of_the_same_part_of_the_crowd(tmp_path):
    """Within one plan, which differs from the other and never changes, no platform has changed."""
    plans = '[segments.plan]\nvalues = ["free", "paid"]\n'
    both = SEGMENTED.replace('segments = ["platform"]', 'segments = ["platform", "plan"]')
    registry = Registry.parse(REGISTRY + plans + both)
    with closing(open_store(f"sqlite:///{tmp_path}/plans.db")) as store:
        store.publish({metric.name: [metric.scheme] for metric in registry})
        for ago in range(21):
            day = date(2026, 11, 20) - timedelta(ago)
            for place, labels in enumerate(registry["theme"].scheme.combinations):
                light = 0.6 if labels["plan"] == "free" else 0.3
                shares = [light, 1 - light]
                fill(store, registry, "theme", shares, 9_000, day.isoformat(), place)
        reader = browser_of(dashboard_of(store, registry))
        asked = "/metric/theme/segments?by=platform&where=plan%3Dfree&since=2026-11-10"
        assert "no segment changed by more than noise" in text_of(reader, asked)


def test_an_annotation_of_another_metric_is_another_moment(since_app, tmp_path):
    """Two annotations have one text: the page, its choices and the overview take the one that
    concerns the metric."""
    with (tmp_path / "annotations.toml").open("a") as file:
        file.write(
            '[[annotations]]\ndate = 2026-11-15\ntext = "Release 4.2"\nmetrics = ["browser"]\n'
        )
    reader = browser_of(since_app)
    own = "11 Nov 2026 to 20 Nov 2026 vs 28 Oct 2026 to 6 Nov 2026"
    assert own in text_of(reader, "/metric/dark_mode?since=Release+4.2")
    assert own not in text_of(reader, "/metric/browser?since=Release+4.2")
    assert "16 Nov 2026 to 20 Nov 2026 vs" in text_of(reader, "/metric/browser?since=Release+4.2")
    cards = text_of(reader, "/?since=Release+4.2")
    assert own in cards
    assert "16 Nov 2026 to 20 Nov 2026 vs" in cards


def test_days_that_were_dropped_are_not_compared(tmp_path):
    """Where days are dropped and months kept, both periods are as long as the days that are left;
    and the overview of days that were dropped names them on the metric's card."""
    text = REGISTRY.replace(
        "[metrics.dark_mode]", "[metrics.dark_mode]\nkeep = { day = 60, month = 900 }"
    )
    assert text != REGISTRY
    registry = Registry.parse(text)
    (tmp_path / "annotations.toml").write_text(
        'schema = 1\n[[annotations]]\ndate = 2026-10-05\ntext = "Release 4.2"\n'
    )
    with closing(open_store(f"sqlite:///{tmp_path}/kept.db")) as store:
        store.publish({metric.name: [metric.scheme] for metric in registry})
        for ago in range(1, 90):
            day = date(2026, 11, 21) - timedelta(ago)
            fill(store, registry, "dark_mode", [0.3, 0.7], 2_000, day.isoformat())
        scheme = registry["dark_mode"].scheme.fingerprint
        store.sums.drop_windows("dark_mode", scheme, windows.end("2026-09-21"), ("month",))
        reader = browser_of(dashboard_of(store, registry, data=str(tmp_path)))
        page = text_of(reader, "/metric/dark_mode?since=Release+4.2")
        assert "6 Oct 2026 to 18 Oct 2026 vs 22 Sep 2026 to 4 Oct 2026" in page
        assert "6 Oct 2026 to 18 Oct 2026 vs" in text_of(reader, "/?since=Release+4.2")
        refused = reader.get("/metric/dark_mode?since=2026-09-20")
        assert refused.status_code == 400
        assert "no day before 2026-09-20 is kept" in refused.text
        assert "were dropped" in text_of(reader, "/?from=2026-09-10&to=2026-11-20")
