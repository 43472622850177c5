"""RAPPOR on a device: what a report costs.

Run: python benchmarks/rappor_device.py [--json]

A full report of 128 bits (Bloom filter, permanent response, instantaneous response),
beside one that reports bit by bit, in the same run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import SystemRandom
from typing import Any

import click
from rich.console import Console

from deniable.hashing import hash64
from deniable.mechanisms import Rappor
from deniable.randomness import PRECISION
from oracles.tables import Cell, Goal, Result
from oracles.timing import microseconds_each

MICROSECONDS = 12.0
_SYSTEM = SystemRandom()
_STRINGS = [f"string {number}" for number in range(512)]


def bit_by_bit(mechanism: Rappor) -> Callable[[int], list[bool]]:
    """RAPPOR as a textbook writes it: a float for each bit of each round."""
    bloom, rounds = mechanism.bloom, mechanism.rounds
    f, p, q = (each / 2**PRECISION for each in (rounds.f, rounds.p, rounds.q))

    def report(number: int) -> list[bool]:
        text = _STRINGS[number]
        bits = [False] * bloom.k
        for each in range(bloom.h):
            bits[hash64(bloom.salt, 3 * bloom.h + each, text) % bloom.k] = True
        memo = []
        for bit in bits:
            kept = _SYSTEM.random()
            memo.append(kept < f / 2 if kept < f else bit)
        return [_SYSTEM.random() < (q if bit else p) for bit in memo]

    return report


def times() -> Result:
    """Microseconds of one report at 128 bits."""
    paper = Rappor.paper("homepage")
    tuned = Rappor.design("homepage", paper.epsilon, paper.lifetime_epsilon)
    rows: list[dict[str, Cell]] = []
    for name, mechanism in (("paper's parameters", paper), ("default", tuned)):
        memos = {mechanism.cell(3, text): mechanism.memoize(1) for text in _STRINGS}

        def known(number: int, mechanism: Rappor = mechanism, memos: Any = memos) -> object:
            return mechanism.report(3, memos[mechanism.cell(3, _STRINGS[number])])

        def new(number: int, mechanism: Rappor = mechanism) -> object:
            return mechanism.report(3, mechanism.memoize(mechanism.cell(3, _STRINGS[number])))

        naive = microseconds_each(bit_by_bit(mechanism), len(_STRINGS), 200, rounds=9)
        for memory, call in (("looked up", known), ("drawn", new)):
            ours = microseconds_each(call, len(_STRINGS), 400, rounds=25)
            rows.append(
                {
                    "RAPPOR, 128 bits": name,
                    "permanent response": memory,
                    "deniable, us": ours,
                    "bit by bit, us": naive if memory == "drawn" else None,
                    "goal": Goal(f"at most {MICROSECONDS:g}", ours <= MICROSECONDS),
                }
            )
    return Result("time", "One report on the device", rows)


@click.command(help=__doc__)
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
def main(as_json: bool) -> None:
    result = times()
    if as_json:
        click.echo(json.dumps(result.to_dict(), indent=1))
    else:
        Console().print(result.table())


if __name__ == "__main__":
    main()
