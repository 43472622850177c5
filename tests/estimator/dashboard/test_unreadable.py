"""A sealed window that cannot be read: everything else is answered, and it is never silent."""

import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from deniable import Registry
from deniable.tools.command_line import find
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import TallyKey
from deniable_estimator.asking.reader import Reader, Unreadable

from .conftest import REGISTRY, Clock, browser_of, dashboard_of, fill, page_of

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
            store.publish((each.name, each.scheme) for each in self.registry)
            for day in DAYS:
                fill(store, self.registry, "dark_mode", SHARES, EACH, day=day)
                store.seal(TallyKey("dark_mode", self.scheme, day))
            fill(store, self.registry, "browser", [0.4, 0.3, 0.2, 0.1], EACH)
        with closing(sqlite3.connect(self.path)) as file:
            (self.right,) = file.execute(f"SELECT block FROM blocks {ITS}", (BAD,)).fetchone()
        self.write(self.right[:-1])

    def write(self, block):
        """Put this in the place of the block of the bad day."""
        with closing(sqlite3.connect(self.path)) as file, file:
            file.execute(f"UPDATE blocks SET block = ? {ITS}", (block, BAD))

    @property
    def scheme(self):
        return self.registry["dark_mode"].scheme.fingerprint

    def opened(self):  # type: ignore[no-untyped-def]
        return closing(open_store(Settings(store=self.url)))

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
        yield browser_of(app, accept="text/html, */*;q=0.8")


def test_all_else_is_answered_without_the_window(client):
    """Pages, files and programs get all other windows, and each is told which one is missing, at
    the first visit and from what is kept; nobody is told that nothing has changed."""
    days = f"from={DAYS[0]}&to={DAYS[-1]}"
    api = "/api/v1/metrics/dark_mode"
    for address in (
        *(f"/?{days}", f"/metric/dark_mode?{days}", f"/metric/dark_mode.csv?{days}"),
        *(f"/metric/dark_mode/compare?from={BAD}&to={DAYS[-1]}", f"/api/v1/metrics?{days}"),
        *(f"{api}/estimate?{days}", f"{api}/trend?{days}"),
    ):
        for _ in range(2):
            answer = page_of(client, address)
            assert answer.status_code == 200, address
            assert answer.headers["Deniable-Unreadable"] == f"dark_mode/{BAD}", address
            if answer.mimetype == "text/html":
                assert f"because it cannot be read: dark_mode, {BAD}." in answer.text, address
    found = client.get(f"{api}/estimate?{days}")
    assert found.json["unreadable"] == [BAD]
    assert found.json["n"] == (len(DAYS) - 1) * EACH
    again = {"If-None-Match": found.headers["ETag"]}
    assert client.get(f"{api}/estimate?{days}", headers=again).status_code == 200
    later = client.get(f"/metric/dark_mode?from={DAYS[5]}&to={DAYS[-1]}&by=day")
    assert "Deniable-Unreadable" not in later.headers, "what is compared with is not asked for"
    other = client.get(f"/metric/browser?{days}")
    assert (other.status_code, "cannot be read" in other.text) == (200, False)


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


def test_a_window_that_its_week_s_sum_counts(damage, tmp_path):
    """A command warns of a damaged window that it does not count, and of no other."""
    damage.restore()
    with damage.opened() as store:
        fill(store, damage.registry, "dark_mode", SHARES, EACH, day="2026-11-02")
        store.sums.add_up(("dark_mode", damage.scheme), "day", "2026-W45")
    damage.write(damage.right[:-1])
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    at = ["dark_mode", "--registry", str(tmp_path / "metrics.toml"), "--store", damage.url]
    for first, n in (("2026-11-02", len(DAYS) + 1), (BAD, len(DAYS) - 5)):
        told = CliRunner().invoke(find("estimate"), [*at, "--from", first])
        assert f"{n * EACH:,} reports" in told.stdout
        assert ("not counted" in told.stderr) == (first == BAD)
