"""Mutated batches through the intake, beside a second, plain reading of the same rules.

Whatever the bytes, the intake may only do what the plain reader says: refuse the body,
or count exactly the reports that it counts, once. Nothing else may be raised, and the
tallies must equal the plain reader's sums to the last cell.

Run: python tests/collector/fuzzing.py --batches 10000000 [--seed 1]
The bodies of a failure are written to `fuzz-failure.bin`.
"""

from __future__ import annotations

import argparse
import base64
import faulthandler
import gzip
import io
import json
import random
import re
import resource
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deniable import Registry, Scheme, wire
from deniable.mechanisms import Packing, Report, Row
from deniable_collector.batches.batch import Batch
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.batch_reader import BatchReader
from deniable_collector.settings import Settings
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit
from deniable_collector.tally import Tally

__all__ = ["Failure", "fuzz"]

NOW = 1_795_262_400.0
"""2026-11-21 12:00 UTC."""
MAX_REPORTS, MAX_COMPRESSED = 40, 65_536
CHUNK = 1_000
"""Batches between two comparisons of the tallies."""
SECONDS = 300
"""A chunk that takes longer hangs."""
MEGABYTES = 600
"""A process that grows beyond this keeps what it was sent."""

METRICS = """
schema = 1
app = "example"
[defaults]
owner = "tests@acme.example"
expires = 2999-12-31
[metrics.dark_mode]
type = "boolean"
description = "One column of two."
epsilon = 2.0
lifetime_epsilon = 8.0
[metrics.visitor]
type = "boolean"
description = "The same, of a month that may still run."
epsilon = 2.0
lifetime_epsilon = 8.0
window = "month"
aggregate = "first"
answer = "at_once"
[metrics.browser]
type = "category"
description = "Small bitmaps with an exact number of columns."
epsilon = 0.5
lifetime_epsilon = 8.0
values = ["firefox", "chrome", "safari", "edge", "other", "none"]
[metrics.town]
type = "category"
description = "A list of columns."
epsilon = 4.0
lifetime_epsilon = 8.0
values = [{many}]
mechanism = "subset_selection"
[metrics.site]
type = "string"
description = "Cohorts of bitmaps with any number of columns."
epsilon = 2.0
lifetime_epsilon = 8.0
mechanism = "one_time_rappor"
window = "week"
[metrics.word]
type = "string"
description = "Many narrow rows."
epsilon = 2.0
lifetime_epsilon = 8.0
window = "month"
""".replace("{many}", ", ".join(f'"t{number}"' for number in range(300)))

Cell = tuple[str, str, str, int, int]
"""Metric, scheme, window, row and column; column -1 counts the row's reports."""


class MemoryStore(Store):
    """What a store is by its contract, in two dictionaries."""

    def __init__(self) -> None:
        self.cells: Counter[Cell] = Counter()
        self.ids: set[str] = set()
        self._schemes: dict[str, dict[str, Scheme]] = {}

    def clear(self) -> None:
        self.cells.clear()
        self.ids.clear()

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        if seen := self.ids.intersection(commit.ids):
            return frozenset(seen)
        self.ids.update(commit.ids)
        for (tally, row), increment in commit.increments.items():
            self.cells[(*tally, row, -1)] += increment.reports
            for column, count in zip(increment.columns, increment.counts, strict=True):
                if count:
                    assert 0 <= column < increment.width
                    self.cells[(*tally, row, int(column))] += int(count)
        return frozenset()

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        for metric, each in schemes.items():
            self._schemes.setdefault(metric, {}).update({one.fingerprint: one for one in each})

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        return {metric: dict(each) for metric, each in self._schemes.items()}

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        return self._schemes[metric][fingerprint]

    def windows(self, metric: str, scheme: str) -> list[str]:
        return sorted({cell[2] for cell in self.cells if cell[:2] == (metric, scheme)})

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        raise NotImplementedError

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        raise NotImplementedError

    def drop(self, before: float) -> int:
        raise NotImplementedError

    def ping(self) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Body:
    """What is sent."""

    data: bytes
    encoding: str = ""


@dataclass
class Reading:
    """What the plain reader makes of a body: refused, or an id and the cells of good reports."""

    id: str = ""
    reports: list[list[Cell]] = field(default_factory=list)
    refused: bool = False


class Failure(AssertionError):
    """The intake and the plain reader disagree, or something was raised; `bodies` show it."""

    def __init__(self, message: str, bodies: list[Body]) -> None:
        self.bodies = bodies
        super().__init__(message)


