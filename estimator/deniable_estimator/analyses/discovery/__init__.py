"""Discovery: which strings occur, and how common strings are that somebody names.

`tree.py` searches the rows for strings, with the `prior.py` of text, and tests what it finds.
`statistics.expected` says what surfaces in which crowd.

A string that is asked for by name is estimated from the rows after its last token, as a find is:
the row of its last token counts it too, but has chosen it, if it was found in the same reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.base import Analysis, Counts, Items, sample_each_row
from deniable_estimator.analyses.discovery.prefix_tree import Supported, candidates, p_value
from deniable_estimator.analyses.discovery.prior import Prior
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.statistics.significance import step_up


@dataclass(frozen=True, slots=True)
class FoundHead:
    """A string as the rows count it."""

    head: bytes
    """Its first bytes, as the devices have them: UTF-8, cut to the declared length."""
    cut: bool
    """Whether it fills the declared length, so that longer strings may be counted in it."""

    @property
    def level(self) -> int:
        """The first row in which all of its tokens are over."""
        return len(self.head) // 2 if self.cut else len(self.head) // 2 + 1

    @property
    def text(self) -> str:
        """As people read it: what is left of a letter that is cut is shown as \\xNN. It was written
        by a stranger: escape it wherever it is shown."""
        return self.head.decode("utf-8", "backslashreplace")

    @property
    def name(self) -> str:
        """What shares, addresses, charts and files of a trend call it: one that is cut ends in
        dots, as another one may be as long."""
        return self.text + ("\N{HORIZONTAL ELLIPSIS}" if self.cut else "")


class DecodedRows:
    """The rows of a tally, each decoded when it is first asked for."""

    def __init__(self, mechanism: PrefixTree, tally: Tally) -> None:
        self.mechanism = mechanism
        self.reports = [row.reports for row in tally.rows]
        self.channel = channel = ProjectiveGeometryAnalysis(mechanism.channel)
        self.row: Callable[[int], Counts] = cache(lambda at: channel.places(tally.rows[at].cells))
        """The support of each cell of a row, shape (width,)."""

    def find(
        self,
        prior: Prior,
        level: float,
        progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> list[tuple[FoundHead, float]]:
        """The strings that occur, with their p-values, the smallest first.

        Args:
            level: the expected part of the finds that no device has, at most.
            progress: is told how many of how many rows are done.
        """
        of = self.mechanism.levels + 1
        pool = candidates(self.row, self.reports, self.mechanism, prior.logs, progress)
        progress(of - 1, of)
        p, q = float(self.mechanism.p), float(self.mechanism.q)
        heads = [FoundHead(each.head, each.cut) for each in pool]
        seen = map(self.supported, heads)
        values = np.array([p_value(*each, p, q) for each in zip(pool, seen, strict=True)])
        kept = np.flatnonzero(step_up(values) <= level).tolist()
        found = [(heads[at], float(values[at])) for at in kept]
        progress(of, of)
        return sorted(found, key=lambda each: each[1])

    def supported(self, head: FoundHead) -> Supported:
        """The reports that speak of a string, in the rows that do not choose it: its tokens are
        over there, so that its cell is the first of its window."""
        rows = range(head.level, self.mechanism.levels + 1)
        counts = tuple(int(self.row(each)[self.mechanism.base(each, head.head)]) for each in rows)
        return Supported(counts, tuple(int(self.reports[each]) for each in rows))

    def tells(self, head: FoundHead) -> bool:
        """Whether a scheme of this length counts exactly this: another length cuts elsewhere."""
        full = len(head.head) == 2 * self.mechanism.levels
        return full if head.cut else len(head.head) < 2 * self.mechanism.levels


class PrefixTreeAnalysis(Analysis[PrefixTree]):
    """What a tally of discovery says: which strings occur (`DecodedRows`)."""

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        code = self.mechanism
        rows = range(code.levels + 1)
        places = ([code.place(row, item) for item in items] for row in rows)
        channels = [ProjectiveGeometryAnalysis(code.channel)] * len(rows)
        return sample_each_row(channels, places, counts, rng)
