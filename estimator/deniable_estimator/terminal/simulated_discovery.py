"""`deniable plan simulate` of a discovery: what is found of a made-up crowd, beside the truth."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable import Metric
from deniable.protocol.coded_message import counted
from deniable.protocol.mechanisms.prefix_code import head
from deniable.protocol.types import Discovery
from deniable.protocol.types.deny import denied
from deniable_estimator.terminal.options import progress

if TYPE_CHECKING:
    from numpy.random import Generator

    from deniable_collector.tally import Tally
    from deniable_estimator.answers.finds import Finds

_MISSED = 10
"""So many of the commonest strings that were not found are named."""


def simulate_discovery(
    declared: Metric,
    devices: int,
    shares: Path | None,
    candidates: Path | None,
    zipf: float | None,
    rng: Generator,
    form: str | None,
) -> None:
    """Draw a window's tally of `devices`, and print what is found in it.

    Raises:
        click.UsageError: nobody said which strings the devices have.
        ValueListError: a file cannot be read, or has a mistake.
    """
    from deniable.protocol.value_list import read_values
    from deniable_estimator.planning.population import read_strings, zipf_shares

    kind = declared.type
    assert isinstance(kind, Discovery)
    if shares is not None:
        if candidates is not None or zipf is not None:
            raise click.UsageError("--shares has strings and weights: leave the others out")
        texts, spread = read_strings(shares)
    elif candidates is not None:
        texts = read_values(candidates)
        spread = zipf_shares(len(texts), 1.0 if zipf is None else zipf)
    else:
        raise click.UsageError(
            "say which strings devices have: --shares FILE with string,weight lines, or "
            "--candidates FILE with the commonest first, and --zipf"
        )
    with progress(f"Simulating {counted(devices, 'device')}"):
        counts = rng.multinomial(devices, spread)
        reporting = rng.binomial(counts, declared.rate)
        finds = _found(declared, kind, _tally(declared, kind, texts, reporting, rng))
    truth: Counter[bytes] = Counter()
    for text, count in zip(texts, counts.tolist(), strict=True):
        truth[_head(kind, text)] += count
    _print(finds, {each: count / devices for each, count in truth.items()}, devices, form)


def _head(kind: Discovery, text: str) -> bytes:
    return head(kind.normalize(text), kind.levels, kind.alphabet)


def _tally(
    declared: Metric, kind: Discovery, texts: list[str], reporting: object, rng: Generator
) -> Tally:
    import numpy as np

    from deniable_estimator.analyses.sampling import sample_tally

    waiting: Counter[str] = Counter()
    for text, count in zip(texts, np.asarray(reporting).tolist(), strict=True):
        waiting[kind.normalize(text)] += count
    some = np.array(list(waiting.values()), np.int64)
    return sample_tally(declared.scheme, some, rng, values=list(waiting), metric=declared.name)


def _found(declared: Metric, kind: Discovery, tally: Tally) -> Finds:
    from deniable_estimator.answers.finds_making import Reported, Rule, find_strings
    from deniable_estimator.statistics.participation import Participation

    part = Reported(tally, declared.scheme, Participation.evenly(tally))
    rule = Rule(kind.minimum_share, partial(denied, patterns=kind.deny))
    return find_strings([part], rule)


def _print(finds: Finds, truth: dict[bytes, float], devices: int, form: str | None) -> None:
    found = {each.head for each in finds.finds}
    missed = sorted(
        ((share, each) for each, share in truth.items() if each and each not in found),
        reverse=True,
    )[:_MISSED]
    named = [(each.decode("utf-8", "backslashreplace"), share) for share, each in missed if share]
    if form == "json":
        told = {"devices": devices, **finds.to_dict()}
        for row, each in zip(told["finds"], finds.finds, strict=True):
            row["truth"] = truth.get(each.head, 0.0)
        told["missed"] = [{"text": text, "truth": share} for text, share in named]
        click.echo(json.dumps(told, allow_nan=False))
        return
    from deniable_estimator.document.document import Note
    from deniable_estimator.document.terminal import show
    from deniable_estimator.isolation import isolated
    from deniable_estimator.terminal.finds_told import finds_document
    from deniable_estimator.terminal.tables import printable

    notes = []
    false = sum(not truth.get(each.head) for each in finds.finds)
    if finds.finds:
        errors = [each.low <= truth.get(each.head, 0.0) <= each.high for each in finds.finds]
        notes.append(
            f"Truth: {sum(errors):,} of {len(errors):,} intervals hold the true share, and "
            f"{false:,} of the strings are nobody's."
        )
    if named:
        text = ", ".join(f"{isolated(printable(name))} {share:.2%}" for name, share in named)
        notes.append(f"The commonest that were not found: {text}.")
    document = finds_document(finds)
    show(replace(document, notes=(*document.notes, *map(Note, notes))))
