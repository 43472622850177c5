"""What the log says: gunicorn's lines, and events of one form."""

import json
import logging
import re
import sys
from contextlib import closing

import pytest

from deniable_collector.operation.events import EventFormatter, announce, listen, tell
from deniable_collector.operation.store_watch import WatchedStore
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store

SCHEMA = {"time": str, "level": str, "event": str, "message": str, "process": int}


def lines(text):
    """The events of a log, each with all members that every event has."""
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        assert {name: type(event[name]) for name in SCHEMA} == SCHEMA
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"])
        assert event["level"] in ("info", "warning", "error", "critical")
    return events


def test_what_is_published_again_is_no_news(tmp_path, registry, caplog):
    """Schemes are published every minute, and told of when they are others than before."""
    caplog.set_level("INFO", "deniable_collector")
    one = [("browser", registry["browser"].scheme)]
    both = [*one, ("dark_mode", registry["dark_mode"].scheme)]
    with closing(
        WatchedStore(open_store(Settings(store=f"sqlite:///{tmp_path / 'store.db'}")))
    ) as store:
        for schemes in (one, one, both, both):
            store.publish(schemes)
    told = [each for each in caplog.records if getattr(each, "event", "") == "published"]
    assert [each.fields["metrics"] for each in told] == [1, 2]


def test_events_are_one_line(capsys, monkeypatch):
    """An event is one line in both forms, with its fields as members of the JSON."""
    logger = logging.getLogger("deniable_collector")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    listen("json")
    tell("warning", "store-lost", 'a "quoted"\nmessage', seconds=3)
    (event,) = lines(capsys.readouterr().err)
    assert (event["event"], event["level"], event["seconds"]) == ("store-lost", "warning", 3)
    assert event["message"] == 'a "quoted"\nmessage'
    listen("text")
    tell("info", "dropped", "dropped 3 tallies", tallies=3)
    text = capsys.readouterr().err
    assert text.endswith(" info dropped: dropped 3 tallies\n")
    assert text.count("\n") == 1
    for warning, level in ((False, "info"), (True, "warning")):
        for form in ("text", "json"):
            announce(form, "listening", "it listens", warning=warning, workers=2)
        told = capsys.readouterr()[warning].splitlines()
        assert told[0] == ("warning: it listens" if warning else "it listens")
        (event,) = lines(told[1])
        assert (event["event"], event["level"], event["workers"]) == ("listening", level, 2)


@pytest.mark.parametrize("form", ["text", "json"])
def test_exceptions_without_their_words(form):
    """An exception that may be about a request is named by type and place; one about the
    server's own processes is told in full."""
    try:
        raise ValueError("marker")
    except ValueError:
        error = sys.exc_info()
    for name, told in (("asyncio", False), ("gunicorn.error", True)):
        record = logging.LogRecord(name, logging.ERROR, "", 0, "it failed", (), error)
        record.created = 1.2345
        line = EventFormatter(form).format(record)
        assert "ValueError" in line
        assert "test_logs.py" in line
        assert ("marker" in line) is told
        assert form == "text" or lines(line)
        assert line.partition("1970-01-01T")[2].startswith("00:00:01.234Z")
