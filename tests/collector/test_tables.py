"""The tables of docs/ name what the collector says: reasons, codes and events."""

import re
from pathlib import Path

from deniable_collector.batches.batch import REASONS
from deniable_collector.refusals import PROBLEMS

ROOT = Path(__file__).parents[2]
PROTOCOL, SETTINGS = (
    (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    for name in ("protocol.md", "settings.md")
)


def table(text, head):
    """The rows of the table with this head, each as its cells."""
    rows = text.partition(f"{head}\n")[2].partition("\n\n")[0].splitlines()[1:]
    return [row.strip("| ").split(" | ") for row in rows]


def words(cell):
    return re.findall("`([^`]+)`", cell)


def test_reasons_and_codes():
    """Each reason of a rejected report and each problem with its status is in the protocol."""
    assert [words(row[0]) for row in table(PROTOCOL, "| reason | the report ... |")] == [
        [each] for each in REASONS
    ]
    rows = table(PROTOCOL, "| status | code | what to do |")
    told = {(code, status) for statuses, codes, *_ in rows for code in words(codes)
            for status in statuses.split(", ")}  # fmt: skip
    assert told >= {(code, str(each.status)) for code, each in PROBLEMS.items()}
    assert {code for code, _ in told} == PROBLEMS.keys()


def test_events():
    """Each event that the product tells has its level in the table, and no other is there."""
    told = set()
    for path in (ROOT / "collector" / "deniable_collector").rglob("*.py"):
        found = re.findall(r'tell\(\s*"(\w+)",\s*"([a-z-]+)"', path.read_text(encoding="utf-8"))
        told |= {(event, level) for level, event in found}
    rows = table(SETTINGS, "| event | level | when | members |")
    assert told <= {(words(event)[0], level) for event, level, *_ in rows}
