"""Support counts: the fast decoders agree with the definition, and wrong questions are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from deniable import Scheme
from deniable.mechanisms import HashedProjectiveGeometry
from deniable_collector.tally import Tally
from deniable_estimator.analyses.candidates import support_counts
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.errors import EstimateError


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (["v0", "opera"], "'opera' is not one of the metric's declared values"),
        (["v0", "v1", "v0"], "the list of candidates, line 3: repeats line 1"),
        (["v0", " "], "line 2: is blank"),
        (["v0", "v1\n"], "line 2: holds a control character"),
        (["x" * 1025], "line 1: is longer than 1024 bytes"),
        (["\ud800"], "line 1: is not valid Unicode"),
        ([], "the list of candidates holds no value"),
    ],
)
def test_wrong_candidates(
    candidates: list[str],
    message: str,
    make_scheme: Callable[..., Scheme],
    make_tally: Callable[..., Tally],
) -> None:
    """Unknown, repeated and missing candidates are refused with what to do."""
    scheme = make_scheme(3, 1.0)
    tally = make_tally(scheme, 3, [1, 1, 1])
    for ask in (support_counts, estimate):
        with pytest.raises(EstimateError, match=message):
            ask(tally, scheme, candidates)


def test_candidates_are_found_in_any_spelling(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """Candidates are brought into the form that devices report; two spellings are one candidate."""
    closed = make_scheme(3, 1.0, values=["tea", "caf\u00e9", "milk"])
    answer = estimate(make_tally(closed, 9, [5, 3, 1]), closed, ["cafe\u0301"])
    assert answer.values == ("caf\u00e9",)
    assert answer.share == estimate(make_tally(closed, 9, [5, 3, 1]), closed).share[1]
    salted = Scheme("string", HashedProjectiveGeometry.design("drink", 1.0), ())
    tally = sample_tally(salted, [900], np.random.default_rng(1), values=["caf\u00e9"])
    assert estimate(tally, salted, ["cafe\u0301"]).values == ("caf\u00e9",)
    for scheme, its in ((salted, tally), (closed, make_tally(closed, 9, [5, 3, 1]))):
        with pytest.raises(EstimateError, match="line 2: repeats line 1"):
            estimate(its, scheme, ["caf\u00e9", "cafe\u0301"])


def test_open_domain_needs_candidates(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """A scheme without values is only estimated for candidates."""
    scheme = Scheme("string", make_scheme(3, 1.0).mechanism, ())
    with pytest.raises(EstimateError, match="open"):
        support_counts(make_tally(scheme, 3, [1, 1, 1]), scheme)


def test_wrong_width_is_refused(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """A tally whose rows do not fit the mechanism is not read."""
    scheme = make_scheme(3, 1.0)
    with pytest.raises(EstimateError, match="widths"):
        support_counts(make_tally(scheme, 4, [1, 1, 1, 1]), scheme)