class PlainReader:
    """The rules once more, without a thought for speed."""

    def __init__(self, registry: Registry) -> None:
        self._rows: dict[tuple[str, str, str], tuple[Row, ...]] = {}
        for metric in registry:
            for label in _open_windows(metric.window, metric.answer):
                name = (metric.name, metric.scheme.fingerprint, label)
                self._rows[name] = metric.scheme.mechanism.rows

    @property
    def places(self) -> list[tuple[str, str, str]]:
        """Every tally that takes reports now."""
        return list(self._rows)

    def rows(self, place: tuple[str, str, str]) -> tuple[Row, ...]:
        return self._rows[place]

    def read(self, body: Body) -> Reading:
        try:
            data = body.data
            if body.encoding and len(data) > MAX_COMPRESSED:
                raise ValueError
            if body.encoding:
                member = zlib.decompressobj(31)
                data = member.decompress(data)
                if not member.eof or member.unused_data:
                    raise ValueError
            return self._json(data)
        except (ValueError, KeyError, RecursionError, zlib.error):
            return Reading(refused=True)

    def _json(self, data: bytes) -> Reading:
        # docs/protocol.md: what is counted before it is read.
        if data.count(b"{") > MAX_REPORTS + 1 or data.count(b"[") > MAX_REPORTS + 1:
            raise ValueError
        if data.count(b":") > 5 * MAX_REPORTS + 2:
            raise ValueError
        if len(data) > 32_768 and re.search(rb"[0-9]{40}", data):
            raise ValueError
        document = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_never)
        if not isinstance(document, dict) or set(document) != {"batch", "reports"}:
            raise ValueError
        name, reports = document["batch"], document["reports"]
        if not isinstance(name, str) or not re.fullmatch("[0-9a-f]{32}", name):
            raise ValueError
        if not isinstance(reports, list) or len(reports) > MAX_REPORTS:
            raise ValueError
        if data.count(b",") > 16 * MAX_REPORTS and not (
            b"\\" not in data and all(map(_well_typed, reports))
        ):
            raise ValueError
        found = []
        for report in reports:
            try:
                found.append(self._report(report))
            except (ValueError, KeyError, TypeError):
                continue
        return Reading(name, found)

    def _report(self, report: Any) -> list[Cell]:
        if not isinstance(report, dict) or set(report) - {
            *("metric", "scheme", "window", "row", "columns")
        }:
            raise ValueError
        place = (report["metric"], report["scheme"], report["window"])
        rows = self._rows[place]
        row = report.get("row", 0)
        if type(row) is not int or row not in range(len(rows)):
            raise ValueError
        return [(*place, row, column) for column in (-1, *_columns(rows[row], report["columns"]))]


def _open_windows(kind: str, answer: str) -> Iterator[str]:
    """The labels that are accepted NOW: of windows that ended at most six days ago and end within
    the next day, or begin within it if the metric is answered at once."""
    today = datetime.fromtimestamp(NOW, UTC).date()
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
        if opens <= NOW <= after + 6 * 86_400:
            yield label


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)


def _never(name: str) -> Any:
    raise ValueError(name)


def _well_typed(report: Any) -> bool:
    if not isinstance(report, dict) or set(report) - {"row"} != {
        *("metric", "scheme", "window", "columns")
    }:
        return False
    row, columns = report.get("row", 0), report["columns"]
    if not isinstance(columns, str):
        columns = columns if isinstance(columns, list) else [columns]
        if any(type(each) is not int for each in columns):
            return False
    texts = (report["metric"], report["scheme"], report["window"])
    return type(row) is int and row != -1 and all(isinstance(each, str) for each in texts)


def _columns(row: Row, packed: Any) -> list[int]:
    if row.packing is Packing.INDEX:
        columns = [packed]
    elif row.packing is Packing.LIST:
        columns = packed
    else:
        if not isinstance(packed, str) or not re.fullmatch("[A-Za-z0-9_-]*", packed):
            raise ValueError
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), b"-_")
        if len(data) != -(-row.width // 8):
            raise ValueError
        if base64.b64encode(data, b"-_").decode().rstrip("=") != packed:
            raise ValueError
        bits = int.from_bytes(data, "little")
        columns = [place for place in range(8 * len(data)) if bits >> place & 1]
    if not isinstance(columns, list) or any(type(each) is not int for each in columns):
        raise ValueError
    if any(not 0 <= each < row.width for each in columns) or len(set(columns)) != len(columns):
        raise ValueError
    if row.columns is not None and len(columns) != row.columns:
        raise ValueError
    return columns


TOKENS = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"\x00", b"\xff", b"\xed\xa0"),
    *(b"null", b"true", b"NaN", b"Infinity", b"-0", b"1.0", b"1e2", b"01", b"-1", b"+1", b'""'),
    *(b'"row":0,', b'"row":-1,', b'"row":null,', b'"columns":0,', b'"batch":', b'"reports":[],'),
    *(b'"metric":"browser",', b"\\u0022", b'"\\u0072ow":1,', b'"\\ud800"', b"9" * 400),
    *(b"9" * 5_000, b"[" * 3_000, b'{"a":' * 2_000, b"\xef\xbb\xbf", b"18446744073709551616"),
    *(b"9223372036854775807", b"4294967296", b"255", b"65536", b"\x1f\x8b\x08"),
)


