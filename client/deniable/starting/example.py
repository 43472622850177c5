"""A value that a metric takes, as an example in code."""

from __future__ import annotations

import json

from deniable.errors import MetricError
from deniable.metric import Metric
from deniable.registry import Registry
from deniable.types.number import Number


def example_record(registry: Registry) -> tuple[str, bool | float | str]:
    """The first metric that an app records itself, and a value; README's if there is none."""
    for metric in registry:
        value = example_value(metric)
        try:
            metric.normalize(value)
        except MetricError:
            continue
        return metric.name, value
    return "browser", "firefox"


def example_value(metric: Metric) -> bool | float | str:
    """A value that the metric takes."""
    if metric.type.name == "boolean":
        return True
    if isinstance(metric.type, Number):
        return float(metric.type.range.low)
    return metric.values[0] if metric.values else "example"


def in_python(value: bool | float | str) -> str:
    """The value as Python code."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def in_script(value: bool | float | str) -> str:
    """The value as JavaScript in a page."""
    # In a page `</script>` would end the script wherever it stands.
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
