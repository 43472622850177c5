"""Strings: which are found that nobody listed, and which of a list of candidates.

words       the commonest words of three languages, with the shipped prior
precision   languages and identifiers that the prior was made without
puzzle      Apple's sequence fragment puzzle (its white paper of 2017) on count mean sketches, by
            its marginals: a candidate's support is Bin(holders, p) + Bin(others, q)
candidates  hashed strings among 100,000 candidates; a tenth of the true ones are missing

Every tally but those of the puzzle is drawn from the exact distribution of real reports.
found: strings of the list that some device has. false: finds that no device has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.peers import wordlists
from common.puzzle import fragments_of, puzzle
from common.tables import Cell, Measured, Table, cpu_seconds, run
from deniable import Scheme
from deniable.protocol.mechanisms import AUTO, design
from deniable.protocol.mechanisms.hashed import CountMeanSketch, HadamardCountMeanSketch
from deniable.protocol.mechanisms.prefix_tree import PrefixTree, head
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of, sample_tally
from deniable_estimator.analyses.discovery import LEVEL
from deniable_estimator.analyses.discovery.prior import Prior, counted_pairs, shipped_prior
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.discovery.finds import find_strings
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import step_up
from deniable_estimator.statistics.tails import binomial_tail

HELD_OUT = ("de", "ja", "ar", "it")
"""Languages that the prior of `precision` and `puzzle` was made without."""

SEED = 20_261_123
DEVICES = 1_000_000


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


def listed(name: str) -> Crowd:
    """A list of `wordlists.py`."""
    lines = (wordlists() / f"{name}.tsv").read_text("utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    shares = np.array([float(share) for _, share in pairs])
    return Crowd(name, [text for text, _ in pairs], shares / shares.sum())


def prior_without(left_out: Sequence[str]) -> Prior:
    """The shipped prior, made again without some languages."""
    counts = np.zeros((257, 256))
    for path in sorted(wordlists().glob("*.tsv")):
        if path.stem.removeprefix("words_") not in left_out:
            crowd = listed(path.stem)
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
        cut = head(text, code.levels)
        heads.setdefault(cut, place)
        held[cut] = held.get(cut, 0) + count
    part = Part(tally, Scheme("discovery", code, ()), None, Participation.evenly(tally))
    finds = find_strings([part], prior=prior).finds
    true = [heads[each.head] for each in finds if held.get(each.head)]
    top = {most: sum(place < most for place in true) for most in (10, 20, 50)}
    return Seen(len(true), len(finds) - len(true), top)


def found_by(
    crowd: Crowd, devices: int, epsilon: float, prior: Prior, runs: int
) -> dict[str, Cell]:
    """A row for one crowd."""
    code = PrefixTree.design("strings", epsilon, 8)
    several = [seen(crowd, code, devices, prior, SEED + turn) for turn in range(runs)]
    return {
        "strings": crowd.name,
        "devices": devices,
        "epsilon": epsilon,
        **means(several),
    }


def means(several: Sequence[Seen]) -> dict[str, Cell]:
    """What several crowds showed."""
    finds = sum(each.found + each.false for each in several)
    return {
        "found": float(np.mean([each.found for each in several])),
        "of the top 10": float(np.mean([each.top[10] for each in several])),
        "of the top 20": float(np.mean([each.top[20] for each in several])),
        "of the top 50": float(np.mean([each.top[50] for each in several])),
        "false": f"{sum(each.false for each in several)} of {finds}",
    }


def words(quick: bool) -> Iterator[Table]:
    table = Table("strings-words", "The commonest words, with the shipped prior")
    for name in ("en", "ru", "zh"):
        for epsilon in (2.0, 4.0):
            crowd, runs = listed(f"words_{name}"), 2 if quick else 20
            table.rows.append(found_by(crowd, DEVICES, epsilon, shipped_prior(), runs))
    yield table


def precision(quick: bool) -> Iterator[Table]:
    table = Table("strings-precision", "Strings that the prior was made without")
    prior = prior_without(HELD_OUT)
    rng = np.random.default_rng(SEED)
    ids = [f"{number:09x}" for number in rng.choice(16**9, 5_000, replace=False)]
    crowds = [listed(f"words_{name}") for name in HELD_OUT]
    crowds.append(Crowd("9 hex digits (Zipf 1.1)", ids, zipf_shares(len(ids), 1.1)))
    for crowd in crowds[-2:] if quick else crowds:
        for devices, epsilon in ((10**5, 3.0), (DEVICES, 2.0), (DEVICES, 4.0)):
            table.rows.append(found_by(crowd, devices, epsilon, prior, 1 if quick else 4))
    yield table


def puzzled(quick: bool) -> Iterator[Table]:
    table = Table("strings-puzzle", "German words of a to z, at most 10 letters, a million devices")
    whole = listed("words_de")
    fits = [
        place
        for place, text in enumerate(whole.texts)
        if text.isascii() and text.isalpha() and text.islower() and len(text) <= 10
    ]
    shares = whole.shares[fits]
    crowd = Crowd("German", [whole.texts[place] for place in fits], shares / shares.sum())
    prior, runs = prior_without(HELD_OUT), 1 if quick else 3
    for epsilon in (2.0, 4.0):
        for tokens in (8, 5):
            code = PrefixTree.design("strings", epsilon, tokens)
            several = [seen(crowd, code, DEVICES, prior, SEED + turn) for turn in range(runs)]
            name = f"deniable, {2 * tokens} bytes"
            table.rows.append({"by": name, "epsilon": epsilon, **means(several)})
        for kind in (CountMeanSketch, HadamardCountMeanSketch):
            for best in (20, 100, 1_000):
                several = [by_puzzle(crowd, kind, epsilon, best, SEED + t) for t in range(runs)]
                name = f"puzzle, {kind.name}, {best:,} fragments"
                table.rows.append({"by": name, "epsilon": epsilon, **means(several)})
    table.note = "The finds of both are tested alike."
    yield table


def by_puzzle(
    crowd: Crowd,
    kind: type[CountMeanSketch] | type[HadamardCountMeanSketch],
    epsilon: float,
    best: int,
    seed: int,
) -> Seen:
    """Apple's puzzle: a fragment and a whole string, at half of epsilon each."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(DEVICES, crowd.shares)
    sketch = kind.design("strings", epsilon / 2)
    p, q = float(sketch.p), float(sketch.q)
    names = puzzle(fragments_of(crowd.texts, 10), counts, (p, q), best, rng)
    place = {text: number for number, text in enumerate(crowd.texts)}
    holders = np.array([counts[place[name]] if name in place else 0 for name in names], np.int64)
    support = rng.binomial(holders, p) + rng.binomial(DEVICES - holders, q)
    values = np.array([binomial_tail(int(count), DEVICES, q) for count in support])
    kept = [names[at] for at in np.flatnonzero(step_up(values) <= LEVEL).tolist()]
    true = [place[name] for name in kept if name in place and counts[place[name]]]
    top = {most: sum(at < most for at in true) for most in (10, 20, 50)}
    return Seen(len(true), len(kept) - len(true), top)


