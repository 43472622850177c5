"""Which pairs of bytes may follow a prefix."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deniable.mechanisms.prefix_code import ALPHABETS
from deniable_estimator.analyses.discovery.letters import BETWEEN, DEAD, ENDED, steps


def state(data: bytes, alphabet: str) -> int:
    """The state after bytes, two at a time."""
    now, allowed = BETWEEN, steps(alphabet)
    for at in range(0, len(data), 2):
        now = int(allowed[now, int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")])
        if now == DEAD:
            break
    return now


def is_beginning(data: bytes) -> bool:
    """Whether some UTF-8 text begins with these bytes, by Python's decoder."""
    if is_text(data):
        return True
    return any(
        is_text(data + rest)
        for rest in (b"\x80", b"\xa0", b"\x80\x80", b"\xa0\x80", b"\x90\x80\x80", b"\x80\x80\x80")
    )


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


pieces = st.one_of(st.text(max_size=3).map(lambda text: text.encode("utf-8", "ignore")),
                   st.binary(max_size=4))  # fmt: skip


@given(st.lists(pieces, max_size=3).map(b"".join))
@example(b"\xed\xa0")
@example(b"\xf4\x90")
@example(b"\xe0\x80")
@example(b"\xf0\x8f")
@example(b"\xc0\x80")
def test_all_utf8_and_nothing_else(data: bytes) -> None:
    """Bytes lead on if and only if UTF-8 text without control characters of ASCII begins so."""
    data = data.replace(b"\0", b"")
    data = data[: len(data) // 2 * 2]
    allowed = is_beginning(data) and not set(data) - set(ALPHABETS["bytes"])
    assert (state(data, "bytes") != DEAD) == allowed


@given(st.text(min_size=1, max_size=9))
def test_a_whole_string_ends(text: str) -> None:
    """Text that fits the alphabet leads to the end, and stays there."""
    data = text.encode("utf-8", "ignore")
    if set(data) - set(ALPHABETS["bytes"]):
        return
    padded = data + b"\0" * (2 + len(data) % 2)
    assert state(padded, "bytes") == ENDED
    assert state(padded + b"\0\0", "bytes") == ENDED
    assert state(padded + b"a\0", "bytes") == DEAD


@pytest.mark.parametrize("alphabet", sorted(set(ALPHABETS) - {"bytes"}))
def test_named_alphabets(alphabet: str) -> None:
    """A named alphabet takes pairs of its letters, and no others."""
    letters = set(ALPHABETS[alphabet])
    for one in range(1, 256):
        assert (state(bytes([one, one]), alphabet) == BETWEEN) == (one in letters)
        assert (state(bytes([one, 0]), alphabet) == ENDED) == (one in letters)
