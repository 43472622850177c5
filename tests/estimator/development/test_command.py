"""What `deniable dev` prints, and what it leaves behind."""

import re
import signal

import pytest
from click.testing import CliRunner

from deniable_estimator.development.dev_command import dev
from deniable_estimator.development.state import RegistryFile

from .conftest import METRICS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one for temporary files. The handlers of signals stay those of the tests."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    (tmp_path / "temporary").mkdir()
    return tmp_path


def test_it_says_where_to_look_and_deletes_everything(folder, monkeypatch):
    """The address stands in each line to copy, for apps and for pages; the made-up devices have
    reported; a mistake is told with its line; and Ctrl-C leaves no file."""
    path = folder / "metrics.toml"
    path.write_text(METRICS)
    looked = []
    look = RegistryFile.look

    def looks(file):
        looked.append(look(file))
        if len(looked) == 1:
            path.write_text(METRICS + '[metrics.theme]\ntype = "bool"\n')
        if len(looked) == 3:
            raise KeyboardInterrupt
        return looked[-1]

    monkeypatch.setattr(RegistryFile, "look", looks)
    done = CliRunner(env={"COLUMNS": "300"}).invoke(dev, [str(path), "--port", "0", "--crowd", "3"])
    assert done.exit_code == 0, done.output
    found = re.search(r"export DENIABLE_DEV=(http://127\.0\.0\.1:\d+)\n", done.output)
    assert found is not None
    for line in ("Live page: {}/live\n", 'development="{}"', 'src="{}/deniable.min.js"'):
        assert line.format(found[1]) in done.output
    assert "3 simulated devices" in done.output
    assert "\n  browser: the first of 5 values" in done.output
    assert f"metrics.toml:{METRICS.count(chr(10)) + 2}: error: metrics.theme.type" in done.output
    assert "The last version without mistakes stays in force." in done.output
    assert done.output.endswith("Everything is deleted.\n")
    assert list((folder / "temporary").iterdir()) == []
