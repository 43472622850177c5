"""What commands write is there whole or not at all."""

import errno
import os
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from tests.test_house import PACKAGES, ROOT

from deniable.tools.command_line import find
from deniable.whole_files import written

from .conftest import metrics_toml

IN_PLACE = re.compile(r"""\.write_(text|bytes)\(|open\([^)]*["'][wxr]b?\+?b?["']""")


def test_no_command_writes_in_place():
    """No file of the product is written by its own name, as a full disk would destroy what is
    there: but for the journal of the state, to destroy that."""
    lines = [
        (path.name, line)
        for package in PACKAGES[:-1]
        for path in (ROOT / package).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    found = {name for name, line in lines if IN_PLACE.search(line) and '"rb"' not in line}
    assert found == {"state.py", "whole_files.py"}


@pytest.mark.parametrize("command", ["compile -o site/metrics.json", "compile web --out site"])
def test_a_full_disk_leaves_what_is_there(command, tmp_path, monkeypatch):
    """The old file stays as it was, and no part of a new one beside it."""

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    Path("metrics.toml").write_text(metrics_toml(browser={}), encoding="utf-8")
    Path("site").mkdir()
    for name in ("metrics.json", "deniable.min.js"):
        Path("site", name).write_text("in force")
    monkeypatch.setattr(os, "fsync", full)
    failed = CliRunner().invoke(find(), command.split())
    assert "cannot be written: No space left on device" in failed.output
    assert {each.name: each.read_text() for each in Path("site").iterdir()} == {
        "metrics.json": "in force",
        "deniable.min.js": "in force",
    }


def test_who_may_read_it(tmp_path):
    """A new file can be read as far as the mask lets others, and one that is replaced keeps its
    mode."""
    path, mask = tmp_path / "page.html", os.umask(0o026)
    try:
        for mode in (0o640, 0o604):
            with written(path, None) as file:
                file.write(b"<html>")
            assert path.stat().st_mode & 0o777 == mode
            path.chmod(0o604)
    finally:
        os.umask(mask)


def test_a_pipe_is_written_to():
    """It is not replaced: `--text /dev/stdout` shows the text."""
    reading, writing = os.pipe()
    with written(Path(f"/dev/fd/{writing}"), None) as file:
        file.write(b"text")
    assert os.read(reading, 10) == b"text"
    os.close(reading)
    os.close(writing)


def test_a_folder_that_is_missing_is_named(tmp_path):
    """And not the name of a draft in it."""
    path = tmp_path / "missing" / "page.html"
    with pytest.raises(FileNotFoundError) as told, written(path):
        pass
    assert told.value.filename == str(path)


def test_a_file_system_without_hard_links(tmp_path, monkeypatch):
    """A file that must not be there yet is made all the same, and never replaces one."""
    monkeypatch.setattr(os, "link", Mock(side_effect=PermissionError(errno.EPERM, "no links")))
    path = tmp_path / "metrics.toml"
    with written(path, replacing=False) as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), written(path, replacing=False) as file:
        file.write(b"second")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        ("metrics.toml", b"first")
    ]
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(errno.EIO, "no disk")))
    path.unlink()
    with pytest.raises(OSError, match="no disk"), written(path, replacing=False) as file:
        file.write(b"third")
    assert list(tmp_path.iterdir()) == []
