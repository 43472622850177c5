"""Draws: the report that each mechanism makes of a value from given random bytes.

`python tests/client/test_draws.py` computes `client/vectors/draws.json` anew.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from deniable.mechanisms import Memoizing, rebuild
from deniable.memo import draw
from deniable.randomness import Bits, flips, subset
from deniable.wire import pack_columns

VECTORS = Path(__file__).parents[2] / "client" / "vectors"
FILE = VECTORS / "draws.json"

ABOUT = (
    "What is drawn from given random bytes (hexadecimal; a case uses all of them). A draw of n "
    "bits takes ceil(n / 8) bytes, reads them as a little-endian integer, and drops the lowest 8 * "
    "ceil(n / 8) - n bits. reports: the row and the packed columns that a mechanism makes of an "
    "item. With memos, row and memo come from `key` (memory.json) under the fingerprint `scheme`, "
    "and the bytes make the report. subsets: the positions of a random set. flips: the bits that "
    "are 1 after those in `ones` were flipped with the thresholds `if_one` and `if_zero`."
)

SIZES = (
    *((5, 0), (5, 5), (5, 2), (2, 1), (10, 9), (257, 1), (1000, 30), (1000, 36), (1000, 500)),
    *((1000, 999), (4096, 700), (300, 200), (300, 266), (70, 34)),
)

FLIPS = (
    *((5, [0, 2], 6755399441055744, 2251799813685248), (16, [], 1, 1), (3, [1], 2**53 - 1, 1)),
    *((128, [3, 77, 127], 4503599627370496, 2422408970132804), (9, [8], 2**52, 2**51)),
    *((64, [0], 4503599627370497, 1501199875790165), (33, [1, 32], 0, 2**53 - 1)),
)


class Bytes:
    """A source of bits that takes bytes of a stream and remembers how many."""

    def __init__(self, stream: bytes) -> None:
        self.stream, self.used = stream, 0

    def __call__(self, count: int) -> int:
        size = (count + 7) >> 3
        taken = self.stream[self.used : self.used + size]
        assert len(taken) == size
        self.used += size
        return int.from_bytes(taken, "little") >> (8 * size - count)


def stream(*name: Any) -> Bytes:
    """A stream that looks random, of its own for each name."""
    return Bytes(hashlib.shake_128(repr(name).encode()).digest(1 << 16))


def report(case: dict[str, Any], bits: Bits) -> tuple[int, Any]:
    """The row and the packed columns of a case."""
    mechanism = rebuild(case["mechanism"], case["parameters"])
    if isinstance(mechanism, Memoizing):
        row, memo = draw(bytes.fromhex(case["key"]), case["scheme"], mechanism, case["item"])
        made = mechanism.report(row, memo, bits)
    else:
        made = mechanism.randomize(case["item"], bits)
    return made.row, pack_columns(mechanism.rows[made.row], made)


def on(bitmap: int) -> list[int]:
    return [place for place in range(bitmap.bit_length()) if bitmap >> place & 1]


def of(positions: list[int]) -> int:
    return sum(1 << position for position in positions)


def reports() -> list[dict[str, Any]]:
    """Three reports of each item in the vectors of each mechanism."""
    cases = []
    for path in sorted(VECTORS.glob("*.json")):
        if path.name == "transcripts.json":  # a list of devices
            continue
        for known in json.loads(path.read_text(encoding="utf-8")).get("mechanisms", []):
            items = [each["item"] for each in known.get("items", [])]
            for place, item in enumerate(items[:6] * 3):
                case = {"mechanism": path.stem, "parameters": known["parameters"], "item": item}
                name = (path.stem, str(known["parameters"]), place)
                if "lifetime_odds" in known:
                    seed = hashlib.sha256(repr(name).encode())
                    case |= {"key": seed.hexdigest(), "scheme": seed.hexdigest()[:12]}
                bits = stream(*name)
                row, columns = report(case, bits)
                used = bits.stream[: bits.used].hex()
                cases.append({**case, "bytes": used, "row": row, "columns": columns})
    return cases


def take() -> None:
    """Write the file anew."""
    subsets, flipped = [], []
    for size, count in SIZES:
        bits = stream("subset", size, count)
        chosen = on(subset(size, count, bits))
        used = bits.stream[: bits.used].hex()
        subsets.append({"size": size, "count": count, "bytes": used, "positions": chosen})
    for size, ones, if_one, if_zero in FLIPS:
        bits = stream("flips", size, if_one, if_zero)
        heads = on(flips(of(ones), size, if_one, if_zero, bits))
        used = bits.stream[: bits.used].hex()
        case = {"size": size, "ones": ones, "if_one": if_one, "if_zero": if_zero}
        flipped.append({**case, "bytes": used, "heads": heads})
    parts = {"subsets": subsets, "flips": flipped, "reports": reports()}
    lines = [f'{{\n  "about": {json.dumps(ABOUT)}']
    for key, cases in parts.items():
        each = ",\n".join(f"    {json.dumps(case, ensure_ascii=False)}" for case in cases)
        lines.append(f'  "{key}": [\n{each}\n  ]')
    FILE.write_text(",\n".join(lines) + "\n}\n", encoding="utf-8")


CASES: dict[str, Any] = {"subsets": [], "flips": [], "reports": []}
if FILE.exists():
    CASES = json.loads(FILE.read_text(encoding="utf-8"))


def each(kind: str) -> list[Any]:
    return [pytest.param(case, id=f"{kind}-{number}") for number, case in enumerate(CASES[kind])]


@pytest.mark.parametrize("case", each("subsets"))
def test_a_subset_is_drawn_from_the_published_bytes(case: dict[str, Any]) -> None:
    """The published bytes, all of them, give the published set."""
    bits = Bytes(bytes.fromhex(case["bytes"]))
    assert on(subset(case["size"], case["count"], bits)) == case["positions"]
    assert bits.used == len(bits.stream)


@pytest.mark.parametrize("case", each("flips"))
def test_bits_are_flipped_by_the_published_bytes(case: dict[str, Any]) -> None:
    """The published bytes, all of them, give the published bits."""
    bits = Bytes(bytes.fromhex(case["bytes"]))
    heads = flips(of(case["ones"]), case["size"], case["if_one"], case["if_zero"], bits)
    assert on(heads) == case["heads"]
    assert bits.used == len(bits.stream)


@pytest.mark.parametrize("case", each("reports"))
def test_a_report_is_drawn_from_the_published_bytes(case: dict[str, Any]) -> None:
    """The published bytes, all of them, give the published report, which can occur."""
    bits = Bytes(bytes.fromhex(case["bytes"]))
    assert report(case, bits) == (case["row"], case["columns"])
    assert bits.used == len(bits.stream)


def test_all_mechanisms_have_draws() -> None:
    """Each mechanism that has vectors has draws too."""
    known = {
        path.stem
        for path in VECTORS.glob("*.json")
        if "mechanisms" in json.loads(path.read_text(encoding="utf-8"))
    }
    assert {case["mechanism"] for case in CASES["reports"]} == known


if __name__ == "__main__":
    take()