class Sender:
    """Makes bodies: good ones, and what is left of them after some accidents."""

    def __init__(self, reader: PlainReader, draw: random.Random) -> None:
        self._reader = reader
        self._draw = draw
        self._places = reader.places
        self._ids: list[str] = []
        self._sent: list[Body] = []
        self._good: list[Body] = []

    def body(self) -> Body:
        draw = self._draw
        if draw.random() < 0.15 or len(self._good) < 10:
            body = self._json()
            self._good.append(body)
            del self._good[:-50]
        else:
            body = self._renamed(draw.choice(self._good))
        if draw.random() < 0.6:
            data = bytearray(body.data)
            for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
                self._hurt(data)
            body = Body(bytes(data))
        if draw.random() < 0.03:
            body = Body(gzip.compress(body.data, 1), "gzip")
            if draw.random() < 0.5:
                data = bytearray(body.data)
                self._hurt(data)
                body = Body(bytes(data), "gzip")
        self._sent.append(body)
        del self._sent[:-20]
        return body

    def _id(self) -> str:
        if self._ids and self._draw.random() < 0.1:
            return self._draw.choice(self._ids)
        self._ids.append(f"{self._draw.getrandbits(128):032x}")
        del self._ids[:-200]
        return self._ids[-1]

    def _renamed(self, body: Body) -> Body:
        """The same reports under another id: making reports takes longer than hurting them."""
        name = self._id().encode()
        data = re.sub(
            rb'(?<="batch":)( ?)"[0-9a-f]{32}"',
            lambda found: found[1] + b'"' + name + b'"',
            body.data,
        )
        return Body(data)

    def _columns(self, row: Row) -> int:
        draw = self._draw
        if row.columns is None:
            return draw.getrandbits(row.width)
        return sum(1 << each for each in draw.sample(range(row.width), row.columns))

    def _json(self) -> Body:
        draw = self._draw
        reports: list[Any] = []
        for _ in range(
            draw.choice((0, 1, 1, 2, 2, 3, 5, 12) if draw.random() < 0.97 else (40, 41))
        ):
            metric, scheme, window = draw.choice(self._places)
            rows = self._reader.rows((metric, scheme, window))
            row = draw.randrange(len(rows))
            report: dict[str, Any] = {"metric": metric, "scheme": scheme, "window": window}
            if row or draw.random() < 0.1:
                report["row"] = row
            columns = Report(row, self._columns(rows[row]))
            report["columns"] = wire.pack_columns(rows[row], columns)
            reports.append(report)
        document: dict[str, Any] = {"batch": self._id(), "reports": reports}
        if draw.random() < 0.3:
            self._twist(document)
        compact = draw.random() < 0.8
        text = json.dumps(
            document,
            separators=(",", ":") if compact else (", ", ": "),
            ensure_ascii=draw.random() < 0.5,
        )
        return Body(text.encode("utf-8", "surrogatepass"))

    def _twist(self, document: dict[str, Any]) -> None:
        """An accident that keeps the JSON whole."""
        draw = self._draw
        odd: tuple[Any, ...] = (
            *(None, True, False, 0, -1, 1.0, 0.5, 2**31, 2**32, 2**64, -(2**63), 10**30),
            *("", "0", "browser", "2026-11-20", "2026-W46", "2026-02-30", "\ud800", "é", []),
            *([0], [[]], [0, 0], [1, 0], {}, {"row": 0}, "A" * 43, "__8", "AA==", "A" * 5_000),
        )
        reports = document["reports"]
        if not reports or draw.random() < 0.15:
            document[draw.choice(("batch", "reports", "extra"))] = draw.choice(odd)
            return
        place = draw.randrange(len(reports))
        report = reports[place]
        kind = draw.random()
        if kind < 0.6:
            report[draw.choice((*report, "row", "columns", "extra"))] = draw.choice(odd)
        elif kind < 0.75:
            report.pop(draw.choice(list(report)))
        elif kind < 0.9:
            other = draw.choice(reports)
            name = draw.choice(("metric", "scheme", "window", "columns"))
            if name in other:
                report[name] = other[name]
        else:
            reports[place] = draw.choice(odd)

    def _hurt(self, data: bytearray) -> None:
        draw = self._draw
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = draw.randrange(256)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + draw.choice((1, 1, 2, 4, 16, 200))]
        elif kind == 4:
            data[at:at] = draw.choice(TOKENS)
        elif kind == 5:
            data[at:at] = data[at : at + draw.choice((1, 2, 8, 64, 300))]
        elif kind == 6 and self._sent:
            other = draw.choice(self._sent).data
            start = draw.randrange(len(other) + 1)
            data[at:] = other[start:]
        elif kind == 7:
            # A number in the JSON becomes another one.
            found = list(re.finditer(rb"\d+", data))
            if found:
                match = draw.choice(found)
                data[match.start() : match.end()] = draw.choice(
                    (b"0", b"1", b"-1", b"7", b"8", b"63", b"64", b"300", b"1e1", b"4294967295")
                )


