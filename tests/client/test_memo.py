"""Memory on the device: one memo for each value and scheme, whatever happens in between."""

import json
import random
import shutil
from pathlib import Path

import pytest

from deniable import Registry, Scheme
from deniable.device import ledger
from deniable.device.ledger import Ledger, draw
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.randomness import keyed_bits

from .conftest import metrics_toml

MEMOIZED = {"type": "category", "longitudinal": "memoize", "lifetime_epsilon": 3.0}
REGISTRY = metrics_toml(
    browser={**MEMOIZED, "values": ["firefox", "chrome", "safari", "edge", "other"]},
    homepage={
        **MEMOIZED,
        "type": "string",
        "mechanism": "rappor_chromium",
        "epsilon": 2.1,
        "lifetime_epsilon": 4.4,
    },
    town={
        **MEMOIZED,
        "values": ["Oslo", "Bergen", "Bodø", "other"],
        "mechanism": "memoized_local_hashing",
    },
)


@pytest.fixture
def registry():
    """Three metrics with memory: subset selection, RAPPOR, and hashing of a closed list."""
    return Registry.parse(REGISTRY)


def keys_of(state):
    """The key of each metric."""
    with state.transaction() as connection:
        return dict(connection.execute("SELECT metric, key FROM memo_keys").fetchall())


def ledger_of(state):
    with state.transaction() as connection:
        return Ledger(connection)


@pytest.fixture
def drawn(monkeypatch):
    """The scheme, row and memo behind every report, in order."""
    seen = []

    def follow(key, fingerprint, mechanism, item):
        row, memo = draw(key, fingerprint, mechanism, item)
        seen.append((fingerprint, row, memo))
        return row, memo

    monkeypatch.setattr(ledger, "draw", follow)
    return seen


def test_copies_of_a_state_have_the_same_memos(make_client, clock, tmp_path, drawn):
    """A machine that is copied, as an image or by a backup, after its app has recorded anything:
    each copy meets the same memo of a value, of metrics that were not recorded before as well."""
    with make_client() as client:
        client.record("town", "Oslo")
    folders = [tmp_path / f"copy {number}" for number in range(3)]
    for folder in folders:
        shutil.copytree(tmp_path / "state", folder)
    for folder in folders:
        client = make_client(state_dir=folder, bits=random.Random(str(folder)).getrandbits)
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()
    assert len(drawn) == 2 * len(folders)
    assert len(set(drawn)) == 2


def test_the_file_does_not_say_which_values_were_met(make_client, clock, tmp_path, drawn):
    """After sealing, no file holds a value, its cell or its memo: a key alone is kept."""
    client = make_client()
    client.record("homepage", "a.example")
    clock.days(1)
    assert client.flush()
    ((_, row, memo),) = drawn
    mechanism = client.registry["homepage"].scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    cell = mechanism.cell(row, "a.example")
    found = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert keys_of(client._state)["homepage"] in found
    assert b"a.example" not in found
    for secret in (cell, memo):
        assert f"{secret:x}".encode() not in found
        assert secret.to_bytes(4, "little") not in found


def test_erasing_ends_a_metric_with_memory(make_client, clock, collector, tmp_path):
    """An erasure destroys the keys, on the disk as well; a metric that has reported never does
    again, over restarts, and one that has not yet gets another key."""
    client = make_client()
    client.record("homepage", "a.example")
    clock.days(1)
    assert client.flush()
    key = keys_of(client._state)["homepage"]
    client.record("homepage", "b.example")
    client.erase()
    assert keys_of(client._state) == {}
    found = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert key not in found
    assert b"b.example" not in found
    assert client.sent() == []
    client.close()
    for _ in range(3):
        with make_client() as client:
            client.record("homepage", "a.example")
            client.record("town", "Oslo")
            clock.days(1)
            assert client.flush()
            assert ledger_of(client._state).left(client.registry["homepage"], client.registry) == 0
    assert [report["metric"] for report in collector.reports] == ["homepage"] + ["town"] * 3
    assert set(keys_of(client._state)) == {"browser", "town"}


VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "memory.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", VECTORS["sources"], ids=lambda case: case["label"])
def test_vectors_of_the_source(case):
    """A key and a label give the published bits."""
    key = bytes.fromhex(case["key"])
    bits = keyed_bits(key, case["label"])
    assert [f"{bits(each['bits']):x}" for each in case["draws"]] == [
        each["value"] for each in case["draws"]
    ]


@pytest.mark.parametrize("case", VECTORS["memos"])
def test_vectors_of_memos(case):
    """A key gives the published row and memo under a scheme."""
    scheme = Scheme.from_definition(case["scheme"])
    assert scheme.fingerprint == case["fingerprint"]
    assert isinstance(scheme.mechanism, Memoizing)
    key = bytes.fromhex(case["key"])
    row, memo = draw(key, scheme.fingerprint, scheme.mechanism, case["item"])
    assert (row, f"{memo:x}") == (case["row"], case["memo"])
