"""`deniable annotate` adds an entry, and loses none."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_estimator.annotations import load_annotations
from deniable_estimator.annotations.editing import add_annotation
from deniable_estimator.checked_files import CheckedFileError
from deniable_estimator.edited_files import FileEditError
from deniable_estimator.terminal.annotate import annotate

COMMENTED = """# Releases of the editor.
schema = 1  # the format

# the first one
[[annotations]]
text = "One"   # a remark
date = 2026-11-01

# the second one
[[annotations]]
date = 2026-11-02
text = "Two"
metrics = [
    "browser",
]

# the end
"""
TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=200
).filter(lambda text: not text.isspace() and text == text.strip())


def run(*arguments: str, path: Path) -> Result:
    """The command, with that file and no registry."""
    given = [*arguments, "--file", str(path), "--registry", str(path.with_name("none.toml"))]
    return CliRunner().invoke(annotate, given)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "annotations.toml"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Missing argument"),
        (("x", "--date", "yesterday"), "must be a day"),
        (("x", "--link", "javascript:alert(1)"), "link: must begin with https://"),
        (("x\x1b[2J",), "text: must be a line"),
        (("x", "--metric", "a b"), "metrics: must be a list"),
    ],
)
def test_a_mistake_changes_nothing(path: Path, arguments: tuple[str, ...], told: str) -> None:
    """It is named, and no file is made."""
    done = run(*arguments, path=path)
    assert done.exit_code != 0
    assert told in done.output
    assert not path.exists()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_comments_order_and_line_ends_stay(path: Path, end: str) -> None:
    """What is added is an end of the file."""
    before = COMMENTED.replace("\n", end).encode()
    path.write_bytes(before)
    assert add_annotation(path, "Three", datetime(2026, 11, 3, 5, tzinfo=UTC)).number == 3
    content = path.read_bytes()
    assert content.startswith(before)
    assert content.count(b"\n") == content.count(end.encode())
    assert {each.text for each in load_annotations(path)} == {"One", "Two", "Three"}


def test_a_file_that_cannot_be_edited_is_left_alone(path: Path) -> None:
    """Entries in one list have no tables to edit, and a mistaken file is not made worse."""
    inline = 'schema = 1\nannotations = [{date = 2026-11-01, text = "One"}]\n'
    path.write_text(inline)
    with pytest.raises((FileEditError, CheckedFileError)):
        add_annotation(path, "Two", datetime(2026, 11, 3, tzinfo=UTC))
    assert path.read_text() == inline
    path.write_text("schema = 9\n")
    with pytest.raises(CheckedFileError):
        add_annotation(path, "Two", datetime(2026, 11, 3, tzinfo=UTC))
    assert path.read_text() == "schema = 9\n"


def test_mode_and_link_stay(path: Path, tmp_path: Path) -> None:
    """The dashboard's user must be able to read what is replaced, where it was before."""
    real = tmp_path / "real" / "a.toml"
    real.parent.mkdir()
    real.write_text(COMMENTED)
    real.chmod(0o640)
    path.symlink_to(real)
    add_annotation(path, "Three", datetime(2026, 11, 3, tzinfo=UTC))
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "Three" in real.read_text()


def test_several_at_once_lose_none(path: Path) -> None:
    """Six processes that add at the same time all find their entry in the file."""
    script = "from deniable.cli import main; main()"
    each = [sys.executable, "-c", script, "annotate", "--file", str(path)]
    started = [subprocess.Popen([*each, f"entry {n}"], stdout=subprocess.PIPE) for n in range(6)]
    for process in started:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert {each.text for each in load_annotations(path)} == {f"entry {n}" for n in range(6)}


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Whatever is noted, quotes and brackets and other scripts, is read as it was given."""
    path = tmp_path_factory.mktemp("any") / "a.toml"
    for text in texts:
        add_annotation(path, text, datetime(2026, 11, 3, tzinfo=UTC).date())
    found = sorted(load_annotations(path), key=lambda each: each.number)
    assert [each.text for each in found] == texts
