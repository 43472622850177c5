"""A decoding in a terminal: detected candidates first, with a bar for each interval."""

from __future__ import annotations

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.told import counted
from deniable_estimator.rappor.decoding import Decoded
from deniable_estimator.terminal.tables import picture

__all__ = ["decoded_view"]

_MOST_ROWS = 40
_PICTURE = 20


def decoded_view(decoded: Decoded) -> RenderableType:
    """Detected candidates by share, then the strongest of the others, and the remaining share."""
    found = decoded.decoding
    detected = int(found.detected.sum())
    parts: list[RenderableType] = [
        Text(
            f"{counted(found.n, 'report')}  ·  {counted(len(found.share), 'candidate')}  ·  "
            f"{detected:,} detected"
        )
    ]
    if found.n:
        parts += _estimates(decoded)
    parts += [Text(f"Note: {warning}.", style="yellow") for warning in decoded.warnings]
    return Group(*parts)


def _estimates(decoded: Decoded) -> list[RenderableType]:
    found = decoded.decoding
    order = np.lexsort((np.nan_to_num(-found.share), ~found.detected))[:_MOST_ROWS]
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("string", overflow="fold")
    table.add_column("share %", justify="right")
    table.add_column(f"{found.level * 100:.3g}% interval", justify="right")
    top = max(float(np.nan_to_num(found.high[order]).max()), 1e-12)
    table.add_column(f"0{_percent(top):>{_PICTURE - 1}}", no_wrap=True)
    table.add_column("p", justify="right")
    for at in order.tolist():
        share, low, high = float(found.share[at]), float(found.low[at]), float(found.high[at])
        cells: list[RenderableType]
        if np.isfinite(share):
            cells = [
                _percent(share),
                f"{_percent(low)} .. {_percent(high)}",
                picture(low, share, high, top),
                f"{found.p_value[at]:.2g}",
            ]
        else:
            cells = ["unknown", "", "", ""]
        name = Text(_printable(decoded.candidates[at]))
        table.add_row(name, *cells, style=None if found.detected[at] else "dim")
    low, rest, high = found.unexplained
    parts: list[RenderableType] = [table]
    if len(found.share) > len(order):
        hidden = len(found.share) - len(order)
        parts.append(Text(f"and {hidden:,} more candidates: --csv or --json has all", style="dim"))
    if not found.detected[order].all():
        parts.append(Text("Dim: not distinguishable from a string that nobody has.", style="dim"))
    parts.append(
        Text(
            f"The detected candidates explain {_percent(found.explained_share)}% of the devices. "
            f"The other {_percent(rest)}% ({_percent(low)} .. {_percent(high)}) have strings "
            "that are not in the map, or too rare to be distinguished from noise."
        )
    )
    return parts


def _percent(share: float) -> str:
    return f"{share * 100:.2f}"


def _printable(text: str) -> str:
    """The text without control characters for the terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
