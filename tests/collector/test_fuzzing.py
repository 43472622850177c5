"""Damaged batches through the intake, beside a second, plain reading of the same rules.

Whatever the bytes, the intake may only do what the plain reader says: refuse the body,
or count exactly the reports that it counts, once. Nothing else may be raised, and the
tallies must equal the plain reader's sums to the last cell.
"""

import base64
import gzip
import json
import random
import re
import zlib
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable.protocol import wire
from deniable.protocol.mechanisms import Packing, Report
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.batch_reader import BatchReader
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store

MAX_REPORTS, MAX_COMPRESSED = 40, 65_536

METRICS = declared(
    dark_mode={"type": "boolean"},
    visitor={"type": "boolean", "window": "month", "aggregate": "first", "answer": "at_once"},
    browser={"type": "category", "values": ["firefox", "chrome", "safari", "edge", "other", "no"]},
    town={"type": "category", "values": [f"t{number}" for number in range(300)],
          "mechanism": "subset_selection"},
    site={"type": "string", "mechanism": "one_time_rappor", "window": "week"},
    word={"type": "string", "window": "month"},
)  # fmt: skip
"""One column of two, of days and of an open month; small bitmaps; lists; cohorts; narrow rows."""


class PlainReader:
    """The rules once more, without a thought for speed."""

    def __init__(self, registry, now):
        self.places = {
            (metric.name, metric.scheme.fingerprint, label): metric.scheme.mechanism.rows
            for metric in registry
            for label in open_windows(metric.window, metric.answer, now)
        }

    def read(self, data, encoding):
        """The id and the cells of each good report, or None if the body is refused; column -1
        counts the row's reports."""
        try:
            if encoding:
                need(len(data) <= MAX_COMPRESSED)
                member = zlib.decompressobj(31)
                data = member.decompress(data)
                need(member.eof and not member.unused_data)
            return self._json(data)
        except (ValueError, KeyError, RecursionError, zlib.error):
            return None

    def _json(self, data):
        # docs/reference/protocol.md: what is counted before it is read.
        need(data.count(b"{") <= MAX_REPORTS + 1 and data.count(b"[") <= MAX_REPORTS + 1)
        need(data.count(b":") <= 5 * MAX_REPORTS + 2)
        need(len(data) <= 32_768 or not re.search(rb"[0-9]{40}", data))
        document = json.loads(data.decode(), object_pairs_hook=once, parse_constant=never)
        need(isinstance(document, dict) and set(document) == {"batch", "reports"})
        name, reports = document["batch"], document["reports"]
        need(isinstance(name, str) and re.fullmatch("[0-9a-f]{32}", name))
        need(isinstance(reports, list) and len(reports) <= MAX_REPORTS)
        if data.count(b",") > 16 * MAX_REPORTS:
            need(b"\\" not in data and all(map(well_typed, reports)))
        found = []
        for report in reports:
            try:
                found.append(self._report(report))
            except (ValueError, KeyError, TypeError):
                continue
        return name, found

    def _report(self, report):
        need(isinstance(report, dict))
        need(not set(report) - {"metric", "scheme", "window", "row", "columns"})
        place = (report["metric"], report["scheme"], report["window"])
        rows, row = self.places[place], report.get("row", 0)
        need(type(row) is int and row in range(len(rows)))
        return [(*place, row, column) for column in (-1, *columns_of(rows[row], report["columns"]))]


def need(condition):
    if not condition:
        raise ValueError


def open_windows(kind, answer, now):
    """The labels that are accepted now: of windows that ended at most six days ago and end within
    the next day, or begin within it if the metric is answered at once."""
    today = datetime.fromtimestamp(now, UTC).date()
    days = {}
    for number in range(-80, 80):
        each = today + timedelta(number)
        year, week, _ = each.isocalendar()
        label = {"day": each.isoformat(), "week": f"{year}-W{week:02}"}.get(kind)
        days.setdefault(label or f"{each.year}-{each.month:02}", []).append(each)
    for label, mine in days.items():
        first, after = (
            datetime(each.year, each.month, each.day, tzinfo=UTC).timestamp()
            for each in (mine[0], mine[-1] + timedelta(1))
        )
        opens = (first if answer == "at_once" else after) - 86_400
        if opens <= now <= after + 6 * 86_400:
            yield label


