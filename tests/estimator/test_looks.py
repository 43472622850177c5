"""Windows that are looked at together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimator.schemes import SCHEMES, SIZE

from deniable import Scheme
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.questions.looks import Look, look, look_at_each
from deniable_estimator.questions.reading import Part, Question
from deniable_estimator.statistics.participation import Participation


def question(scheme: Scheme, reports: int, rng: np.random.Generator, label: str) -> Question:
    counts = rng.multinomial(reports, rng.dirichlet(np.ones(SIZE)))
    tally = sample_tally(scheme, counts, rng, window=label)
    return Question((Part(tally, scheme, None, Participation({label: float(reports)})),))


def same(one: Look | None, other: Look | None) -> bool:
    """Whether two looks agree to the last bit."""
    if one is None or other is None:
        return one is other
    arrays = [(one.share, other.share), (one.variance, other.variance)]
    return all(a.tobytes() == b.tobytes() for a, b in arrays) and all(
        getattr(one, name) == getattr(other, name)
        for name in ("label", "n", "scheme", "values", "figures", "moved")
    )


@settings(max_examples=25)
@given(st.data())
def test_windows_together_are_as_each_alone(data: st.DataObject) -> None:
    """Any windows of any schemes, with few reports, many or none, and of two schemes at once, have
    the same look together as each has alone, to the last bit."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    sizes = st.sampled_from([0, 1, 7, 999, 1_000, 20_000])
    asked = []
    for number in range(data.draw(st.integers(0, 6))):
        label = f"2026-11-{number + 1:02}"
        parts = [
            question(scheme, data.draw(sizes), rng, label).parts[0]
            for scheme in data.draw(st.lists(st.sampled_from(SCHEMES), min_size=1, max_size=2))
        ]
        asked.append((label, Question(tuple(parts))))
    labels, questions = [each[0] for each in asked], [each[1] for each in asked]
    found = look_at_each(labels, questions)
    alone = [look(label, each) for label, each in asked]
    assert len(found) == len(alone)
    assert all(map(same, found, alone))
