"""Discovery: which strings are found that nobody listed, how fast, and what peers find.

words      the commonest words of three languages, with the shipped prior
precision  languages and identifiers that the prior was made without: finds that are nobody's
distinct   crowds whose strings all differ
heads      host names (24 bytes) and the heads of crash signatures (16 of 60 to 200 bytes)
speed      seconds and memory of one decode
peers      Apple's sequence fragment puzzle (CCS 2017 paper of Bassily, Nissim, Stemmer and Thakurta
           names it; Apple's white paper of 2017 describes it) on count mean sketches, by its
           marginals: a candidate's support is Bin(holders, p) + Bin(others, q)
pem        pure-ldp's prefix extending method, through its own clients, with a limit in seconds

Every tally but those of `peers` is drawn from the exact distribution of real reports, with fresh
seeds. found: strings of the list that some device has. false: finds that no device has.

    python benchmarks/wordlists.py FOLDER
    python benchmarks/discovery.py FOLDER [--runs 20] [--only NAME] [--seed N]
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from deniable import Scheme
from deniable.mechanisms import CountMeanSketch, HadamardCountMeanSketch, PrefixTree
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.discovery import DecodedRows
from deniable_estimator.analyses.discovery.confirming import LEVEL, step_up
from deniable_estimator.analyses.discovery.prior import Prior, counted_pairs, shipped_prior
from deniable_estimator.answers.finds_making import Reported, Rule, find_strings
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.tails import binomial_tail
from oracles.peers import default_place, prepare
from oracles.puzzle import fragments_of, puzzle
from oracles.tables import Cell, Result

HELD_OUT = ("de", "ja", "ar", "it")
"""Languages that the prior of `precision` and `peers` was made without."""

LIMIT = 120
"""Seconds that a peer may take."""


class Crowd(NamedTuple):
    """Strings by frequency, and their shares."""

    name: str
    texts: list[str]
    shares: NDArray[np.float64]


class Seen(NamedTuple):
    """What one crowd showed."""

    found: int
    false: int
    top: dict[int, int]
    """k -> how many of the k commonest were found."""


def listed(folder: Path, name: str, most: int = 60_000) -> Crowd:
    """A list of `wordlists.py`."""
    lines = (folder / f"{name}.tsv").read_text("utf-8").splitlines()[:most]
    pairs = [line.split("\t") for line in lines]
    shares = np.array([float(share) for _, share in pairs])
    return Crowd(name, [text for text, _ in pairs], shares / shares.sum())


def zipf(name: str, texts: list[str], exponent: float) -> Crowd:
    shares = 1 / np.arange(1, len(texts) + 1) ** exponent
    return Crowd(name, texts, shares / shares.sum())


def prior_without(folder: Path, left_out: Sequence[str]) -> Prior:
    """The shipped prior, made again without some languages."""
    counts = np.zeros((257, 256))
    for path in sorted(folder.glob("*.tsv")):
        if path.stem.removeprefix("words_") not in left_out:
            crowd = listed(folder, path.stem)
            counts += counted_pairs(zip(crowd.texts, crowd.shares.tolist(), strict=True))
    return Prior(counts, "the same without " + ", ".join(left_out), "")


def drawn(crowd: Crowd, code: PrefixTree, n: int, seed: int) -> tuple[Tally, NDArray[np.int64]]:
    """A tally of so many devices, and how many have each string."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, crowd.shares)
    rows = analysis_of(code).sample_rows(crowd.texts, counts, rng)
    fingerprint = Scheme("discovery", code, ()).fingerprint
    return Tally("strings", fingerprint, ("2026-11-16",), rows), counts


def seen(crowd: Crowd, code: PrefixTree, n: int, prior: Prior, seed: int) -> Seen:
    """One crowd through the decoder."""
    tally, counts = drawn(crowd, code, n, seed)
    heads: dict[bytes, int] = {}
    held: dict[bytes, int] = {}
    for place, (text, count) in enumerate(zip(crowd.texts, counts.tolist(), strict=True)):
        head = code.head(text)
        heads.setdefault(head, place)
        held[head] = held.get(head, 0) + count
    part = Reported(tally, Scheme("discovery", code, ()), Participation.evenly(tally))
    finds = find_strings([part], Rule(), prior=prior).finds
    true = [heads[each.head] for each in finds if held.get(each.head)]
    top = {most: sum(place < most for place in true) for most in (10, 20, 50)}
    return Seen(len(true), len(finds) - len(true), top)


