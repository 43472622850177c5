"""Python's garbage collector in a server: its objects live for ever, and requests leave hardly any
cycles, so it need not scan them often."""

from __future__ import annotations

import gc

_YOUNG = 20_000
"""How many objects must be allocated (minus those freed) before the garbage collector runs."""


def collect_seldom() -> None:
    """Never scan again what there is now, and scan what is new after more of it. Call it once in
    each process of a server, when all that stays has been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)
