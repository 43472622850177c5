"""A call of a client for a metric, as an example in code."""

from __future__ import annotations

import json
from typing import NamedTuple

from deniable.protocol.errors import MetricError
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry
from deniable.protocol.types.number import Number


class Call(NamedTuple):
    """The call, as Python code, and as JavaScript in a page."""

    python: str
    script: str


def example_of(registry: Registry) -> Call:
    """A call for the first metric that an app records itself; README's if there is none."""
    for metric in registry:
        if not metric.type.looks_back:
            try:
                metric.normalize(_value(metric))
            except MetricError:
                continue
        return example_call(metric)
    return _record("browser", "firefox")


def example_call(metric: Metric) -> Call:
    """A call for a metric."""
    if metric.type.looks_back:
        return Call(*2 * (f"active({json.dumps(metric.name)})",))
    return _record(metric.name, _value(metric))


def _record(name: str, value: bool | float | str) -> Call:
    named, written = json.dumps(name), json.dumps(value, ensure_ascii=False)
    python = written if isinstance(value, str) else repr(value)
    # In a page `</script>` would end the script wherever it stands.
    script = written.replace("<", "\\u003c")
    return Call(f"record({named}, {python})", f"record({named}, {script})")


def _value(metric: Metric) -> bool | float | str:
    """A value that the metric takes."""
    if metric.type.name == "boolean":
        return True
    if isinstance(metric.type, Number):
        return float(metric.type.range.low)
    return metric.values[0] if metric.values else "example"