def cells(
    crowds: Sequence[Crowd],
    asked: Sequence[tuple[int, float]],
    tokens: int,
    prior: Prior,
    runs: int,
    seed: int,
) -> Iterator[dict[str, Cell]]:
    """A row for each crowd, number of devices and epsilon."""
    for crowd in crowds:
        for n, epsilon in asked:
            code = PrefixTree.design("strings", epsilon, tokens)
            several = [seen(crowd, code, n, prior, seed + run) for run in range(runs)]
            finds = sum(each.found + each.false for each in several)
            false = sum(each.false for each in several)
            yield {
                "strings": crowd.name,
                "devices": f"{n:,}",
                "epsilon": f"{epsilon:g}",
                "found": float(np.mean([each.found for each in several])),
                "of the top 10": float(np.mean([each.top[10] for each in several])),
                "of the top 20": float(np.mean([each.top[20] for each in several])),
                "of the top 50": float(np.mean([each.top[50] for each in several])),
                "crowds with all 20": f"{sum(each.top[20] == 20 for each in several)} of {runs}",
                "false": f"{false} of {finds}" + (f" ({false / finds:.1%})" if finds else ""),
            }


def words(folder: Path, runs: int, seed: int) -> Iterator[dict[str, Cell]]:
    crowds = [listed(folder, f"words_{name}") for name in ("en", "ru", "zh")]
    yield from cells(crowds, [(10**6, 2.0), (10**6, 4.0)], 8, shipped_prior(), runs, seed)


def precision(folder: Path, runs: int, seed: int) -> Iterator[dict[str, Cell]]:
    prior = prior_without(folder, HELD_OUT)
    rng = np.random.default_rng(seed)
    ids = [f"{number:09x}" for number in rng.choice(16**9, 5_000, replace=False)]
    crowds = [listed(folder, f"words_{name}") for name in HELD_OUT]
    crowds.append(zipf("identifiers of 9 hex digits", ids, 1.1))
    asked = [(10**5, 3.0), (10**6, 2.0), (10**6, 4.0)]
    yield from cells(crowds, asked, 8, prior, runs, seed)


def distinct(folder: Path, runs: int, seed: int) -> Iterator[dict[str, Cell]]:
    for n, epsilon in ((10**5, 3.0), (10**5, 4.0)):
        texts = [f"{number:09x}" for number in range(1, n + 1)]
        crowd = Crowd("all different", texts, np.full(n, 1 / n))
        code = PrefixTree.design("strings", epsilon, 8)
        none = 0
        for run in range(runs):
            # One device each: the draw of the devices would repeat some.
            rng = np.random.default_rng(seed + run)
            rows = analysis_of(code).sample_rows(texts, np.ones(n, np.int64), rng)
            scheme = Scheme("discovery", code, ())
            tally = Tally("strings", scheme.fingerprint, ("2026-11-16",), rows)
            part = Reported(tally, scheme, Participation.evenly(tally))
            none += not find_strings([part], Rule()).finds
        yield {
            "strings": crowd.name,
            "devices": f"{n:,}",
            "epsilon": f"{epsilon:g}",
            "crowds without a find": f"{none} of {runs}",
        }


def heads(folder: Path, runs: int, seed: int) -> Iterator[dict[str, Cell]]:
    rng = np.random.default_rng(seed)
    hosts = listed(folder, "hosts").texts
    order = rng.permutation(len(hosts))
    crowd = zipf("host names", [hosts[place] for place in order], 1.1)
    prior = prior_without(folder, ("hosts",))
    yield from cells([crowd], [(10**6, 2.0), (10**6, 4.0)], 12, prior, runs, seed)
    yield from cells(
        [zipf("crash signatures", signatures(rng), 1.2)],
        [(10**6, 2.0), (10**6, 4.0)],
        8,
        shipped_prior(),
        runs,
        seed,
    )


