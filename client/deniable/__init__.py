"""deniable: telemetry under local differential privacy, for the app that embeds it.

>>> import deniable
>>> telemetry = deniable.Client("metrics.toml", consent=True)  # doctest: +SKIP
>>> telemetry.record("browser", "firefox")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deniable.device.client import Client
    from deniable.protocol import __version__
    from deniable.protocol.errors import (
        DeniableError,
        MetricError,
        RegistryError,
        RejectedError,
        SchemeError,
        SegmentError,
        StateError,
        TransportError,
        UndeclaredValueWarning,
        ValueListError,
        WindowError,
        WireError,
    )
    from deniable.protocol.metric import Metric
    from deniable.protocol.registry import Registry
    from deniable.protocol.scheme import Scheme

__all__ = [
    "Client",
    "DeniableError",
    "Metric",
    "MetricError",
    "Registry",
    "RegistryError",
    "RejectedError",
    "Scheme",
    "SchemeError",
    "SegmentError",
    "StateError",
    "TransportError",
    "UndeclaredValueWarning",
    "ValueListError",
    "WindowError",
    "WireError",
    "__version__",
]

_HOMES = {
    **dict.fromkeys(__all__, "protocol.errors"),
    "Client": "device.client",
    "Metric": "protocol.metric",
    "Registry": "protocol.registry",
    "Scheme": "protocol.scheme",
    "__version__": "protocol",
}
"""The module of each name; the others are errors."""

if not TYPE_CHECKING:
    # Names are fetched when they are first used: an app that starts with telemetry switched
    # off, or a tool that wants one module, does not pay for the rest. Type checkers read
    # the imports above.
    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
