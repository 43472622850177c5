"""Batch ids in stores: for how long they are kept, and what they are called.

That no moment of a term forgets one is in `tests/contract/test_store.py`.
"""

import pytest

from deniable_collector.stores import ids
from deniable_collector.stores.commits import Commit

SEED = bytes(range(16))
DAY = 86_400.0


def test_an_id_has_the_shortest_term_that_suffices():
    """Every id is remembered for 8 days, and one that needs more for 14 or 38; nothing can be
    stored of one that needs more."""
    needed = {0: 0, 8 * DAY: 0, 8 * DAY + 1: 1, 14 * DAY: 1, 14 * DAY + 1: 2, 38 * DAY: 2}
    asked = dict(zip("abcdef", needed, strict=True))
    assert ids.terms_of(Commit(tuple(asked), {}, 0, asked)) == list(needed.values())
    assert ids.terms_of(Commit(("a", "b"), {})) == [0, 0]
    (none,) = ids.terms_of(Commit(("a",), {}, 0, {"a": 38 * DAY + 1}))
    with pytest.raises(IndexError):
        ids.generation_at(0.0, none)


def test_levels_grow_sixteenfold():
    """The first level takes 64 ids for each of its 4,096 slots, each next one 16 times as many,
    and the deepest has no end."""
    limits = [64 * 16**exponent for exponent in range(3, 8)]
    assert ids.level_of(0) == 0
    for level, limit in enumerate(limits):
        assert ids.level_of(limit - 1) == level
        assert ids.level_of(limit) == level + 1
    assert ids.level_of(10**15) == ids.DEEPEST == 5


def test_names_stay():
    """Slots and tags of ids, which stores keep, stay those of earlier versions: for each byte of an
    id a random word, drawn from the seed, and all xored. Ids do not depend on others."""
    chosen = ["00" * 16, "ff" * 16, "000102030405060708090a0b0c0d0e0f", "f" + "0" * 31]
    slots = "f9c789e1a8d137f0aac4159cc9e74ff0"
    tags = "7407b8d1695a619428718ab919faceb3714a15a96f0f19c40dcb930870442f2a"
    assert ids.name(chosen, SEED) == (slots, bytes.fromhex(tags))
    assert ids.name([], SEED) == ("", b"")
    alone = [ids.name([each], SEED) for each in chosen]
    assert "".join(each.slots for each in alone) == slots
    assert ids.name(chosen[:1], SEED[::-1]) != alone[0]