def signatures(rng: np.random.Generator) -> list[str]:
    """Made-up crash signatures of 60 to 199 bytes: modules, classes and functions."""
    names = [
        "core",
        "net",
        "ui",
        "media",
        "store",
        "sync",
        "auth",
        "cache",
        "render",
        "parse",
        "index",
        "query",
        "list",
        "view",
    ]
    verbs = [
        "load",
        "save",
        "open",
        "close",
        "read",
        "write",
        "draw",
        "update",
        "push",
        "pop",
        "init",
        "run",
        "find",
        "send",
    ]
    made = []
    for _ in range(2_000):
        parts = []
        while sum(map(len, parts)) + 2 * len(parts) < 60:
            one, two, verb = rng.choice(names), rng.choice(names), rng.choice(verbs)
            parts.append(f"{one}::{two.title()}{verb.title()}::{verb}_{one}")
        made.append("|".join(parts)[:199])
    return list(dict.fromkeys(made))


def speed(folder: Path, runs: int, seed: int) -> Iterator[dict[str, Cell]]:
    crowd = listed(folder, "words_en")
    shipped_prior()
    for epsilon in (2.0, 4.0):
        code = PrefixTree.design("strings", epsilon, 8)
        tally, _ = drawn(crowd, code, 10**6, seed)
        scheme = Scheme("discovery", code, ())
        part = Reported(tally, scheme, Participation.evenly(tally))
        before = _memory()
        wall, cpu = [], []
        for _ in range(5):
            begun, used = time.perf_counter(), time.process_time()
            find_strings([part], Rule())
            wall.append(time.perf_counter() - begun)
            cpu.append(time.process_time() - used)
        begun = time.process_time()
        rows = DecodedRows(code, tally)
        for row in range(code.levels + 1):
            rows.row(row)
        yield {
            "devices": "1,000,000",
            "epsilon": f"{epsilon:g}",
            "cells": f"{code.width * (code.levels + 1):,}",
            "seconds": min(wall),
            "CPU seconds": min(cpu),
            "of which the rows": time.process_time() - begun,
            "MB at most": _memory(),
            "MB before": before,
        }


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peers(folder: Path, runs: int, seed: int) -> Iterator[dict[str, Cell]]:
    crowd = short_words(folder, "words_de", 10)
    n, prior = 10**6, prior_without(folder, HELD_OUT)
    for epsilon in (2.0, 4.0):
        for tokens in (8, 5):
            code = PrefixTree.design("strings", epsilon, tokens)
            several = [seen(crowd, code, n, prior, seed + run) for run in range(runs)]
            yield _peer(f"deniable, {2 * tokens} bytes", epsilon, several, runs)
        kinds: list[type[CountMeanSketch] | type[HadamardCountMeanSketch]] = [
            CountMeanSketch,
            HadamardCountMeanSketch,
        ]
        for kind in kinds:
            for best in (20, 100, 1_000):
                several = [
                    _puzzled(crowd, kind, epsilon, n, best, seed + run) for run in range(runs)
                ]
                yield _peer(f"puzzle, {kind.name}, {best} fragments", epsilon, several, runs)


def _peer(name: str, epsilon: float, several: Sequence[Seen], runs: int) -> dict[str, Cell]:
    false = sum(each.false for each in several)
    return {
        "by": name,
        "epsilon": f"{epsilon:g}",
        "found": float(np.mean([each.found for each in several])),
        "of the top 20": float(np.mean([each.top[20] for each in several])),
        "false": f"{false} of {sum(each.found + each.false for each in several)}",
        "runs": str(runs),
    }


def short_words(folder: Path, name: str, most: int, least: int = 1) -> Crowd:
    """The words of a list that have only small letters of ASCII, and so many of them."""
    whole = listed(folder, name)
    fits = [
        place
        for place, text in enumerate(whole.texts)
        if text.isascii() and text.isalpha() and text.islower() and least <= len(text) <= most
    ]
    shares = whole.shares[fits]
    return Crowd(name, [whole.texts[place] for place in fits], shares / shares.sum())


