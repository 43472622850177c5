"""A sealed window that cannot be read: everything else is answered, and it is never silent."""

import sqlite3
from contextlib import closing

import pytest

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import TallyKey
from deniable_estimator.asking.reader import Reader, Unreadable

from .conftest import REGISTRY, TOKEN, Clock, browser_of, dashboard_of, fill

DAYS = [f"2026-11-{day:02}" for day in range(3, 13)]
BAD = DAYS[4]
ITS = "WHERE id = (SELECT id FROM tallies WHERE metric = 'dark_mode' AND window = ?)"
SHARES = [0.7, 0.3]
EACH = 1_000


class Damage:
    """A store with sealed days of dark_mode and browser, of which blocks can be damaged."""

    def __init__(self, folder):
        self.path = folder / "store.db"
        self.url = f"sqlite:///{self.path}"
        self.registry = Registry.parse(REGISTRY)
        with self.opened() as store:
            store.publish({each.name: [each.scheme] for each in self.registry})
            for day in DAYS:
                fill(store, self.registry, "dark_mode", SHARES, EACH, day=day)
                store.seal(TallyKey("dark_mode", self.scheme, day))
            fill(store, self.registry, "browser", [0.4, 0.3, 0.2, 0.1], EACH)
        with closing(sqlite3.connect(self.path)) as file:
            (self.right,) = file.execute(f"SELECT block FROM blocks {ITS}", (BAD,)).fetchone()
        self.write(self.right[:-1])

    def write(self, block, days=None):
        """Put this in the place of the block of the bad day, or of the blocks of these days."""
        with closing(sqlite3.connect(self.path)) as file, file:
            for day in days or [BAD]:
                file.execute(f"UPDATE blocks SET block = ? {ITS}", (block, day))

    @property
    def scheme(self):
        return self.registry["dark_mode"].scheme.fingerprint

    def opened(self):  # type: ignore[no-untyped-def]
        return closing(open_store(self.url))

    def restore(self):
        self.write(self.right)


@pytest.fixture
def damage(tmp_path):
    return Damage(tmp_path)


@pytest.fixture
def minutes():
    """The clock by which unreadable windows are tried again."""
    return Clock()


@pytest.fixture
def client(damage, minutes):
    with damage.opened() as store:
        app = dashboard_of(store, damage.registry)
        app.extensions["deniable_source"].reader.unreadable.clock = minutes
        yield browser_of(app)


def test_pages_answer_without_the_window(client):
    """Overview, metric page, comparison and files answer for all other windows; each names the one
    that is missing, at the first visit and from what is kept."""
    days = f"from={DAYS[0]}&to={DAYS[-1]}"
    for address in (f"/?{days}", f"/metric/dark_mode?{days}", f"/metric/dark_mode.csv?{days}",
                    f"/metric/dark_mode/compare?from={BAD}&to={DAYS[-1]}"):  # fmt: skip
        for _ in range(2):
            page = client.get(address)
            while page.status_code == 202:
                page = client.get(address)
            assert page.status_code == 200, address
            if page.mimetype == "text/csv":
                assert page.headers["Deniable-Unreadable"] == f"dark_mode/{BAD}"
                continue
            assert "deniable store info" in page.text, address
            assert f"because it cannot be read: dark_mode, {BAD}." in page.text, address
            assert page.headers["Deniable-Unreadable"] == f"dark_mode/{BAD}"
    assert f"{(len(DAYS) - 1) * EACH:,}" in client.get(f"/metric/dark_mode?{days}").text
    other = client.get(f"/metric/browser?{days}")
    assert other.status_code == 200
    assert "cannot be read" not in other.text


def test_programs_are_told(client):
    """The API lists all metrics and answers with the windows that it has, names the others in the
    answer, and in a header where a file has no room for it."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
    days = {"from": DAYS[0], "to": DAYS[-1]}
    listed = client.get("/api/v1/metrics", query_string=days, headers=headers)
    assert listed.status_code == 200
    rows = {each["name"]: each for each in listed.json["metrics"]}  # type: ignore[index]
    assert rows["dark_mode"]["n"] == (len(DAYS) - 1) * EACH
    assert listed.headers["Deniable-Unreadable"] == f"dark_mode/{BAD}"
    answer = client.get("/api/v1/metrics/dark_mode/estimate", query_string=days, headers=headers)
    assert answer.status_code == 200
    found = answer.json
    assert found is not None
    assert found["unreadable"] == [BAD]
    assert BAD not in found["windows"]
    assert any(BAD in each for each in found["warnings"])
    tag = answer.headers["ETag"]
    again = client.get(
        "/api/v1/metrics/dark_mode/estimate",
        query_string=days,
        headers={**headers, "If-None-Match": tag},
    )
    assert again.status_code == 200
    over_time = client.get("/api/v1/metrics/dark_mode/trend", query_string=days, headers=headers)
    assert any(BAD in each for each in over_time.json["notes"])  # type: ignore[index]


@pytest.mark.parametrize("read", [Reader.tally, Reader.each_tally, Reader.segment_reports])
def test_what_cannot_be_read_is_marked_in_versions(damage, minutes, read):
    """The version of the tallies changes when a window is found unreadable, when it is tried again
    and when it can be read; that of other windows and metrics stays."""
    with damage.opened() as store:
        first = Reader(store, Unreadable(minutes))

        def versions():
            reader = first.renewed()
            each = reader.each_version("dark_mode", damage.scheme, DAYS)
            whole = reader.version("dark_mode", damage.scheme, DAYS)
            many = reader.versions({"dark_mode": DAYS, "browser": ["2026-11-20"]})
            assert reader.each_version("dark_mode", damage.scheme, DAYS[:2]) == store.each_version(
                "dark_mode", damage.scheme, DAYS[:2]
            )
            return whole, each[BAD], many["dark_mode"], each[DAYS[0]] + many["browser"]

        seen = [versions()]
        for step in ("found", "kept", "tried again", "read"):
            minutes.now += 59 if step == "kept" else 1
            if step == "read":
                damage.restore()
            if step != "tried again":
                read(first, "dark_mode", damage.scheme, DAYS)
            seen.append(versions())
    whole = [each[:3] for each in seen]
    assert whole[1] == whole[2]
    assert len(set(whole)) == 4
    assert all(len({each[place] for each in whole}) == 4 for place in range(3))
    assert len({each[3] for each in seen}) == 1


def test_reports_of_readable_windows_are_those_of_the_store(damage):
    """Window by window, once nothing is damaged."""
    damage.restore()
    with damage.opened() as store:
        asked = ("dark_mode", damage.scheme, DAYS)
        found, expected = (each.segment_reports(*asked) for each in (Reader(store), store))
        assert {day: rows.tolist() for day, rows in found.items()} == {
            day: rows.tolist() for day, rows in expected.items()
        }
        assert found.keys() == {*DAYS}
