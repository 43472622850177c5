"""Reading an answer out of a real store: schemes, candidates, and who may have reported again."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from deniable import Registry
from deniable.protocol.mechanisms import Memoizing
from deniable_estimator.asking.fetch import read, select
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.participation import Participation


@pytest.fixture
def current(registry):
    return registry["browser"].scheme


@pytest.fixture
def three_days(fill, make_tally, current):
    """1,000, 2,000 and 4,000 reports on three days."""
    for day, n in (("2026-11-14", 1000), ("2026-11-15", 2000), ("2026-11-16", 4000)):
        cells = np.array([5, 3, 1, 1]) * n // 10
        fill(make_tally(current, n, cells.tolist(), [day]), current)


@pytest.mark.usefixtures("three_days")
def test_candidates_that_an_earlier_scheme_lacks(store, registry, fill, make_scheme, make_tally):
    """An earlier scheme answers for the candidates that it knew, and not at all for none."""
    earlier = make_scheme(2, 1.0, values=["firefox", "netscape"])
    fill(make_tally(earlier, 1000, [600, 400], ["2026-11-13"]), earlier)
    assert (
        read(Reader(store), registry, Query("browser", candidates=["chrome", "firefox"])).n == 8000
    )
    assert read(Reader(store), registry, Query("browser", candidates=["chrome"])).n == 7000
    with pytest.raises(EstimateError, match="netscape"):
        read(Reader(store), registry, Query("browser", candidates=["netscape"]))


LEDGERS = {
    "the metric's": ("", "", 16.0),
    "the registry's": ("lifetime_epsilon = 12.0", "", 12.0),
    "the metric's below the registry's": ("lifetime_epsilon = 20.0", "", 16.0),
    "none with memory": ("", 'longitudinal = "memoize"', None),
    "the registry's with memory": ("lifetime_epsilon = 12.0", 'longitudinal = "memoize"', 12.0),
}


@pytest.mark.parametrize("ledger", LEDGERS)
def test_who_may_have_reported_again(ledger, store, registry, fill, make_tally):
    """Reports by window, the sample rate, and what the ledger allows come with the tallies; a
    change of the ledger is another version of the answer."""
    cap, memory, budget = LEDGERS[ledger]
    text = Path(registry.source).read_text().replace("schema = 1", f"schema = 1\n{cap}")
    text = text.replace("= 16.0", f"= 16.0\n{memory}\nsample_rate = 0.5")
    declared = Registry.parse(text)
    scheme = declared["browser"].scheme
    days = {"2026-11-14": 1000, "2026-11-16": 4000}
    for day, n in days.items():
        fill(make_tally(scheme, n, [n // 4] * 4, [day]), scheme)
    (part,) = select(Reader(store), declared, Query("browser")).read().parts
    mechanism = scheme.mechanism
    cost = mechanism.fresh_epsilon if isinstance(mechanism, Memoizing) else mechanism.epsilon
    assert replace(part.participation, kept=1.0) == Participation(days, 0.5, budget, cost)
    assert read(Reader(store), declared, Query("browser")).devices == pytest.approx(5000 / 1.21)
    last = date(2026, 11, 16)
    (part,) = select(Reader(store), declared, Query("browser", Days(last, last))).read().parts
    assert replace(part.participation, kept=1.0) == Participation(
        {"2026-11-16": 4000}, 0.5, budget, cost
    )
    other = replace(declared, lifetime_epsilon=13.0)
    reader = Reader(store)
    versions = {select(reader, each, Query("browser")).version() for each in (declared, other)}
    assert len(versions) == 2


def test_a_lifetime_of_memos_is_no_budget_of_earlier_reports(
    store, registry, fill, make_tally, current
):
    """Where a metric has memory now, nothing is known of what ended its fresh reports."""
    for day in ("2026-11-14", "2026-11-15"):
        fill(make_tally(current, 100, [50, 30, 10, 10], [day]), current)
    text = Path(registry.source).read_text().replace("= 16.0", '= 16.0\nlongitudinal = "memoize"')
    _, part = select(Reader(store), Registry.parse(text), Query("browser")).read().parts
    assert part.scheme.fingerprint == current.fingerprint
    assert part.participation.most is None
