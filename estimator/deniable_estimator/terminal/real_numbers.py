"""Numbers on the command line: finite, and in a range."""

from __future__ import annotations

import math
from typing import Any

import click


class Real(click.FloatRange):
    """A float in a range. Click's own type accepts nan in any range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class AnyReal(Real):
    """A float without bounds."""

    def _describe_range(self) -> str:
        """Nothing: click would say `x<=None` in the help."""
        return ""
