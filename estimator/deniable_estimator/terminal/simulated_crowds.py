"""`deniable plan simulate` of a retention and of a discovery, beside the truth.

A retention has many windows of a crowd that comes, stays and goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable import Metric
from deniable.protocol.coded_message import counted
from deniable.protocol.mechanisms.prefix_tree import head
from deniable.protocol.types.discovery import Discovery, denied
from deniable.protocol.types.retention import Retention
from deniable_estimator.terminal.options import progress, say

if TYPE_CHECKING:
    from numpy.random import Generator

    from deniable_collector.tally import Tally
    from deniable_estimator.answers.base import Answer
    from deniable_estimator.answers.finds import Finds

_FIRST = "2026-01-05"
"""A Monday, on which the first window begins; of months, the first of them."""


def say_simulated(
    form: str | None,
    answer: Answer,
    devices: int,
    truth: Any,
    rows: str,
    told: Sequence[float | None],
) -> None:
    """Print the answer of a simulated crowd with the `truth` as `answer_document` takes it; in
    JSON each of these `rows` has the one that is `told` of it."""
    from deniable_estimator.terminal.documents import answer_document

    def data() -> dict[str, Any]:
        report = answer.to_dict()
        for row, each in zip(report[rows], told, strict=True):
            row["truth"] = each
        return {"devices": devices, **report}

    say(form, data, lambda: answer_document(answer, truth))


def simulate_retention(
    declared: Metric,
    devices: int,
    lives: tuple[float, float, float, float, int],
    rng: Generator,
    form: str | None,
) -> None:
    """Print what is estimated of a crowd of which `devices` are active in a window, beside the
    truth. `lives` are the rates of `Life`, by how much the new devices grow in each window, and how
    many windows there are."""
    from deniable.protocol import windows
    from deniable_estimator.analyses.retention import WindowedTally
    from deniable_estimator.answers import answer_of
    from deniable_estimator.planning.retention_crowd import Life, tallies_of, true_series
    from deniable_estimator.statistics.participation import Participation

    back, stays, returns, growth, count = lives
    base = Life.steady(devices, back=back, stays=stays, returns=returns)
    lived = [replace(base, new=base.new * (1 + growth) ** at) for at in range(count)]
    first = windows.window_at(declared.window, windows.start(_FIRST))
    labels = [windows.shifted(first, place) for place in range(count)]
    older = max(0.0, devices - base.new)
    with progress(f"Simulating {count} windows"):
        drawn = list(tallies_of(declared, labels, lived, rng, older=older))
        tallies = [tally for tally, _ in drawn]
        rows = tuple(
            sum(same[1:], same[0]) for same in zip(*(each.rows for each in tallies), strict=True)
        )
        whole = WindowedTally(
            *(declared.name, declared.scheme.fingerprint, tuple(labels), rows), each=tuple(tallies)
        )
        participation = Participation(
            {each.windows[0]: each.reports for each in tallies}, declared.rate
        )
        answer = answer_of(whole, declared.scheme, participation=participation)
    assert isinstance(declared.type, Retention)
    truth = true_series([window for _, window in drawn], declared.type.ages)
    told = [truth.get(each) for each in answer.series.names]
    say_simulated(form, answer, devices, truth, "series", told)


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

    from deniable_estimator.analyses import sample_tally

    waiting: Counter[str] = Counter()
    for text, count in zip(texts, np.asarray(reporting).tolist(), strict=True):
        waiting[kind.normalize(text)] += count
    some = np.array(list(waiting.values()), np.int64)
    return sample_tally(declared.scheme, some, rng, values=list(waiting), metric=declared.name)


def _found(declared: Metric, kind: Discovery, tally: Tally) -> Finds:
    from deniable_estimator.answers.basis import Part
    from deniable_estimator.answers.finds import Rule, find_strings
    from deniable_estimator.statistics.participation import Participation

    part = Part(tally, declared.scheme, None, Participation.evenly(tally))
    rule = Rule(kind.minimum_share, partial(denied, patterns=kind.deny))
    return find_strings([part], rule)


def _print(finds: Finds, truth: dict[bytes, float], devices: int, form: str | None) -> None:
    found = {each.head for each in finds.finds}
    missed = sorted(
        ((share, each) for each, share in truth.items() if each and each not in found),
        reverse=True,
    )[:_MISSED]
    named = [(each.decode("utf-8", "backslashreplace"), share) for share, each in missed if share]
    from deniable_estimator.answers.words.finds import finds_document
    from deniable_estimator.document.document import Document, Note
    from deniable_estimator.document.terminal import MOST_ROWS, printable
    from deniable_estimator.messages import isolated

    def data() -> dict[str, Any]:
        told = finds.to_dict()
        for row, each in zip(told["finds"], finds.finds, strict=True):
            row["truth"] = truth.get(each.head, 0.0)
        told["missed"] = [{"text": text, "truth": share} for text, share in named]
        return {"devices": devices, **told}

    def document() -> Document:
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
        found = finds_document(finds, MOST_ROWS)
        return replace(found, notes=(*found.notes, *map(Note, notes)))

    say(form, data, document, ascii_only=True)
