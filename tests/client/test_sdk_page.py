"""The page on the SDK leaves out nothing that is public, and its numbers are those of the code."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any, get_args

import pytest

import deniable
from deniable import Client, client, device, errors, outbox
from deniable.client import Status
from deniable.open_windows import KEPT_WINDOWS
from deniable.outbox import PASSING, QUEUED_REPORTS
from deniable.problem import Problem
from deniable.sent import Likelihood, SentReport
from deniable.testing import MemoryClient, MemoryRecord

PAGE = (Path(__file__).parents[2] / "docs" / "sdk.md").read_text(encoding="utf-8")
REFERENCE = PAGE.partition("## Reference")[2]


def section(title: str) -> str:
    """What the reference says under one heading."""
    found = REFERENCE.partition(f"### {title}\n")[2].partition("\n### ")[0]
    assert found, title
    return found


def listed(text: str) -> set[str]:
    """The names in code at the beginning of rows, and of `Class.name` the second half."""
    cells = re.findall(r"^\| (`.*?`) \|", text, re.M)
    names = [name for cell in cells for name in re.findall(r"`([A-Za-z_.]+)", cell)]
    return {name.rpartition(".")[2] for name in names}


def members(kind: type) -> set[str]:
    """The public methods, properties and fields of a class."""
    fields = getattr(kind, "__dataclass_fields__", {})
    return {each for each in {*dir(kind), *fields} if not each.startswith("_")}


def test_every_exported_name_is_in_the_reference() -> None:
    """Each name of `deniable.__all__` stands in code in the reference."""
    for name in deniable.__all__:
        assert re.search(rf"`(deniable\.)?{name}\b", REFERENCE), name


def test_every_member_of_the_client_is_listed() -> None:
    """The tables on Client and MemoryClient have each public member and parameter, and no other."""
    parameters = set(inspect.signature(Client).parameters)
    assert listed(section("Client")) == members(Client) | {"registry"} | parameters
    own = members(MemoryClient) - members(Client) | {"records"}
    assert listed(section("MemoryClient")) == own
    assert all(f"`{name}`" in section("MemoryClient") for name in MemoryRecord._fields)
    for kind in (SentReport, Likelihood):
        assert all(re.search(rf"`{name}[`(]", section("Client")) for name in members(kind))


def test_every_default_of_the_client_is_that_of_the_code() -> None:
    """The table of parameters shows their defaults."""
    shown = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| ", section("Client"), re.M))
    names = {"clock": "`time.time`", "bits": "the operating system's randomness"}
    for name, parameter in inspect.signature(Client).parameters.items():
        required = parameter.default is inspect.Parameter.empty
        expected = "required" if required else f"`{parameter.default!r}`"
        assert shown[name] == names.get(name, expected), name


def test_every_member_of_registry_metric_and_scheme_is_listed() -> None:
    """Each public member of the three classes has its place, and no other has."""
    named = set(re.findall(r"`((?:Registry|Metric|Scheme)\.[a-z_]+)", REFERENCE))
    expected = {
        f"{kind.__name__}.{name}"
        for kind in (deniable.Registry, deniable.Metric, deniable.Scheme)
        for name in members(kind)
    }
    assert named == expected


MADE: dict[str, Any] = {
    "RegistryError": errors.RegistryError([]),
    "MetricError": errors.MetricError("m", ""),
    "ValueListError": errors.ValueListError("", None, ""),
    "SegmentError": errors.SegmentError("s", ""),
    "StateError": errors.StateError(""),
    "TransportError": errors.TransportError(""),
    "RejectedError": errors.RejectedError("m", "r", waits=True),
    "WireError": errors.WireError("r", ""),
    "WindowError": errors.WindowError(""),
    "DeniableError": errors.DeniableError(),
    "SchemeError": errors.SchemeError(),
    "UndeclaredValueWarning": errors.UndeclaredValueWarning(),
}
"""One of each error."""


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_listed_with_its_attributes(name: str) -> None:
    """Each error has a row that names its attributes, or says that it has none."""
    (row,) = re.findall(rf"^\| `{name}` \|.*\| (.*?) \|$", section("Errors"), re.M)
    named = set(re.findall(r"`(\w+)`", row))
    attributes = set(vars(MADE[name]))
    if not attributes:
        assert row == "none"
    assert attributes <= named
    if name == "RegistryError":
        assert {field.name for field in dataclasses.fields(Problem)} <= named


def test_every_counter_is_explained() -> None:
    """The table of counters has those that the docstring of `Client.counters` has, and no other."""
    counters = PAGE.partition("| counter |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", counters, re.M)
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    doc = Client.counters.__doc__ or ""
    text = " ".join(doc.split())
    listed = re.findall(r"((?:[a-z_]+, )*[a-z_]+): ", text)
    assert named == {name for group in listed for name in group.split(", ")}
    assert named >= PASSING


def test_every_status_is_named() -> None:
    """Each value of `Client.status` stands on the page."""
    assert all(f"`{each}`" in PAGE for each in get_args(Status))


def test_the_numbers_are_those_of_the_code() -> None:
    """Bounds and waits that the page names."""
    assert f"{QUEUED_REPORTS:,} reports waited" in PAGE
    assert f"{client.MAX_RECORDS:,} records waited" in PAGE
    assert (device.FIRST_BACKOFF, device.LONGEST_BACKOFF, device.ROLLOUT_PAUSE) == (1, 3600, 1800)
    assert outbox.LONGEST_PAUSE == 86_400
    assert KEPT_WINDOWS == 400
