"""What `record` takes: whatever an app passes, nothing is raised; what fits is recorded."""

import unicodedata
from numbers import Real
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import Client, Registry
from deniable.device.open_windows import refusals
from deniable.device.state import State

from .conftest import metrics_toml

NOON = 1.8e9

REGISTRY = Registry.parse(
    metrics_toml(
        flag={},
        browser={"type": "category", "values": ["firefox", "safari"]},
        system={"type": "category", "values": ["linux", "other"]},
        page={"type": "string"},
        startup={"type": "number", "low": 0, "high": 10, "ask": "mean"},
        opened={"answer": "at_once", "aggregate": "first"},
        search={"type": "discovery"},
        both={"type": "pair", "of": ["flag", "browser"]},
    )
)


class Hostile:
    """Everything that one may ask of it raises."""

    def _raises(self, *_):
        raise RuntimeError("secret")

    __bool__ = __float__ = __int__ = __index__ = __str__ = __len__ = _raises
    __eq__ = __lt__ = __gt__ = __abs__ = __iter__ = _raises
    __hash__ = object.__hash__


class HostileNumber(Hostile):
    """It also says that it is a number."""


class LyingNumber(Hostile):
    """A number whose error holds its value."""

    def __float__(self):
        raise ValueError("secret")


Real.register(HostileNumber)
Real.register(LyingNumber)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**308, 10**400),
    st.floats(),
    st.fractions(),
    st.decimals(),
    st.complex_numbers(),
    st.dates(),
    st.binary(),
    st.text(),
    st.text(st.characters(categories=["Cs", "Cc", "L"])),
    st.integers(0, 3000).map("é".__mul__),
    st.sampled_from(["firefox", "linux", "Firefox", "", "\ud800"]),
    st.sampled_from([np.int64(3), np.float32(0.5), np.float64("nan"), np.True_, np.array([1, 2])]),
    st.sampled_from([Hostile, HostileNumber, LyingNumber, object]).map(lambda each: each()),
    st.sampled_from([int, print]),
    st.lists(st.integers()),
    st.dictionaries(st.text(), st.none()),
)


def fits(name, value):
    """Whether a metric of REGISTRY takes a value, by other means than the SDK's."""
    if name in ("flag", "opened"):
        return value is True or value is False
    if name == "startup":
        number = isinstance(value, Real) and not isinstance(value, (bool, Hostile))
        return number and value == value
    if not isinstance(value, str):
        return False
    if name == "browser":
        return value in ("firefox", "safari")
    if name == "page":
        broken = {unicodedata.category(each) for each in value} & {"Cc", "Cs"}
        return (
            not broken
            and 1 <= len(unicodedata.normalize("NFC", value).encode()) <= 1024
            and (not value.isspace())
        )
    return name == "system" or all(x < "\ud800" or x > "\udfff" for x in value.split("\0")[0])


@settings(max_examples=100)
@given(name=st.sampled_from(sorted(REGISTRY.metrics)), value=VALUES)
def test_record_never_raises(name, value):
    """Any object, for every type of metric: what fits is kept, and everything else is dropped and
    counted. What is passed on does not hold the value of a hostile object."""
    troubles = []
    state = State(None)
    client = Client(
        REGISTRY,
        state_dir=state,
        consent=True,
        background=False,
        clock=lambda: NOON,
        on_trouble=troubles.append,
    )
    client.record(name, value)
    client.flush()
    with state.transaction() as connection:
        (kept,) = connection.execute(
            "SELECT (SELECT count(*) FROM open_values) + (SELECT count(*) FROM reports)"
        ).fetchone()
        dropped = refusals(connection, NOON)
    client.close()
    if name != "both" and fits(name, value):
        assert (kept, dropped, troubles) == (1, {}, [])
        assert set(client.counters) <= {"other"}
    elif name == "both":
        assert (kept, dropped, client.counters) == (0, {}, {"mistake": 1})
    else:
        assert (kept, dropped, client.counters) == (0, {name: 1}, {"refused": 1})
    assert "secret" not in "".join(map(str, troubles))


def counts(client, clock):
    """What the state has of values that did not fit."""
    client.flush()
    with client._state.transaction() as connection:
        return refusals(connection, clock())


def test_the_count_is_forgotten_with_its_window(make_client, clock):
    """How many values did not fit is on the disk, without a value, until the window ends: that a
    value did not fit says something about it."""
    client = make_client(registry=REGISTRY, on_trouble=lambda error: None)
    for value in ("secret", None, "firefox"):
        client.record("browser", value)
    assert counts(client, clock) == {"browser": 2}
    assert client._state.path is not None
    assert b"secret" not in Path(client._state.path).read_bytes()
    client.record("browser", "secret")
    assert counts(client, clock) == {"browser": 3}
    clock.days(1)
    client.flush()
    assert counts(client, clock) == {}
    with client._state.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM refusals").fetchone() == (0,)


@pytest.mark.parametrize("forget", ["opt_out", "erase"])
def test_the_count_is_forgotten_when_the_owner_says_so(make_client, clock, forget):
    """The person's no, and an erasure, delete the count too."""
    client = make_client(registry=REGISTRY, on_trouble=lambda error: None)
    client.record("browser", "secret")
    assert counts(client, clock) == {"browser": 1}
    getattr(client, forget)()
    assert counts(client, clock) == {}


def test_without_consent_no_count_is_kept(make_client, clock):
    """Without consent a value that does not fit leaves nothing on the disk."""
    client = make_client(registry=REGISTRY, consent=False, on_trouble=lambda error: None)
    client.record("browser", "secret")
    client.flush()
    assert client.counters == {"refused": 1}
    client.opt_in()
    assert counts(client, clock) == {}


def test_the_newest_closed_windows_stay(make_client, clock):
    """Of a metric's closed windows 400 are listed; older ones are deleted when another closes."""
    client = make_client(registry=REGISTRY)
    client.record("browser", "firefox")
    client.flush()
    with client._state.transaction() as connection:
        rows = [(f"window {each}", float(each)) for each in range(500)]
        connection.executemany("INSERT INTO windows VALUES ('browser', ?, ?, 'passed')", rows)
    clock.days(1)
    client.flush()
    with client._state.transaction() as connection:
        found = connection.execute(
            "SELECT count(*), min(ends) FROM windows WHERE metric = 'browser'"
        )
        assert found.fetchone() == (400, 101.0)
