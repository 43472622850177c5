"""Sealing by itself: which windows it closes, when, and what it leaves behind."""

import dataclasses
from datetime import date

import pytest

from deniable.device import outbox
from deniable.device.ledger import Ledger
from deniable.device.open_windows import UNDECLARED_SECONDS, OpenWindows
from deniable.device.state import State
from deniable.protocol import windows

MONDAY, TUESDAY = "2027-01-04", "2027-01-05"
END = windows.end(MONDAY)
READY = END + 1234.5


@pytest.fixture
def connection():
    """A transaction on an empty state in memory."""
    state = State(None)
    with state.transaction() as connection:
        yield connection
    state.close()


def wait(connection, metric, window, value):
    """Open a window, with a value in it or none."""
    connection.execute(
        "INSERT INTO windows VALUES (?, ?, ?, 'open')", (metric, window, windows.end(window))
    )
    if value is not None:
        connection.execute("INSERT INTO open_values VALUES (?, ?, ?, 1)", (metric, window, value))


def states(connection):
    return {
        f"{metric} {window}": state
        for metric, window, state in connection.execute("SELECT metric, window, state FROM windows")
    }


def waiting(connection):
    return int(connection.execute("SELECT count(*) FROM open_values").fetchone()[0])


@pytest.fixture
def sealed(connection, registry, bits):
    """Seals what has ended by a time."""

    def sealed(now, registry=registry):
        return OpenWindows(connection, registry, bits).seal(now, READY)

    return sealed


def test_a_window_is_sealed_when_it_has_ended(connection, sealed):
    """Not a moment before its end, and at its end: one report, which may be sent from the moment
    that was given, is charged, and the value is gone."""
    wait(connection, "browser", MONDAY, "chrome")
    wait(connection, "browser", TUESDAY, "edge")
    assert sealed(END - 0.001) == 0
    assert outbox.entries(connection) == []
    assert sealed(END) == 1
    (entry,) = outbox.entries(connection)
    assert (entry.report.metric, entry.report.window) == ("browser", MONDAY)
    assert Ledger(connection).reports("browser") == 1
    assert waiting(connection) == 1
    assert states(connection) == {
        f"browser {MONDAY}": "answered",
        f"browser {TUESDAY}": "open",
    }
    assert outbox.next_attempt(connection) == READY
    assert sealed(END) == 0


def test_a_value_without_a_metric_is_kept_for_a_day(connection, sealed):
    """A registry that does not declare it leaves the value alone for a day after its window, and
    then closes it without a report; other windows are sealed meanwhile."""
    assert UNDECLARED_SECONDS == 86_400
    wait(connection, "another", MONDAY, "yes")
    wait(connection, "browser", MONDAY, "chrome")
    assert sealed(END + 86_399) == 1
    assert waiting(connection) == 1
    assert states(connection)[f"another {MONDAY}"] == "open"
    assert sealed(END + 86_400) == 0
    assert waiting(connection) == 0
    assert states(connection)[f"another {MONDAY}"] == "unanswered"
    assert len(outbox.entries(connection)) == 1


@pytest.mark.parametrize(("expires", "reports"), [(date(2027, 1, 4), 1), (date(2027, 1, 3), 0)])
def test_the_day_of_expiry_is_the_last(connection, sealed, registry, expires, reports):
    """A window that begins on the last day is reported, one that begins after it is not."""
    wait(connection, "browser", MONDAY, "chrome")
    metric = dataclasses.replace(registry["browser"], expires=expires)
    changed = dataclasses.replace(registry, metrics={**registry.metrics, "browser": metric})
    assert sealed(END, changed) == reports == Ledger(connection).reports("browser")
    assert waiting(connection) == 0
