"""The store as one page or command sees it."""

from __future__ import annotations

from deniable_estimator.asking.reader import Reader

from .conftest import YESTERDAY, fill


def test_versions_in_a_snapshot(store, registry):
    """Ranges of windows have different versions, each changes with its windows and with nothing
    else, and one snapshot never sees a change."""
    fingerprint, day = registry["browser"].scheme.fingerprint, "2026-11-19"
    ranges = [(), (day,), (YESTERDAY,), (day, YESTERDAY)]

    def versions(seen):
        return [seen.version("browser", fingerprint, each) for each in ranges]

    seen = Reader(store)
    fill(store, registry, "browser", [0.25] * 4, 100, day)
    before = versions(seen)
    assert len(set(before[1:])) == 3
    windows = seen.windows("browser", fingerprint)
    fill(store, registry, "browser", [0.25] * 4, 100, day)
    fill(store, registry, "browser", [0.25] * 4, 100, "2026-11-18")
    assert versions(seen) == before
    assert seen.windows("browser", fingerprint) == windows == [day, YESTERDAY]
    after = versions(Reader(store))
    assert [old == new for old, new in zip(before, after, strict=True)] == [
        True,
        False,
        True,
        False,
    ]


def test_windows_of_a_snapshot_are_read_once(store, registry, monkeypatch):
    """The tally of a window is read once for a page, unless it has more counters than are kept."""
    fingerprint, days = registry["browser"].scheme.fingerprint, ["2026-11-19", YESTERDAY]
    fill(store, registry, "browser", [0.25] * 4, 100, days[0])
    asked: list[str] = []
    real = store.each_tally

    def each_tally(metric, scheme, windows):
        asked.extend(windows)
        return real(metric, scheme, windows)

    monkeypatch.setattr(store, "each_tally", each_tally)
    seen = Reader(store)
    first = seen.each_tally("browser", fingerprint, days[1:])
    both = seen.each_tally("browser", fingerprint, days)
    assert list(both) == days
    assert [each.reports for each in both.values()] == [100, 20_000]
    assert both[YESTERDAY] is first[YESTERDAY]
    assert asked == [YESTERDAY, days[0]]
    seen = Reader(store)
    seen._room = 4
    for _ in range(2):
        assert seen.each_tally("browser", fingerprint, days)[days[0]].reports == 100
    assert asked[2:] == days * 2
