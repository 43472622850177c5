"""CPU time, the smallest of several rounds: the machine is shared, and noise only adds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["cpu_seconds", "microseconds_each"]


def cpu_seconds(call: Callable[[], Any], rounds: int = 5) -> float:
    """CPU seconds of one call, user and system."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return best


def microseconds_each(call: Callable[[int], Any], size: int, calls: int, rounds: int = 7) -> float:
    """Mean CPU microseconds of a call with a value out of `size`, values changing."""
    items = [number * 7919 % size for number in range(calls)]

    def all_of_them() -> None:
        for item in items:
            call(item)

    return cpu_seconds(all_of_them, rounds) / calls * 1e6
