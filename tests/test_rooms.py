"""Which rooms of the client package import which: a server needs what it agrees on with devices."""

import subprocess
import sys

import pytest

from .test_circles import PACKAGES, python_imports

RANKS = {"protocol": 0, "device": 1, "tools": 2}
CLIENT, COLLECTOR = PACKAGES[:2]


def rank(module):
    return RANKS.get(module.split(".")[1] if module.startswith("deniable.") else "", 0)


def test_a_room_imports_only_rooms_below():
    """What devices and servers agree on needs nothing of either, and a device no tool."""
    graph = python_imports([CLIENT])
    rooms = {each: used for each, used in graph.items() if each.split(".")[1:2] != []}
    upwards = [
        (module, used)
        for module, every in rooms.items()
        if module.split(".")[1] in RANKS
        for used in every
        if rank(used) > rank(module) or (used == "deniable" and "protocol" in module)
    ]
    assert len(graph) > 60
    assert upwards == []


@pytest.mark.parametrize(
    "module", ["deniable_collector.collector", "deniable_estimator.dashboard.app"]
)
def test_a_server_imports_no_device_and_no_tool(module):
    """Collector and dashboard run on the protocol alone; what they import is looked up in a fresh
    interpreter."""
    code = f"import sys, {module}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = [each for each in done.stdout.split() if each.startswith("deniable.")]
    assert "deniable.protocol.registry" in found
    assert [each for each in found if rank(each)] == []