class Rig:
    """The intake over a store in memory, and the plain reader's sums beside it."""

    def __init__(self) -> None:
        registry = Registry.parse(METRICS)
        self.store = MemoryStore()
        self.intake = Intake(
            registry,
            self.store,
            max_reports=MAX_REPORTS,
            clock=lambda: NOW,
        )
        self.intake.prepare()
        self.batch_reader = BatchReader(self.intake, Settings(max_reports=MAX_REPORTS))
        self.reader = PlainReader(registry)
        self.clear()

    def clear(self) -> None:
        self.store.clear()
        self.cells: Counter[Cell] = Counter()
        self.ids: set[str] = set()

    def take(self, bodies: list[Body]) -> int:
        """Send a group, as one tick of the collector would; how many reports were counted.

        Raises:
            Failure: the intake did anything but what the plain reader did.
        """
        batches, readings = [], []
        for body in bodies:
            reading = self.reader.read(body)
            try:
                batch: Batch | None = self._read(body)
            except IntakeError as error:
                batch = None
                if not 400 <= error.status < 500:
                    raise Failure(f"status {error.status}", [body]) from error
            except Exception as error:
                raise Failure(f"{type(error).__name__}: {error}", [body]) from error
            if (batch is None) != reading.refused:
                verb = "refused" if batch is None else "took"
                raise Failure(f"the intake {verb} what the plain reader did not", [body])
            if batch is not None:
                if (batch.id, len(batch.accepted)) != (reading.id, len(reading.reports)):
                    raise Failure(
                        f"{len(batch.accepted)} reports are good, not {len(reading.reports)}",
                        [body],
                    )
                batches.append(batch)
                readings.append(reading)
        try:
            receipts = self.intake.take(batches)
        except Exception as error:
            raise Failure(f"{type(error).__name__}: {error}", bodies) from error
        total = 0
        for receipt, reading in zip(receipts, readings, strict=True):
            count = len(reading.reports)
            known = reading.id in self.ids
            told = (receipt.batch, receipt.accepted, receipt.duplicate)
            if told != (reading.id, 0 if known else count, count if known else 0):
                raise Failure(f"the receipt says {told}", bodies)
            if count and not known:
                self.ids.add(reading.id)
                self.cells.update(cell for report in reading.reports for cell in report)
                total += count
        return total

    def compare(self, bodies: list[Body]) -> None:
        """Raise Failure unless the tallies are the plain reader's sums."""
        if self.cells != self.store.cells:
            raise Failure("the tallies are not the sum of what was counted", bodies)

    def _read(self, body: Body) -> Batch:
        # As the collector does: by the fast path where that is possible, else in full.
        batch = None if body.encoding else self.intake.read_fast(body.data)
        if batch is not None:
            return batch
        plain = self.batch_reader.decompressed(io.BytesIO(body.data), body.encoding)
        return self.intake.read(plain)


def fuzz(batches: int, seed: int) -> Iterator[tuple[int, int, int]]:
    """Send about so many batches; after each chunk: batches, how many were refused or
    without a good report, and how many reports were counted.

    Raises:
        Failure: with the bodies that show it.
    """
    draw = random.Random(seed)
    rig = Rig()
    sender = Sender(rig.reader, draw)
    sent = empty = counted = 0
    while sent < batches:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        chunk: list[Body] = []
        try:
            while len(chunk) < min(CHUNK, batches - sent):
                group = [sender.body() for _ in range(draw.choice((1, 1, 2, 5, 20)))]
                chunk += group
                before = len(rig.ids)
                counted += rig.take(group)
                empty += len(group) - (len(rig.ids) - before)
            rig.compare(chunk)
        finally:
            faulthandler.cancel_dump_traceback_later()
        rig.clear()
        sent += len(chunk)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MEGABYTES * 1024:
            raise Failure(f"the process has grown beyond {MEGABYTES} MB", [])
        yield sent, empty, counted


def main() -> None:
    """Fuzz from one seed, and say how far it is; several seeds are several processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        for sent, empty, counted in fuzz(options.batches, options.seed):
            print(
                f"{sent:,} batches, {empty:,} without a good report; {counted:,} reports", end="\r"
            )
    except Failure as failure:
        Path("fuzz-failure.bin").write_bytes(b"\n".join(body.data for body in failure.bodies))
        sys.exit(f"seed {options.seed}: {failure}\n" + "\n".join(map(repr, failure.bodies)))


if __name__ == "__main__":
    main()
