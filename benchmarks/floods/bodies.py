"""Bodies that are made to cost a collector more than good ones do, beside the largest good ones.

All of them obey the default limits of bytes. Each is a function of a batch id, because a body that
may be counted is counted once.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from deniable import Metric, Registry
from deniable.protocol import wire
from deniable.protocol.mechanisms import Report

_SIZE = 1 << 20
_REPORTS = 1000


class Body(NamedTuple):
    """What is sent: `make` gives its bytes for a batch id, compressed where `encoding` is gzip."""

    encoding: str
    make: Callable[[str], bytes]


def good(registry: Registry, window: str, noise: Callable[[int], int]) -> dict[str, Body]:
    """The largest good batches of each metric; `noise(bits)` makes up their columns."""
    found = {}
    for metric in registry:
        plain = _json([_report(metric, window, noise) for _ in range(_REPORTS)])
        found[metric.name] = Body("", plain)
    return found


def hostile(registry: Registry, window: str) -> dict[str, Body]:
    """Bodies that cost as much as somebody could make them."""
    metric = next(iter(registry))
    named = {"metric": metric.name, "scheme": metric.scheme.fingerprint, "window": window}
    first = {**named, "columns": 0}
    plain = {
        "empty reports to the limit of bytes": _filled(b"{}"),
        "the same without a batch id": lambda _: b'{"reports":[%b]}' % _items(b"{}"),
        "the same, cut": lambda batch: _filled(b"{}")(batch)[:-1],
        "numbers for reports": _filled(b"1"),
        "texts for reports": _filled(b'""'),
        "lists in lists": _filled(b"[" * 400 + b"]" * 400),
        "objects in objects": _filled(b'{"a":' * 400 + b"1" + b"}" * 400),
        "keys without end": _wrapped(
            b"{" + b",".join(b'"%d":0' % key for key in range(100_000)) + b"}"
        ),
        "reports of a key each": _filled(b'{"a":1}'),
        "smallest reports to the limit": _filled(_dump(dict.fromkeys(named, "") | {"columns": 0})),
        "escapes": _filled(b'"\\u0041"'),
        "numbers of 4,000 digits": _filled(b"1" * 4000),
        "columns of 1,000 digits": _filled(_dump(named)[:-1] + b',"columns":' + b"1" * 1000 + b"}"),
        "columns that are fractions": _filled(
            _dump(named)[:-1] + b',"columns":1.' + b"1" * 1000 + b"}"
        ),
        "a list of columns without end": _wrapped(
            _dump(named)[:-1] + b',"columns":[' + b",".join([b"1"] * 500_000) + b"]}"
        ),
        "1,000 empty reports": _json([{}] * _REPORTS),
        "1,000 unknown metrics": _json([{**first, "metric": f"m{n}"} for n in range(_REPORTS)]),
        "1,000 unknown schemes": _json([{**first, "scheme": f"{n:012x}"} for n in range(_REPORTS)]),
        "1,000 windows that are none": _json(
            [{**first, "window": f"2026-99-{n}"} for n in range(_REPORTS)]
        ),
        "1,000 windows": _json(
            [{**first, "window": f"{1000 + n}-01-01"} for n in range(_REPORTS)]
        ),
        "1,000 wrong rows": _json([{**first, "row": 10**9}] * _REPORTS),
        "1,000 wrong columns": _json([{**first, "columns": "x" * 900}] * _REPORTS),
        "white space": lambda batch: _wrapped(b" " * (_SIZE - 100))(batch),
        "a text without end": _wrapped(b'"' + b"a" * (_SIZE - 100) + b'"'),
        "letters beyond ASCII": _wrapped(b'"' + "é".encode() * (_SIZE // 2 - 100) + b'"'),
        "white space between reports": _wrapped(b",".join([b"{}" + b" " * 900] * 900)),
        "fractions without end": _wrapped(b"[%b]" % b",".join([b"0.%b" % (b"1" * 37)] * 15_900)),
        "escapes without end": _wrapped(b'"%b"' % (b"\\u0061" * 150_000)),
        "bytes that are no JSON": lambda _: b"x" * _SIZE,
    }  # fmt: skip
    found = {name: Body("", make) for name, make in plain.items()}
    found |= {f"{name}, gzip": _compressed(each) for name, each in found.items()}
    found["nothing but Huffman tables"] = Body("gzip", lambda _: tables(_SIZE))
    found["as many tables as are read"] = Body("gzip", lambda _: tables(_SIZE // 16 - 100))
    return found


def tables(size: int) -> bytes:
    """A gzip member of about `size` bytes and of no content: deflate blocks (RFC 1951, 3.2.7) of
    a full Huffman table and the end of the block, over and over."""
    # 226 lengths of 8, 60 of 9 for literals; 2 of 4, 28 of 5 for distances: both are complete.
    lengths = [8] * 226 + [9] * 60 + [4] * 2 + [5] * 28
    order = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
    codes = {16: (0, 1), 4: (0b100, 3), 5: (0b101, 3), 8: (0b110, 3), 9: (0b111, 3)}
    block = [(0, 1), (2, 2), (29, 5), (29, 5), (len(order) - 1 - 4 - 3, 4)]
    block += [(codes.get(each, (0, 0))[1], 3) for each in order[:-4]]
    for symbol, extra in _runs(lengths):
        code, bits = codes[symbol]
        block.append((int(f"{code:0{bits}b}"[::-1], 2), bits))
        if symbol == 16:
            block.append((extra - 3, 2))
    # The end of a block, 256: the 31st of the codes with 9 bits.
    block.append((int(f"{226 * 2 + 30:09b}"[::-1], 2), 9))
    number = place = 0
    for value, bits in block:
        number |= value << place
        place += bits
    # Blocks follow each other bit by bit: eight of them fill whole bytes.
    eight = sum(number << place * each for each in range(8)).to_bytes(place, "little")
    body = eight * (size // place) + b"\x03\0"
    return gzip.compress(b"")[:10] + body + struct.pack("<II", 0, 0)


def _runs(lengths: list[int]) -> Iterator[tuple[int, int]]:
    """The lengths as symbols, where 16 repeats the one before 3 to 6 times."""
    place = 0
    while place < len(lengths):
        same = 1
        while place + same < len(lengths) and lengths[place + same] == lengths[place]:
            same += 1
        yield lengths[place], 0
        left = same - 1
        while left >= 3:
            part = min(6, left) if left not in (7, 8) else left - 3
            yield 16, part
            left -= part
        for _ in range(left):
            yield lengths[place], 0
        place += same


def _report(metric: Metric, window: str, noise: Callable[[int], int]) -> dict[str, object]:
    report = _columns(metric, noise)
    packed = wire.pack_columns(metric.scheme.mechanism.rows[report.row], report)
    named = {"metric": metric.name, "scheme": metric.scheme.fingerprint, "window": window}
    return {**named, "row": report.row, "columns": packed}


def _columns(metric: Metric, noise: Callable[[int], int]) -> Report:
    rows = metric.scheme.mechanism.rows
    number = noise(30) % len(rows)
    row = rows[number]
    if row.columns == 1:
        return Report(number, noise(30) % row.width)
    if row.columns is None:
        return Report(number, noise(row.width))
    columns = 0
    first = noise(30)
    for each in range(row.columns):
        columns |= 1 << (first + each) % row.width
    return Report(number, columns)


def _dump(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _wrapped(reports: bytes) -> Callable[[str], bytes]:
    return lambda batch: b'{"batch":"%b","reports":[%b]}' % (batch.encode(), reports)


def _items(item: bytes) -> bytes:
    return b",".join([item] * ((_SIZE - 60) // (len(item) + 1)))


def _filled(item: bytes) -> Callable[[str], bytes]:
    return _wrapped(_items(item))


def _json(reports: list[dict[str, object]]) -> Callable[[str], bytes]:
    return _wrapped(_dump(reports)[1:-1])


def _compressed(body: Body) -> Body:
    return body._replace(encoding="gzip", make=lambda batch: gzip.compress(body.make(batch), 6))
