"""What `auto` takes: subset selection while its reports are short, then projective geometry."""

import pytest

from deniable.protocol.mechanisms import design
from deniable.protocol.mechanisms.choice import (
    MAX_REPORT_BYTES,
    choose,
    loss,
)
from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection


def test_auto_takes_what_is_chosen():
    """What `choose` takes is what `design` builds, and never a mechanism for comparison."""
    for size in (2, 17, 1024, 2049, 4000, 10**5):
        for epsilon in (0.2, 1.0, 3.0, 8.0):
            chosen = design("auto", size, epsilon)
            taken = choose(size, epsilon)[0]
            assert type(chosen) is type(taken)
            assert chosen.parameters() == taken.parameters()
            assert isinstance(chosen, (SubsetSelection, ProjectiveGeometry))
            assert chosen.rows[0].report_bytes <= MAX_REPORT_BYTES


@pytest.mark.parametrize(
    ("size", "epsilon", "name", "reason"),
    [
        (10, 1.0, "subset_selection", "subset selection has the least possible error, and a report "
         "of 2 bytes is within 256"),
        (2048, 0.5, "subset_selection", "subset selection has the least possible error, and a "
         "report of 256 bytes is within 256"),
        (2049, 0.5, "projective_geometry", "subset selection would need 257 bytes a report, above "
         "256; projective geometry needs 2 and loses little"),
        (10**5, 1.0, "projective_geometry", "subset selection would need 12,500 bytes a report, "
         "above 256; projective geometry needs 3 and loses little"),
    ],
)  # fmt: skip
def test_a_reason_has_the_bytes_of_a_report(size, epsilon, name, reason):
    """A report of 256 bytes is accepted and one of 257 is not, and the reason says so."""
    taken, why = choose(size, epsilon)
    assert (taken.name, why) == (name, reason)


HERE, THERE = MemoizedSubsetSelection.name, MemoizedLocalHashing.name
KEPT = "subset selection of a memo has {} times the least possible variance, in {} a report"
LONG = (
    "subset selection of a memo would need 257 bytes a report, above 256; cohort local hashing "
    "needs 1"
)
SHORT = (
    "under lifetime epsilon {} subset selection of a memo would have {} times the least variance; "
    "cohort local hashing loses less"
)


@pytest.mark.parametrize(
    ("size", "epsilon", "lifetime", "name", "reason"),
    [
        (2, 1.0, 2.0, HERE, KEPT.format(1, "1 byte")),
        # More than hashing loses, and little.
        (400, 1.0, 5.0, HERE, KEPT.format(1.02, "50 bytes")),
        # Much, and less than hashing.
        (20, 1.0, 2.0, HERE, KEPT.format(1.14, "2 bytes")),
        (2048, 1.0, 8.0, HERE, KEPT.format(1, "256 bytes")),
        (2049, 1.0, 8.0, THERE, LONG),
        (500, 1.0, 5.0, THERE, SHORT.format(5, 1.09)),
        (20, 1.0, 1.5, THERE, SHORT.format(1.5, 1.41)),
    ],
)
def test_what_is_taken_with_memory_is_explained(size, epsilon, lifetime, name, reason):
    """Subset selection, if its report is short and it loses at most 5%, or no more than hashing;
    the reason has the loss and the bytes, and what is built is what it names."""
    built, why = choose(size, epsilon, lifetime, salt="city")
    assert (built.name, why) == (name, reason)
    assert built.require_within(epsilon, lifetime) is built
    least = SubsetSelection.design(size, epsilon)
    bound = least.total_variance(size)
    assert loss(built, size, epsilon) == float(built.total_variance(size) / bound)