def _puzzled(
    crowd: Crowd,
    kind: type[CountMeanSketch] | type[HadamardCountMeanSketch],
    epsilon: float,
    n: int,
    best: int,
    seed: int,
) -> Seen:
    """Apple's puzzle: a fragment and a whole string, at half of epsilon each."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, crowd.shares)
    sketch = kind.design("strings", epsilon / 2)
    p, q = float(sketch.p), float(sketch.q)
    names = puzzle(fragments_of(crowd.texts, 10), counts, (p, q), best, rng)
    place = {text: number for number, text in enumerate(crowd.texts)}
    holders = np.array([counts[place[name]] if name in place else 0 for name in names], np.int64)
    support = rng.binomial(holders, p) + rng.binomial(n - holders, q)
    values = np.array([binomial_tail(int(count), n, q) for count in support])
    kept = [names[at] for at in np.flatnonzero(step_up(values, LEVEL)).tolist()]
    true = [place[name] for name in kept if name in place and counts[place[name]]]
    top = {most: sum(at < most for at in true) for most in (10, 20, 50)}
    return Seen(len(true), len(kept) - len(true), top)


def pem(folder: Path, runs: int, seed: int) -> Iterator[dict[str, Cell]]:
    crowd = short_words(folder, "words_de", 6, 6)
    prior = prior_without(folder, HELD_OUT)
    python = prepare(default_place())
    side = Path(__file__).parent / "oracles" / "pem_side.py"
    for n in (5_000, 20_000):
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(n, crowd.shares)
        held = [(text, int(k)) for text, k in zip(crowd.texts, counts, strict=True) if k]
        code = PrefixTree.design("strings", 4.0, 3)
        begun = time.perf_counter()
        several = [seen(crowd, code, n, prior, seed + run) for run in range(runs)]
        spent = (time.perf_counter() - begun) / runs
        yield {
            "by": "deniable, 6 bytes",
            "devices": f"{n:,}",
            "found": float(np.mean([each.found for each in several])),
            "false": float(np.mean([each.false for each in several])),
            "seconds": f"{spent:.1f} with the crowd",
        }
        for oracle in ("OLH", "CMS"):
            begun = time.perf_counter()
            lines = "".join(f"{text}\t{count}\n" for text, count in held)
            found: list[str] | None = None
            try:
                asked = [str(python), str(side), oracle, "4", "20", str(seed)]
                answer = subprocess.run(
                    asked, input=lines, capture_output=True, text=True, timeout=LIMIT, check=True
                )
                found = answer.stdout.split()
            except subprocess.TimeoutExpired:
                pass
            true = None if found is None else sum(text in dict(held) for text in found)
            yield {
                "by": f"pure-ldp PEM on {oracle}, the 20 likeliest",
                "devices": f"{n:,}",
                "found": "none yet" if true is None else float(true),
                "false": "" if true is None or found is None else float(len(found) - true),
                "seconds": f"{time.perf_counter() - begun:.0f}"
                + ("" if found is not None else ", stopped"),
            }


PARTS: dict[str, tuple[str, Callable[[Path, int, int], Iterator[dict[str, Cell]]]]] = {
    "words": ("The commonest words, shipped prior", words),
    "precision": ("Data that the prior was made without", precision),
    "distinct": ("Crowds whose strings all differ", distinct),
    "heads": ("Host names and crash signatures", heads),
    "speed": ("One decode", speed),
    "peers": ("German words of a to z, at most 10 letters, 1,000,000 devices", peers),
    "pem": ("German words of 6 letters, epsilon 4", pem),
}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--runs", default=20, show_default=True, help="Crowds of each row.")
@click.option("--only", type=click.Choice(list(PARTS)), multiple=True)
@click.option("--seed", default=20_261_123, show_default=True)
def main(folder: Path, runs: int, only: tuple[str, ...], seed: int) -> None:
    """Measure discovery on the lists in FOLDER."""
    for name in only or tuple(PARTS):
        title, measure = PARTS[name]
        rows = []
        for row in measure(folder, runs, seed):
            rows.append(row)
            click.echo(f"{name}: {' · '.join(f'{k} {v}' for k, v in row.items())}", err=True)
        Console(width=150).print(Result(name, title, rows).table())


if __name__ == "__main__":
    main()
