"""hearsay: telemetry under local differential privacy, for the app that embeds it.

>>> import hearsay
>>> telemetry = hearsay.Client("metrics.toml", endpoint="https://t.acme.example")  # doctest: +SKIP
>>> telemetry.record("browser", "firefox")  # doctest: +SKIP
"""

from __future__ import annotations

from hearsay.errors import (
    HearsayError,
    MetricError,
    RegistryError,
    SchemeError,
    StateError,
    TransportError,
    WindowError,
    WireError,
)
from hearsay.registry import Metric, Registry
from hearsay.scheme import Scheme

__all__ = [
    "HearsayError",
    "Metric",
    "MetricError",
    "Registry",
    "RegistryError",
    "Scheme",
    "SchemeError",
    "StateError",
    "TransportError",
    "WindowError",
    "WireError",
    "__version__",
]

__version__ = "0.1.0"
