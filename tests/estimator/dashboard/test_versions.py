"""Digests of what an answer rests on: equal where the answer is, and nowhere else."""

from __future__ import annotations

from deniable_estimator.dashboard.versions import Listed, digest, digest_of_candidates


def test_lists_of_candidates_have_a_digest_each() -> None:
    """Other strings, another order, another number and no list at all are other digests; a list
    that an operator keeps has that of its strings."""
    lists = [None, [], ["a", "b"], ["b", "a"], ["a", "c"], ["ab"], ["a", "b", ""], ["a\u0308", "b"]]
    digests = [digest_of_candidates(each) for each in lists]
    assert len(set(digests)) == len(lists)
    for each, found in zip(lists, digests, strict=True):
        assert len(found) == 20
        if each is not None:
            assert digest_of_candidates(tuple(each)) == found
            assert Listed(each).digest == digest_of_candidates(Listed(each)) == found


def test_values_have_a_digest_by_their_order_and_type() -> None:
    """Every part counts, in its place."""
    parts = [
        (),
        (1,),
        ("1",),
        (1, 2),
        (2, 1),
        (12,),
        ((1, 2),),
        (None,),
        (b"1",),
        (1.0,),
        ("\ud800",),
    ]
    digests = {digest(*each) for each in parts}
    assert len(digests) == len(parts)
    assert {len(each) for each in digests} == {20}
    assert digest("a", 1) == digest("a", 1)