def once(pairs):
    need(len({key for key, _ in pairs}) == len(pairs))
    return dict(pairs)


def never(name):
    raise ValueError(name)


def well_typed(report):
    names = {"metric", "scheme", "window", "columns"}
    if not isinstance(report, dict) or set(report) - {"row"} != names:
        return False
    row, columns = report.get("row", 0), report["columns"]
    if not isinstance(columns, str):
        columns = columns if isinstance(columns, list) else [columns]
        if any(type(each) is not int for each in columns):
            return False
    texts = (report["metric"], report["scheme"], report["window"])
    return type(row) is int and row != -1 and all(isinstance(each, str) for each in texts)


def columns_of(row, packed):
    if row.packing is Packing.BITMAP:
        need(isinstance(packed, str) and re.fullmatch("[A-Za-z0-9_-]*", packed))
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), b"-_")
        need(len(data) == -(-row.width // 8))
        need(base64.b64encode(data, b"-_").decode().rstrip("=") == packed)
        bits = int.from_bytes(data, "little")
        columns = [place for place in range(8 * len(data)) if bits >> place & 1]
    else:
        columns = packed if row.packing is Packing.LIST else [packed]
    need(isinstance(columns, list) and all(type(each) is int for each in columns))
    need(all(0 <= each < row.width for each in columns) and len(set(columns)) == len(columns))
    need(row.columns in (None, len(columns)))
    return columns


TOKENS = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\x00", b"\xff", b"\xed\xa0", b"255"),
    *(b"null", b"true", b"NaN", b"-0", b"1.0", b"1e2", b"01", b"-1", b"+1", b'""', b"9" * 400),
    *(b'"row":0,', b'"row":-1,', b'"columns":0,', b'"batch":', b'"metric":"browser",'),
    *(b'"\\u0072ow":1,', b'"\\ud800"', b"9" * 5_000, b"[" * 3_000, b'{"a":' * 2_000, b"4294967296"),
)
ODD = (
    *(None, True, False, 0, -1, 1.0, 2**31, 2**64, -(2**63), 10**30),
    *("", "0", "browser", "2026-W46", "2026-02-30", "\ud800", "é", "A" * 43, "AA==", "A" * 5_000),
    *([], [0], [[]], [0, 0], [1, 0], {}),
)


class Sender:
    """Makes bodies: good ones, and what is left of them after some accidents."""

    def __init__(self, reader, draw):
        self._reader, self._draw = reader, draw
        self._ids, self._last = ["0" * 32], b""

    def body(self):
        """The bytes and their encoding."""
        draw = self._draw
        document = {"batch": self._id(), "reports": self._reports()}
        if draw.random() < 0.3:
            self._twist(document)
        spaces = draw.choice([(",", ":"), (", ", ": ")])
        text = json.dumps(document, separators=spaces, ensure_ascii=draw.random() < 0.5)
        data = bytearray(text.encode("utf-8", "surrogatepass"))
        for _ in range(draw.choice((0, 0, 1, 1, 2, 8))):
            self._hurt(data)
        self._last, encoding = bytes(data), ""
        if draw.random() < 0.05:
            data, encoding = bytearray(gzip.compress(data, 1)), "gzip"
            if draw.random() < 0.5:
                self._hurt(data)
        return bytes(data), encoding

    def _id(self):
        if self._draw.random() >= 0.1:
            self._ids.append(f"{self._draw.getrandbits(128):032x}")
        return self._draw.choice(self._ids[-20:])

    def _reports(self):
        draw, reports = self._draw, []
        for _ in range(draw.choice((0, 1, 1, 2, 3, 5, 12, draw.choice((5, 40, 41))))):
            place = draw.choice(list(self._reader.places))
            rows = self._reader.places[place]
            row = draw.randrange(len(rows))
            some, width = rows[row].columns, rows[row].width
            columns = draw.getrandbits(width)
            if some is not None:
                columns = sum(1 << each for each in draw.sample(range(width), some))
            packed = wire.pack_columns(rows[row], Report(row, columns))
            report = dict(zip(("metric", "scheme", "window"), place, strict=True))
            reports.append({**report, **({"row": row} if row else {}), "columns": packed})
        return reports

    def _twist(self, document):
        """An accident that keeps the JSON whole."""
        draw, reports = self._draw, document["reports"]
        if not reports or draw.random() < 0.15:
            document[draw.choice(("batch", "reports", "extra"))] = draw.choice(ODD)
            return
        report, kind = draw.choice(reports), draw.random()
        if kind < 0.6:
            report[draw.choice((*report, "row", "columns", "extra"))] = draw.choice(ODD)
        elif kind < 0.8:
            del report[draw.choice(list(report))]
        else:
            name = draw.choice(("metric", "scheme", "window", "columns"))
            report[name] = draw.choice(reports).get(name)

    def _hurt(self, data):
        draw = self._draw
        at, kind = draw.randrange(len(data) + 1), draw.randrange(6)
        size = draw.choice((1, 1, 2, 4, 16, 200))
        if kind == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[at : at + size]
        elif kind == 2:
            data[at:at] = draw.choice(TOKENS)
        elif kind == 3:
            data[at:at] = data[at : at + size]
        elif kind == 4:
            data[at:] = self._last[at:]
        elif numbers := list(re.finditer(rb"\d+", data)):
            first, last = draw.choice(numbers).span()
            data[first:last] = draw.choice((b"0", b"1", b"-1", b"8", b"63", b"64", b"300", b"1e1"))


@pytest.mark.parametrize(
    ("number", "seed"), [(500, 1), pytest.param(50_000, 2, marks=pytest.mark.campaign)]
)
def test_damaged_batches_are_counted_as_the_plain_reader_counts_them(tmp_path, noon, number, seed):
    """Of so many bodies, good and hurt, exactly the good reports are counted, once. It stays, as no
    other test says so much."""
    draw, registry = random.Random(seed), Registry.parse(METRICS)
    reader = PlainReader(registry, noon)
    sender = Sender(reader, draw)
    truth, known, refused = Counter(), set(), 0
    with closing(open_store(Settings(store=f"sqlite:///{tmp_path / 'store.db'}"))) as store:
        intake = Intake(registry, store, max_reports=MAX_REPORTS, clock=lambda: noon)
        intake.prepare()
        bodies = BatchReader(intake, Settings(max_reports=MAX_REPORTS))

        def read(data, encoding):
            headers = {b"content-type": b"application/json", b"content-encoding": encoding.encode()}
            return bodies.expect(headers).read(data, True).batch

        for _ in range(number // 20):
            batches, readings = [], []
            for body in (sender.body() for _ in range(20)):
                found = reader.read(*body)
                if found is None:
                    with pytest.raises(IntakeError) as caught:
                        read(*body)
                    assert 400 <= caught.value.status < 500
                    refused += 1
                    continue
                batch = read(*body)
                assert (batch.id, len(batch.accepted)) == (found[0], len(found[1])), body
                batches.append(batch)
                readings.append(found[1])
            receipts = intake.take(batches)
            for batch, reports, receipt in zip(batches, readings, receipts, strict=True):
                new = batch.id not in known
                told = (len(reports), 0) if new else (0, len(reports))
                assert (receipt.accepted, receipt.duplicate) == told
                if reports and new:
                    known.add(batch.id)
                    truth.update(cell for report in reports for cell in report)
        for place in reader.places:
            for number_of, row in enumerate(store.tally(*place[:2], [place[2]]).rows):
                assert row.reports == truth.pop((*place, number_of, -1), 0)
                for column in np.flatnonzero(row.cells).tolist():
                    assert row.cells[column] == truth.pop((*place, number_of, column))
    assert not truth
    # Good and bad ones both, or nothing was tried.
    assert 0.1 * number < refused < 0.9 * number
    assert len(known) > 0.2 * number
