"""Documents, ledgers, stores and files that are not what they should be."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from deniable_estimator.questions.reading import Question
from deniable_estimator.releasing.manifest import (
    ManifestError,
    make_key,
    private_key,
    public_key,
    signed,
    verify,
)
from deniable_estimator.releasing.manifest import document as make_document

from .conftest import Run, document

CHANGED = [
    ("epsilon", 1),
    ("epsilon", "1"),
    ("delta", "x"),
    ("reports", "many"),
    ("windows", None),
    ("where", []),
    ("metric", 3),
]


@pytest.mark.parametrize(("key", "value"), CHANGED)
def test_a_manifest_of_other_kinds_is_refused_in_words(
    run: Run, tmp_path: Path, key: str, value: object
) -> None:
    """Verifying a stranger's document never ends in a Python error."""
    found = document(run("browser --json"))
    found["manifest"][key] = value  # type: ignore[index]
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(found))
    refused = run(f"verify {file}")
    assert refused.exit_code == 1
    assert "the manifest is not whole" in refused.output
    assert isinstance(refused.exception, SystemExit)


def test_what_no_digest_covers_is_refused(run: Run, tmp_path: Path) -> None:
    """Neither a second object of the same name, of which a reader may take the first, nor a further
    one beside the manifest passes."""
    text = run("browser --json").stdout
    file = tmp_path / "changed.json"
    for more in ('"data": {"columns": [], "rows": []},', '"note": "reviewed",'):
        file.write_text(text.replace("{", "{" + more, 1))
        refused = run(f"verify {file}")
        assert refused.exit_code == 1
        assert "no document of a release" in refused.output


@pytest.mark.parametrize("charge", ["{}", "no JSON", "3"])
def test_a_damaged_ledger_is_named(run: Run, tmp_path: Path, charge: str) -> None:
    """A charge that cannot be read refuses all releases, in words."""
    document(run("browser --json"))
    with sqlite3.connect(tmp_path / "releases.sqlite") as opened:
        opened.execute("UPDATE releases SET charge = ?", (charge,))
    opened.close()
    for text in ("list", "browser --json", "dark_mode --json"):
        refused = run(text)
        assert refused.exit_code == 1
        assert "is damaged" in refused.output
        assert isinstance(refused.exception, SystemExit)


def test_a_document_that_the_disk_changed_is_not_handed_out(run: Run, tmp_path: Path) -> None:
    """The same command finds the release in the ledger, whose numbers are not those of its manifest
    any more: it prints nothing of it, and signs nothing."""
    document(run("browser --json"))
    with sqlite3.connect(tmp_path / "releases.sqlite") as opened:
        opened.execute("UPDATE releases SET document = replace(document, 'firefox', 'firefix')")
    opened.close()
    refused = run("browser --json")
    assert refused.exit_code == 1
    assert "is not as it was written" in refused.output
    assert refused.stdout == ""


def test_a_signed_document_with_one_byte_changed_never_verifies(tmp_path: Path) -> None:
    """Each byte is changed in three ways: it is refused, or it says the same as before, as with
    another space between two keys."""
    private = tmp_path / "release.pem"
    public = public_key(make_key(private))
    csv = b"value,estimate\r\nfirefox,0.1\r\n"
    manifest = {"deniable_release": 1, "metric": "m\u00e9", "epsilon": 0.5, "reports": 20_000}
    data = {"columns": ["value", "estimate"], "rows": [["firefox", 0.1], ["x", None], ["y", -0.0]]}
    text = signed(make_document(manifest, data, csv.decode()), private_key(private)).encode()
    told = verify(text, csv, public)
    passed = 0
    for place, byte in enumerate(text):
        for other in {byte ^ 1, byte ^ 32, ord("0")} - {byte}:
            changed = text[:place] + bytes([other]) + text[place + 1 :]
            try:
                found = verify(changed, csv, public)
            except ManifestError:
                continue
            passed += 1
            assert found == told
            assert json.loads(changed)["data"] == data
    assert passed < len(text) / 4
    for cut in range(len(text) - 1):
        with pytest.raises(ManifestError):
            verify(text[:cut], None, public)


def test_a_window_that_cannot_be_read_is_not_left_out_silently(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest would name a window that the sum lacks, so nothing is released."""
    monkeypatch.setattr(Question, "unreadable", property(lambda question: ("2026-01-06",)))
    refused = run("browser --json")
    assert refused.exit_code == 1
    assert "window 2026-01-06 cannot be read now" in refused.output


def test_a_pipe_is_written_to_and_stays_one(run: Run, tmp_path: Path) -> None:
    """--out never replaces a device or a pipe, like /dev/stdout, by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told: list[str] = []
    reader = threading.Thread(target=lambda: told.append(pipe.read_text()), daemon=True)
    reader.start()
    assert run(f"browser --csv --out {tmp_path / 'table.csv'}").exit_code == 0
    done = run(f"browser --out {pipe}")
    assert done.exit_code == 0, done.output
    reader.join(10)
    assert pipe.is_fifo()
    assert json.loads(told[0])["manifest"]["metric"] == "browser"
