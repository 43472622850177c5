"""What a reader of several exact sums can subtract.

The sums of two ranges of windows differ by the reports that are in one of them alone, and so do a
segment and its whole, or two readings of a window that has got more reports in between. Whoever
subtracts the sums is left with the sum of these reports, however few they are.

Reports are divided into *cells*: two reports are in the same cell if the same sums hold them. All
sums follow from the sums of the cells, so they reveal no more than these do. A window of a segment
whose number of reports has grown is divided into the reports that were there before, and the rest.

Sums that were released with noise divide a cell further, into *parts* that the same of them hold. A
report hides among those of its cell only as far as the noise does not separate it from them, and it
suffices that it hides among the largest part. For given the sum of that part and the report
together, each noisy sum is a mechanism of its own, whose noise is drawn independently: its epsilon
is added by basic composition (Dwork and Roth, "The Algorithmic Foundations of Differential
Privacy", 2014, theorem B.1). All else that is published follows from these and from the reports of
other devices, which do not depend on this one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from deniable_estimator.asking.fetch import Selection

Counted: TypeAlias = Mapping[str, Mapping[str, int]]
"""The reports of one sum, by "metric scheme window" and by the number of the combination of
segments. A text and no tuple, because it is kept as JSON."""


@dataclass(frozen=True, slots=True)
class SumCell:
    """Reports that the same sums hold.

    Attributes:
        windows: in which they were made.
        hiding: those of the largest part; all of them if no noisy sum divides them.
    """

    reports: int
    windows: frozenset[str]
    hiding: int


def counted(chosen: Selection) -> Counted:
    """The reports of the sum of these windows, by where they are counted."""
    found: dict[str, dict[str, int]] = {}
    for each in chosen.chosen:
        if not each.windows:
            continue
        counts = chosen.reader.segment_reports(*each.named, each.windows)
        for label, by_place in counts.items():
            known = {str(place): int(by_place[place]) for place in each.places if by_place[place]}
            if known:
                found[" ".join((*each.named, label))] = known
    return found


def cells(
    earlier: Iterable[Sequence[Counted]],
    new: Sequence[Counted],
    noisy: Iterable[Sequence[Counted]] = (),
    *,
    exact: bool = True,
) -> list[SumCell]:
    """The cells of the new sums, of all earlier ones that share reports with them, of those that
    share reports with these, and so on.

    Args:
        earlier: the exact sums of each release that was made before.
        noisy: the sums of each release with noise.
        exact: whether the new sums are; otherwise there are the cells of the earlier ones alone.
    """
    joined = _joined(earlier, new)
    return _divided(joined if exact else joined[len(new) :], noisy)


def _divided(exact: Sequence[Counted], noisy: Iterable[Sequence[Counted]]) -> list[SumCell]:
    apart = [each for release in noisy for each in release]
    holding: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for number, each in enumerate([*exact, *apart]):
        for at, count in _places(each):
            holding[at][number] = count
    parts: dict[frozenset[int], dict[frozenset[int], int]] = defaultdict(lambda: defaultdict(int))
    windows: dict[frozenset[int], set[str]] = defaultdict(set)
    for (key, _), counts in holding.items():
        before = 0
        for level in sorted(set(counts.values())):
            members = frozenset(number for number, count in counts.items() if count >= level)
            cell = frozenset(number for number in members if number < len(exact))
            if cell:
                parts[cell][members - cell] += level - before
                windows[cell].add(key.rsplit(" ", 1)[1])
            before = level
    return [
        SumCell(sum(each.values()), frozenset(windows[cell]), max(each.values()))
        for cell, each in parts.items()
    ]


def _joined(earlier: Iterable[Sequence[Counted]], new: Sequence[Counted]) -> list[Counted]:
    """The new sums, and the earlier ones that hang together with them."""
    found, apart = list(new), [each for release in earlier for each in release]
    touched = {at for each in new for at, _ in _places(each)}
    while True:
        near: list[Counted] = []
        far: list[Counted] = []
        for each in apart:
            (near if any(at in touched for at, _ in _places(each)) else far).append(each)
        if not near:
            return found
        found, apart = found + near, far
        touched.update(at for each in near for at, _ in _places(each))


def _places(each: Counted) -> Iterator[tuple[tuple[str, str], int]]:
    for key, by_place in each.items():
        for place, count in by_place.items():
            yield (key, place), count
