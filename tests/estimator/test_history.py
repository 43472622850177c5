"""Windows against the windows before them, looked at together."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from tests.estimator.schemes import SCHEMES, SIZE

from deniable import Scheme
from deniable.protocol.mechanisms.hashed import HashedProjectiveGeometry
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses import sample_tally
from deniable_estimator.analyses.anomalies import Figure
from deniable_estimator.asking.fetch import Question
from deniable_estimator.asking.history import Look, inspect, look_at_each
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.basis import Part
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.terminal.estimate_command import _history_document as history_document


def _look(label, question):
    (found,) = look_at_each([label], [question])
    return found


def test_reports_are_compared_by_the_stated_formula():
    """Of windows with enough reports, with 7 to 28 before them: first those that do not vary, and
    then any, larger and smaller ones. Fewer reports are no alarm: devices that are offline send
    later."""
    rng = np.random.default_rng(3)
    n = [20_000] * 9 + [500, 999, 1_000, 40_000] + rng.integers(900, 60_000, 30).tolist()
    none = np.zeros(0)
    found = inspect(
        "m", [Look(f"{at:02}", each, "s", (), none, none, ()) for at, each in enumerate(n)]
    )
    assert not any(each.verdict.figures for each in found.windows[:7])
    for place, window in enumerate(found.windows[7:], start=7):
        past = np.array(n[max(0, place - 28) : place], np.float64)
        if n[place] < 1_000:
            assert window.verdict.figures == ()
            continue
        logs, usual, m = np.log(past), (1 / past).mean(), len(past)
        variance = max(logs.var(ddof=1), usual) * (1 + 1 / m) + max(1 / n[place] - usual, 0)
        t = (math.log(n[place]) - logs.mean()) / math.sqrt(variance)
        (figure,) = window.verdict.figures
        assert figure[:3] == ("reports", "s", n[place])
        assert figure.expected == pytest.approx(math.exp(logs.mean()))
        assert figure.p_value == pytest.approx(student(m - 1).sf(t), abs=1e-12)


def test_strings_are_looked_at_undecoded():
    """Of strings that nobody has named the rows and the messages are looked at all the same: 300
    fakes in one row of hashed tables are noticed; seed 6, 20 standard errors."""
    rng = np.random.default_rng(6)
    scheme = Scheme("string", HashedProjectiveGeometry.design("site", 2.0), ())
    tally = sample_tally(scheme, np.array([3000, 1000]), rng, values=["a", "b"], metric="site")
    honest = _look("2026-11-09", question(tally, scheme))
    assert honest.figures
    assert not inspect("site", [honest]).strange
    row = tally.rows[0]
    cells = row.cells.copy()
    cells[5] += 1000
    poisoned = replace(tally, rows=(TallyRow(row.reports + 1000, cells), *tally.rows[1:]))
    bad = _look("2026-11-10", question(poisoned, scheme))
    assert [each.label for each in inspect("site", [honest, bad]).strange] == ["2026-11-10"]


def question(tally, scheme):
    return Question((Part(tally, scheme, None, Participation.evenly(tally)),))


LARGE = Scheme(
    "category", SubsetSelection.design(12, 1.0), tuple(f"v{number}" for number in range(12))
)


def drawn(shares, n, rng, fakes=0):
    """One window of so many honest devices, and of fakes that all push v5: their other columns
    are filled up at random."""
    tally = sample_tally(LARGE, rng.multinomial(n, shares / shares.sum()), rng)
    if fakes:
        (row,) = tally.rows
        chosen = rng.permuted(np.tile(np.delete(np.arange(12), 5), (fakes, 1)), axis=1)
        others = chosen[:, : LARGE.mechanism.k - 1].ravel()
        cells = row.cells + np.bincount(others, minlength=12)
        cells[5] += fakes
        tally = replace(tally, rows=(TallyRow(n + fakes, cells),))
    return tally


def looked(label, tally):
    return _look(label, question(tally, LARGE))


def test_a_window_that_runs_is_compared_with_none():
    """It has the figures of its own tally: what would be a flood at its end is none before. A share
    that triples is what honest devices send after a release: no alarm. Seed 8."""
    rng = np.random.default_rng(8)
    sizes = [20_000] * 12 + [80_000]
    looks = [
        looked(f"2026-11-{day + 10}", drawn(np.array([3 if day == 10 else 1, *[1] * 11]), n, rng))
        for day, n in enumerate(sizes)
    ]
    (strange,) = inspect("m", looks).strange
    assert strange.label == "2026-11-22"
    assert {each.name for each in strange.reasons} == {"reports"}
    found = inspect("m", looks, unfinished={"2026-11-22"})
    assert not found.strange
    own = {each.name for each in looks[-1].figures}
    assert {each.name for each in found.windows[-1].verdict.figures} == own


def test_what_is_not_shown_is_a_measure_and_no_alarm():
    """Windows before those that are shown are compared with, and their own alarms are another
    page's; the figures of the sum are adjusted with those of the windows. Seed 10."""
    rng = np.random.default_rng(10)
    shares = np.full(12, 1 / 12)
    looks = [
        looked(f"2026-11-{number + 10}", drawn(shares, 20_000, rng, 20_000 * (number == 9)))
        for number in range(12)
    ]
    shown = {"2026-11-20", "2026-11-21"}
    found = inspect("m", looks, shown=shown)
    assert {each.label for each in found.windows} == shown
    assert not found.strange
    whole = [Figure("lowest", "s", -0.1, 0.0, 1e-5)]
    alone = inspect("m", looks, shown=shown, whole=whole)
    assert [each.p_adjusted for each in alone.whole.figures] == [pytest.approx(7e-5)]
    last = history_document(alone).frames[0].rows[-1]
    assert last[:3] == ("all windows together", 40_000, "7e-05")
    assert inspect("m", looks).strange[0].label == "2026-11-19"


def made(scheme, reports, rng, label):
    counts = rng.multinomial(reports, rng.dirichlet(np.ones(SIZE)))
    return question(sample_tally(scheme, counts, rng, window=label), scheme)


def test_a_tally_of_another_scheme_is_refused():
    """Rows of other widths than the scheme's are an error that names the metric."""
    rng = np.random.default_rng(1)
    right = made(SCHEMES[0], 2_000, rng, "2026-11-01")
    part = right.parts[0]
    row = part.tally.rows[0]
    tally = replace(part.tally, rows=(replace(row, cells=row.cells[:-1]),))
    with pytest.raises(EstimateError, match="rows of other widths"):
        replace(part, tally=tally)
