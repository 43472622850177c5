"""annotations.toml is checked whole, with the line of every mistake, and entries are added."""

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_estimator import annotations as code
from deniable_estimator.annotations import (
    add_annotation,
    load_annotations,
    parse_annotations,
)
from deniable_estimator.files import MAX_FILE, CheckedFileError, FileEditError
from deniable_estimator.terminal.annotate import annotate


def mistakes(text):
    """Line and place of each mistake."""
    with pytest.raises(CheckedFileError) as caught:
        parse_annotations(text)
    return [(each.line, each.where) for each in caught.value.problems]


def entry(**keys):
    """A file of one entry, with some of its keys changed, or left away by an empty text."""
    lines = {"date": "2026-11-20", "text": '"x"', **keys}
    return "schema = 1\n[[annotations]]\n" + "".join(f"{k} = {v}\n" for k, v in lines.items() if v)


def test_limits_are_met_exactly():
    """The longest text and link, and as many patterns and entries as may be, are accepted."""
    patterns = ",".join(['"a"'] * code.MOST_PATTERNS)
    link = "https://a.example/".ljust(code.MOST_LINK, "x")
    whole = entry(text=f'"{"x" * code.MOST_TEXT}"', link=f'"{link}"', metrics=f"[{patterns}]")
    assert len(parse_annotations(whole)) == 1
    many = "schema = 1\n" + '[[annotations]]\ndate = 2026-11-20\ntext = "x"\n' * 2
    assert len(parse_annotations(many)) == 2
    many = "schema = 1\nannotations = [" + '{date=2026-11-20,text="x"},' * code.MOST_ANNOTATIONS
    assert len(parse_annotations(many + "]")) == code.MOST_ANNOTATIONS
    assert mistakes(many + '{date=2026-11-20,text="x"}]') == [(2, "annotations")]


def test_what_is_no_toml_has_its_line_and_no_control_characters(tmp_path):
    """Nor has what is no UTF-8, or too large, or a folder, any other error than this."""
    assert mistakes("schema = 1\ndate = \x1b[2J\n") == [(2, "")]
    for content in (b"\xff\xfe", b"#" * (MAX_FILE + 1)):
        path = tmp_path / "annotations.toml"
        path.write_bytes(content)
        with pytest.raises(CheckedFileError):
            load_annotations(path)
    with pytest.raises(CheckedFileError, match="directory"):
        load_annotations(tmp_path)


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


def run(*arguments, path):
    """The command, with that file and no registry."""
    given = [*arguments, "--file", str(path), "--registry", str(path.with_name("none.toml"))]
    return CliRunner().invoke(annotate, given)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "annotations.toml"


def test_a_mistake_changes_nothing(path):
    """It is named, and no file is made."""
    done = run("x\x1b[2J", path=path)
    assert done.exit_code != 0
    assert "text: must be a line" in done.output
    assert not path.exists()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_comments_order_and_line_ends_stay(path, end):
    """What is added is an end of the file."""
    before = COMMENTED.replace("\n", end).encode()
    path.write_bytes(before)
    assert add_annotation(path, "Three", datetime(2026, 11, 3, 5, tzinfo=UTC)).number == 3
    content = path.read_bytes()
    assert content.startswith(before)
    assert content.count(b"\n") == content.count(end.encode())
    assert {each.text for each in load_annotations(path)} == {"One", "Two", "Three"}


def test_a_file_that_cannot_be_edited_is_left_alone(path):
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


def test_mode_and_link_stay(path, tmp_path):
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


def test_several_at_once_lose_none(path):
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
def test_any_text_comes_back(tmp_path_factory, texts):
    """Whatever is noted, quotes and brackets and other scripts, is read as it was given."""
    path = tmp_path_factory.mktemp("any") / "a.toml"
    for text in texts:
        add_annotation(path, text, datetime(2026, 11, 3, tzinfo=UTC).date())
    found = sorted(load_annotations(path), key=lambda each: each.number)
    assert [each.text for each in found] == texts


def test_without_a_date_it_is_today(path):
    """The day is that of UTC. Others may read a new file as far as the mask lets them."""
    before, mask = datetime.now(UTC).date(), os.umask(0o026)
    assert run("Release", path=path).exit_code == 0
    assert os.umask(mask) == 0o026
    assert path.stat().st_mode & 0o777 == 0o640
    assert before <= load_annotations(path)[0].day <= datetime.now(UTC).date()
