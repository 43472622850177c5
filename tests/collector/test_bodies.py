"""Limits on bodies, and strict JSON."""

import gzip
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable_collector.batches.bodies import check_commas, check_counts, decompress, parse
from deniable_collector.refusals import IntakeError

LIMIT = 100_000


def code_of(call, *arguments):
    with pytest.raises(IntakeError) as caught:
        call(*arguments)
    return caught.value.status, caught.value.code


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1, LIMIT])
def test_bodies_up_to_the_limit(size):
    """A body of exactly the limit is read whole; one byte more is too much, however small it was
    made."""
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert decompress(gzip.compress(body), "x-gzip", LIMIT) == body
    packed = gzip.compress(b"x" * (LIMIT + 1))
    assert code_of(decompress, packed, "gzip", LIMIT) == (413, "body-too-large")


def test_a_bomb_is_not_inflated():
    """20 MB in 20 kB stop at the limit: memory stays within a few times of it."""
    bomb = gzip.compress(bytes(20_000_000))
    tracemalloc.start()
    try:
        assert code_of(decompress, bomb, "gzip", LIMIT)[0] == 413
        assert tracemalloc.get_traced_memory()[1] < 10 * LIMIT
    finally:
        tracemalloc.stop()


WHOLE = gzip.compress(b'{"batch": 1}', mtime=0)


@pytest.mark.parametrize(
    "packed",
    [b"", b"plain", WHOLE[:-1], WHOLE[:-9], WHOLE + b"x", WHOLE + WHOLE, zlib.compress(b"{}")],
)
def test_what_is_not_one_gzip_member(packed):
    """Cut, doubled or other data is refused, not half-read."""
    assert code_of(decompress, packed, "gzip", LIMIT) == (400, "not-gzip")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_other_encodings(encoding):
    """Encodings that we do not read are named as the problem."""
    assert code_of(decompress, b"", encoding, LIMIT) == (
        415,
        "unsupported-encoding",
    )


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"1", b"null", b'"text"', b"{}{}", b"\xff\xfe{}", b"\xef\xbb\xbf{}"),
        *(b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1, "a": 1}'),
        *(b'{"a": {"b": 1, "b": 2}}', b'{"a": ' + b"9" * 5000 + b"}", b'{"a": "\xed\xa0\x80"}'),
        *(b'{"a":' * 100_000, b"[" * 500_000, b'{"a": "\n"}', b"{'a': 1}"),
    ],
)
def test_what_is_not_a_json_object(body):
    """Anything but one strict JSON object is refused with the same problem."""
    assert code_of(parse, body) == (400, "not-json")


@pytest.mark.parametrize(
    ("check", "piece", "most", "code"),
    [
        (check_counts, b"{", 11, (413, "too-many-reports")),
        (check_counts, b"[", 11, (400, "malformed-batch")),
        (check_counts, b":", 52, (400, "malformed-batch")),
        (check_counts, b"\\u0061", 10, (400, "malformed-batch")),
        (check_commas, b",", 160, (400, "malformed-batch")),
    ],
)
def test_what_is_counted_before_it_is_parsed(check, piece, most, code):
    """Of a batch of up to ten reports, a body may open ten and itself, and hold five members of
    each; one more is refused, wherever it stands."""
    check(piece * most + b"x" * 1000, 10)
    assert code_of(check, piece * (most + 1), 10) == code


def test_long_numbers_are_refused_where_they_cost_time():
    """40 digits in a row are nothing that a large body needs; in a small one they are a bad report
    like any other."""
    check_counts(b" " * 32_728 + b"1234567890" * 4, 10)
    check_counts(b" " * 90_000 + b"1234567890" * 3 + b"123456789", 10)
    assert code_of(check_counts, b" " * 32_729 + b"1234567890" * 4, 10)[1] == "malformed-batch"


def test_a_problem_does_not_repeat_the_body():
    """What was sent does not come back in an error, which may be logged somewhere."""
    with pytest.raises(IntakeError) as caught:
        parse(b'{"marker": marker}')
    assert "marker" not in str(caught.value)
    assert caught.value.__cause__ is None


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes(body, packed):
    """Any bytes are read or refused as a problem; nothing else escapes."""
    with suppress(IntakeError):
        assert isinstance(parse(decompress(body, "gzip", LIMIT) if packed else body), dict)
