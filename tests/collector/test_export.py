"""Tallies as a file: what is in it, what it does to a store, and what is no such file."""

import gzip
import hashlib
import json
import random
import zlib
from contextlib import closing, suppress
from unittest.mock import Mock

import pytest

from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.upkeep.archive import ArchiveError, export
from deniable_collector.upkeep.importing import load

from .filling import commit

GOLDEN = """\
{"line":"head","format":"deniable-tallies","version":1,"origin":"eu"}
{"line":"scheme","metric":"m","scheme":"FP","definition":DEFINITION}
{"line":"row","window":"2026-11-20","row":0,"reports":4294967297,"cells":[0,5,4294967296]}
{"line":"row","window":"2026-11-20","row":2,"reports":1,"cells":[0,1]}
{"line":"end","rows":2,"reports":4294967298,"sha256":"SHA"}
"""

SUM = {"line": "sum", "kind": "day", "period": "2026-11", "reports": {"2026-11-20": [1]}}


@pytest.fixture
def target(tmp_path):
    with closing(open_store(Settings(store=f"sqlite:///{tmp_path / 'target.db'}"))) as store:
        yield store


@pytest.fixture
def small(tmp_path, shelf, new_id, noon):
    """A small file, and its lines."""
    with closing(open_store(Settings(store=f"sqlite:///{tmp_path / 'small.db'}"))) as store:
        scheme = shelf(3, 4, 2)
        store.publish([("m", scheme)])
        store.fold(commit(scheme, new_id(), cells={1: 5, 2: 2**32}, reports=2**32 + 1), noon)
        store.fold(commit(scheme, new_id(), row=2), noon)
        path = tmp_path / "small.gz"
        store.identity = lambda: "eu"
        export(store, path)
    return path


def rewrite(path, change):
    """Write a file anew with other lines, and a checksum that fits them."""
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    change(lines)
    *front, end = lines
    text = "".join(json.dumps(line) + "\n" for line in front).encode()
    if "sha256" in end:
        end["sha256"] = hashlib.sha256(text).hexdigest()
    path.write_bytes(gzip.compress(text + json.dumps(end).encode() + b"\n"))


def test_the_format(small, shelf):
    """A file holds exactly these lines: version 1 of the format, which must stay readable."""
    scheme = shelf(3, 4, 2)
    definition = json.dumps(scheme.definition(), separators=(",", ":"))
    text = GOLDEN.replace("FP", scheme.fingerprint).replace("DEFINITION", definition)
    front = text[: text.index('{"line":"end"')]
    text = text.replace("SHA", hashlib.sha256(front.encode()).hexdigest())
    assert gzip.decompress(small.read_bytes()).decode() == text


def cut(whole):
    """A file that was cut off, however short; and one whose text was."""
    text = gzip.decompress(whole)
    yield from (whole[:length] for length in range(len(whole)))
    yield from (gzip.compress(text[:length]) for length in range(0, len(text), 3))


def changed(whole):
    """A file of which a bit has changed, compressed or not: 150 changes drawn with seed 3.

    The bits that fill up the compressed stream's last byte mean nothing, and may change.
    """
    draw, text = random.Random(3), gzip.decompress(whole)
    for _ in range(150):
        each = bytearray(text)
        each[draw.randrange(len(text))] ^= 1 << draw.randrange(8)
        yield gzip.compress(bytes(each))
    for place in range(10, len(whole)):
        each = bytearray(whole)
        each[place] ^= 1 << draw.randrange(8)
        with suppress(OSError, EOFError, zlib.error):
            if gzip.decompress(each) == text:
                continue
        yield each


@pytest.mark.parametrize(
    ("hurt", "words"), [(cut, "too early|holds no tallies|damaged"), (changed, ".")]
)
def test_a_file_that_was_hurt(small, target, noon, hurt, words):
    """Of a file that was cut off, or in which anything changed, nothing is added, and the error
    says what to do."""
    for each in hurt(small.read_bytes()):
        small.write_bytes(each)
        with pytest.raises(ArchiveError, match=words):
            load(small, target, noon)
    with pytest.raises(StoreError, match="no store"):
        target.schemes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[0].update(version=2), "another version of deniable"),
        (lambda lines: lines[0].update(format="others"), "holds no tallies"),
        (lambda lines: lines.pop(0), "holds no tallies"),
        (lambda lines: lines.insert(2, lines[0]), "damaged"),
        (lambda lines: lines.insert(-1, lines[1]), "damaged"),
        (lambda lines: lines.pop(1), "damaged"),
        (lambda lines: lines.insert(2, lines[2]), "damaged"),
        (lambda lines: lines.append(lines[-1]), "damaged"),
        (lambda lines: lines[2].update(row=3), "damaged"),
        (lambda lines: lines[2].update(row=1), "damaged"),
        (lambda lines: lines[2].update(window="yesterday"), "damaged"),
        (lambda lines: lines.insert(2, SUM), r"line 4 \(window\)"),
        (lambda lines: lines[3].update(window="2026-11-19"), r"line 4 \(window\)"),
        (lambda lines: lines[2].update(reports=-1), "damaged"),
        (lambda lines: lines[2].update(cells=[0, 0, 2**53]), r"line 3 .*cells\[2\]"),
        (lambda lines: lines[2].update(cells=[0, 0, 1.5]), r"line 3 .*float.*cells\[2\]"),
        (lambda lines: lines[2].update(reports=True), r"line 3 .*bool.*reports"),
        (lambda lines: lines[3].update(cells=[2, 1]), r"line 4 \(cells: 2 of 1 report\)"),
        (lambda lines: lines[2].update(more=1), "damaged in line 3 .*more"),
        (lambda lines: lines[-1].update(reports=9), "damaged"),
        (lambda lines: lines[1]["definition"].update(mechanism="unheard"), "cannot be read"),
        (lambda lines: lines[1]["definition"]["parameters"].update(widths="3 4 3"), "was changed"),
    ],
)
def test_files_that_make_no_sense(small, target, noon, change, words):
    """A file with a fitting checksum that says what cannot be is refused before anything is
    added: made by another version, or by somebody."""
    rewrite(small, change)
    with pytest.raises(ArchiveError, match=words):
        load(small, target, noon)
    with pytest.raises(StoreError, match="no store"):
        target.schemes()


def test_a_file_is_there_whole_or_not_at_all(target, tmp_path, shelf, new_id, noon):
    """An export that fails in the middle leaves the file that was there, and nothing else."""
    scheme = shelf(3)
    target.publish([("m", scheme)])
    target.fold(commit(scheme, new_id()), noon)
    folder = tmp_path / "exports"
    folder.mkdir()
    path = folder / "x.gz"
    path.write_bytes(b"before")

    target.own_tallies = Mock(side_effect=StoreUnavailable("away"))
    with pytest.raises(StoreUnavailable):
        export(target, path)
    assert [each.name for each in folder.iterdir()] == ["x.gz"]
    assert path.read_bytes() == b"before"
