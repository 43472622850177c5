"""Sessions by themselves: for how long they are open, and what their file holds."""

import os
import sqlite3
from contextlib import closing
from hashlib import sha256

import pytest

from deniable_estimator.dashboard.access.door import SESSION_SECONDS, Sessions

from .conftest import TOKEN, Clock, browser_of, dashboard_of


@pytest.fixture
def clock():
    return Clock(1_000_000.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.db"


def rows(path):
    """What the file holds."""
    with closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT id, ends FROM sessions ORDER BY ends").fetchall()


def test_a_session_is_open_for_twelve_hours(clock, path):
    """Up to the last moment, and no longer; one that has ended is not opened again by use."""
    assert SESSION_SECONDS == 43_200
    sessions = Sessions(str(path), clock)
    session = sessions.begin()
    clock.now += SESSION_SECONDS
    assert not sessions.holds(session)
    clock.now -= 0.5
    assert sessions.holds(session)
    clock.now += SESSION_SECONDS - 0.5
    assert sessions.holds(session)


def test_use_is_written_down_once_an_hour(clock, path):
    """Within an hour of what stands in the file nothing is written."""
    sessions = Sessions(str(path), clock)
    session, begun = sessions.begin(), clock.now
    clock.now = begun + 3_600
    assert sessions.holds(session)
    assert rows(path)[0][1] == begun + SESSION_SECONDS
    clock.now = begun + 3_601
    assert sessions.holds(session)
    assert rows(path)[0][1] == begun + 3_601 + SESSION_SECONDS


def test_the_file_holds_digests(clock, path):
    """Of 256 random bits each, under which alone a session is found; it is its owner's alone."""
    before = os.umask(0)
    try:
        sessions = Sessions(str(path), clock)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    one, other = sessions.begin(), sessions.begin()
    assert one != other
    assert len(one) == len(other) == 43
    digests = {sha256(each.encode()).digest() for each in (one, other)}
    assert {digest for digest, _ in rows(path)} == digests
    assert not sessions.holds("\udce4")
    sessions.end(one)
    assert not sessions.holds(one)
    assert sessions.holds(other)
    assert Sessions(str(path), clock).holds(other)


def test_a_full_disk(store, registry, clock, path, monkeypatch):
    """Whoever has signed in stays so; to sign in and out gives 503 with what an operator can do,
    and nothing is said of a bug."""
    app = dashboard_of(store, registry, clock, data=str(path.parent))
    sessions, client = app.extensions["deniable_door"].sessions, browser_of(app)
    run = sessions._run

    def full(statement, *values):
        if statement.startswith("SELECT"):
            return run(statement, *values)
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sessions, "_run", full)
    clock.now += SESSION_SECONDS / 2
    assert client.get("/links").status_code == 200
    for told in (client.post("/logout"), client.post("/login", data={"token": TOKEN})):
        assert told.status_code == 503
        assert "DENIABLE_DATA" in told.text
