"""What changed since an annotation: pages and the overview."""

from datetime import date, timedelta

import pytest

from deniable import Registry
from deniable.protocol import windows

from .conftest import REGISTRY, SEGMENTED, browser_of, dashboard_of, fill, text_of

RELEASE = date(2026, 11, 10)
FILE = f'schema = 1\n[[annotations]]\ndate = {RELEASE}\ntext = "Release 4.2"\n'


def days(number):
    """So many days up to yesterday, the newest first."""
    return [date(2026, 11, 20) - timedelta(ago) for ago in range(number)]


@pytest.mark.parametrize(
    ("light", "lacking", "told"),
    [
        ((0.6, 0.4), None, "Since 2026-11-10, 1 segment changed beyond noise, desktop:"),
        # Among four, a change of 2.4 standard errors is none (Bonferroni).
        (
            *((0.6, 0.4, 0.57, 0.58), None),
            "Since 2026-11-10, 2 segments changed beyond noise, most clearly desktop:",
        ),
        ((0.6, 0.4), date(2026, 11, 12), "Not compared with the days before 2026-11-10:"),
    ],
)
def test_the_segment_that_moved_most_is_named(light, lacking, told, empty_store):
    """Of the platforms in which a theme became rarer, the one that stands out furthest from the
    noise, and how many there are; none where a day has no reports."""
    names = ("web", "desktop", "tv", "car")[: len(light)]
    platforms = SEGMENTED.replace('["web", "desktop"]', str([*names]))
    registry = Registry.parse(REGISTRY + platforms)
    empty_store.publish([("theme", registry["theme"].scheme)])
    for day in set(days(21)) - {lacking}:
        for segment, later in enumerate(light):
            share = later if day > RELEASE else 0.6
            shares = [share, 1 - share]
            fill(empty_store, registry, "theme", shares, 9_000, day.isoformat(), segment)
    reader = browser_of(dashboard_of(empty_store, registry))
    page = text_of(reader, "/metric/theme/segments?since=2026-11-10")
    assert told in page


def test_the_overview_since_an_annotation_is_shown_in_each_language(empty_store, registry):
    """How many metrics changed is told in the plural that the language has for so many."""
    reader = browser_of(dashboard_of(empty_store, registry))
    for language, told in (("en", "0 of 0 metrics changed"), ("zh-Hans", "2026-11-10")):
        page = reader.get(f"/?since=2026-11-10&lang={language}")
        assert page.status_code in (200, 202)
        assert told in page.text


def test_an_annotation_of_another_metric_is_another_moment(empty_store, registry, tmp_path):
    """Two annotations have one text: the page, its choices and the overview take the one that
    concerns the metric."""
    own = '[[annotations]]\ndate = 2026-11-15\ntext = "Release 4.2"\nmetrics = ["browser"]\n'
    (tmp_path / "annotations.toml").write_text(FILE + own)
    for day in days(31):
        fill(empty_store, registry, "dark_mode", [0.2, 0.8], 20_000, day.isoformat())
        fill(empty_store, registry, "browser", [0.25] * 4, 20_000, day.isoformat())
    reader = browser_of(dashboard_of(empty_store, registry, data=str(tmp_path)))
    of_all = "11 Nov 2026 to 20 Nov 2026 vs 28 Oct 2026 to 6 Nov 2026"
    its_own = "16 Nov 2026 to 20 Nov 2026 vs"
    for path, told in (
        ("/metric/dark_mode", (True, False)),
        ("/metric/browser", (False, True)),
        ("/", (True, True)),
    ):
        page = text_of(reader, f"{path}?since=Release+4.2")
        assert (of_all in page, its_own in page) == told, path


def test_days_that_were_dropped_are_compared_by_months(empty_store, tmp_path):
    """Where days are dropped and months kept, both periods are as long as the days that are left,
    or months, where no day is; and the overview of days that were dropped names them on the
    metric's card."""
    keep = "[metrics.dark_mode]\nkeep = { day = 60, month = 900 }"
    registry = Registry.parse(REGISTRY.replace("[metrics.dark_mode]", keep))
    (tmp_path / "annotations.toml").write_text(FILE.replace("2026-11-10", "2026-10-05"))
    for day in days(112):
        fill(empty_store, registry, "dark_mode", [0.3, 0.7], 2_000, day.isoformat())
    scheme = registry["dark_mode"].scheme.fingerprint
    empty_store.sums.drop_windows(("dark_mode", scheme), windows.end("2026-09-21"), ("month",))
    reader = browser_of(dashboard_of(empty_store, registry, data=str(tmp_path)))
    page = text_of(reader, "/metric/dark_mode?since=Release+4.2")
    assert "6 Oct 2026 to 18 Oct 2026 vs 22 Sep 2026 to 4 Oct 2026" in page
    assert "6 Oct 2026 to 18 Oct 2026 vs" in text_of(reader, "/?since=Release+4.2")
    months = text_of(reader, "/metric/dark_mode?since=2026-09-20")
    assert "1 Oct 2026 to 31 Oct 2026 vs 1 Aug 2026 to 31 Aug 2026" in months
    assert "30.0%" in months
    assert "by month" in months
    refused = reader.get("/metric/dark_mode?since=2024-05-20")
    assert refused.status_code == 400
    assert "no day before 2024-05-20 is kept" in refused.text
    assert "were dropped" in text_of(reader, "/?from=2026-09-10&to=2026-11-20")


@pytest.mark.parametrize("lacking", [(), (11, 12)])
def test_days_that_lack_weekdays_are_not_compared(lacking, empty_store, registry, tmp_path):
    """At weekends 40% say yes and else 30%: where two days since the release have no reports, the
    overview, its API and a board say no change, and why."""
    (tmp_path / "annotations.toml").write_text(FILE.replace("2026-11-10", "2026-11-06"))
    boards = tmp_path / "boards"
    boards.mkdir()
    item = '[[items]]\nmetric = "dark_mode"\nview = "headline"\nsince = "Release 4.2"\n'
    (boards / "b.toml").write_text(f'schema = 1\ntitle = "B"\n{item}')
    for day in days(31):
        yes = 0.4 if day.weekday() >= 5 else 0.3
        if day.month != 11 or day.day not in lacking:
            fill(empty_store, registry, "dark_mode", [1 - yes, yes], 200_000, day.isoformat())
    app = dashboard_of(empty_store, registry, data=str(tmp_path), boards=str(boards))
    reader = browser_of(app)
    assert "same weekdays" in text_of(reader, "/metric/dark_mode?since=Release+4.2") or not lacking
    program = browser_of(app, accept="application/json")
    (card,) = program.get("/api/v1/overview?since=Release+4.2&q=dark_mode").json["metrics"]
    assert card["not_compared"] == ("uneven" if lacking else None)
    assert card["change"] is None or not card["change"]["changed"]
    overview = text_of(reader, "/?since=Release+4.2")
    assert f"Since Release 4.2: 0 of {0 if lacking else 1} metric" in overview
    board = text_of(reader, "/boards/b")
    assert ("Not compared with the days before Release 4.2" in board) == bool(lacking)
    assert ("points" in board) != bool(lacking)
