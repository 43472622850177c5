"""What an attacker who sees all reports of a device tries: averaging, linking, retrying."""

import json
import random

import pytest

from deniable import Registry

from .conftest import metrics_toml

MEMOIZED = {"longitudinal": "memoize", "lifetime_epsilon": 2.0}
REGISTRY = metrics_toml(
    remembered={**MEMOIZED, "type": "category", "values": list("abcdef")},
    bucket={**MEMOIZED, "type": "string"},
    bits={**MEMOIZED, "type": "string", "mechanism": "rappor"},
    fresh={"type": "string"},
    sampled={"sample_rate": 0.5},
)


@pytest.fixture
def registry():
    """Metrics with and without memory."""
    return Registry.parse(REGISTRY)


def report_for_days(make_client, clock, collector, folder, values):
    """The bodies that a new device sends when it has these values on as many days."""
    collector.bodies.clear()
    client = make_client(state_dir=folder, bits=random.Random(43).getrandbits)
    for value in values:
        for name in ("remembered", "bucket", "bits", "fresh"):
            client.record(name, value)
        client.record("sampled", True)
        clock.days(1)
        assert client.flush()
    client.close()
    return list(collector.bodies)


def test_the_shape_of_batches_does_not_depend_on_values(make_client, clock, collector, tmp_path):
    """Whatever a device has to say, it sends as many batches, of as many reports, of the same
    metrics in the same windows and in the same order; bitmaps have one length."""
    start = clock.now
    shapes = []
    for name, each in (("one", "bcbcb"), ("other", "afaaf")):
        clock.now = start
        bodies = report_for_days(make_client, clock, collector, tmp_path / name, each)
        shape = []
        for body in bodies:
            reports = json.loads(body)["reports"]
            assert {len(report["columns"]) for report in reports if report["metric"] == "bits"} == {
                22
            }
            days = {(report["metric"], report["window"]) for report in reports}
            assert len(days) == len(reports)
            # The coin of `sample_rate` is the device's own.
            shape.append([day for day in sorted(days) if day[0] != "sampled"])
        shapes.append(shape)
    assert shapes[0] == shapes[1]
