"""A batch of development mode counts nowhere but at `deniable dev`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable import Registry, windows
from deniable.wire import SealedReport, encode_batch, new_batch_id
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError
from deniable_collector.stores import Store, open_store

VALUES = st.one_of(st.booleans(), st.none(), st.integers(), st.text(max_size=8), st.just([]))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{tmp_path / 'store.db'}")) as store:
        yield store


@pytest.fixture
def intake(registry: Registry, store: Store, noon: float) -> Intake:
    return Intake(registry, store, clock=lambda: noon)


@pytest.fixture
def body(registry: Registry, noon: float) -> bytes:
    """A batch that a collector counts."""
    window = windows.window_at("day", noon - 86_400)
    report = SealedReport("dark_mode", registry["dark_mode"].scheme.fingerprint, window, 0, 1)
    return encode_batch(new_batch_id(), [report])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, place=st.integers(0, 2), escaped=st.booleans())
def test_wherever_the_mark_stands(
    intake: Intake, body: bytes, value: Any, place: int, escaped: bool
) -> None:
    """A member `development` of any value, at any place, written with escapes or without, makes a
    batch that no collector counts."""
    members = list(json.loads(body).items())
    members.insert(place, ("development", value))
    text = json.dumps(dict(members))
    if escaped:
        text = text.replace('"development"', '"\\u0064evelopment"')
    assert intake.read_fast(text.encode()) is None
    with pytest.raises(IntakeError) as refused:
        intake.read(text.encode())
    assert refused.value.code == "malformed-batch"