def candidates(quick: bool) -> Iterator[Table]:
    """200 strings by Zipf's law, of which every tenth is not among the candidates."""
    table = Table("strings-candidates", "Hashed strings: a million devices, 100,000 candidates")
    rng = np.random.default_rng(20261126)
    shares = zipf_shares(200, 1.1)
    there = [f"there-{number}.example" for number in range(200)]
    unlisted = np.arange(5, 200, 10)
    asked = np.delete(there, unlisted).tolist()
    asked += [f"absent-{number}.example" for number in range(100_000 - len(asked))]
    truth = np.zeros(len(asked))
    truth[: 200 - len(unlisted)] = np.delete(shares, unlisted)
    best = 4 * np.exp(2.0) / (np.exp(2.0) - 1) ** 2
    found, false, covered, ratio, seconds = [], [], [], [], []
    for turn in range(5 if quick else 40):
        # Another metric, another salt: hash functions are part of the luck.
        scheme = Scheme("string", design(AUTO, None, 2.0, salt=f"domains_{turn}"), ())
        tally = sample_tally(scheme, rng.multinomial(DEVICES, shares), rng, values=there)
        seconds.append(cpu_seconds(lambda t=tally, s=scheme: answer_of(t, s, asked), 1))
        answer = answer_of(tally, scheme, asked)
        found.append(int((answer.detected & (truth > 0)).sum()))
        false.append(int((answer.detected & (truth == 0)).sum()))
        covered.append(float(((answer.low <= truth) & (truth <= answer.high)).mean()))
        ratio.append(DEVICES * float(np.square(answer.share - truth).mean()) / best)
    every = sum(found) + sum(false)
    part = sum(false) / every
    table.add(figure="true strings found, at nominal 5%", deniable=average(found), goal="≥ 35")
    wrong = Measured(part, (part * (1 - part) / every) ** 0.5)
    table.add(figure="false discoveries, pooled", deniable=wrong, goal="≤ 0.05")
    table.add(figure="coverage of 95% intervals", deniable=average(covered), goal="0.94 to 0.96")
    table.add(figure="error over the best possible", deniable=average(ratio), goal="1.05")
    table.add(figure="CPU seconds, the smallest run", deniable=min(seconds), goal="≤ 2")
    table.note = "The best possible is that of subset selection. The peers have no such oracle."
    yield table


def average(values: Sequence[float]) -> Measured:
    return Measured(float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5)


PARTS = {
    "words": words,
    "precision": precision,
    "puzzle": puzzled,
    "candidates": candidates,
}

if __name__ == "__main__":
    run(__doc__, PARTS)
