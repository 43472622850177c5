"""What devices and servers agree on: registry, mechanisms, windows and the wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    scope: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package.

    Args:
        scope: the package's own globals.
        homes: the module inside the package for each name.
    """
    package = scope["__name__"]

    def fetch(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        scope[name] = value
        return value

    return fetch, lambda: sorted({*scope, *scope["__all__"]})
