"""The one `deniable` command: its list of commands, and what it says where a package is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

HELP = """
import sys
from deniable.cli import main
sys.argv = ["deniable", "--help"]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""

RUN = """
import sys
sys.argv = ["deniable", {}]
from deniable.cli import main
main()
"""

WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
sys.argv = ["deniable", "estimate", "drink"]
from deniable.cli import main
main()
"""


def python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def test_help_imports_no_command() -> None:
    """`deniable --help` lists every command with a sentence, without the module of any."""
    done = python(HELP)
    assert done.returncode == 0
    listed = dict(
        line.split(maxsplit=1) for line in done.stdout.partition("Commands:\n")[2].splitlines()
    )
    points = entry_points(group="deniable.commands")
    assert listed.keys() == {point.name for point in points}
    assert all(text.endswith(".") for text in listed.values())
    assert not {point.module for point in points} & set(done.stderr.split())


def test_a_command_names_the_missing_extra() -> None:
    """A command whose package lacks a dependency says what to install."""
    done = python(WITHOUT_NUMPY)
    assert done.returncode == 1
    assert "install deniable with its extra estimator" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_command_names_the_near_one() -> None:
    """A typing mistake is answered with the command that was meant, also before --help; what is
    near to nothing is only unknown. Neither is a success."""
    for words in ('"estimat"', '"estimat", "--help"'):
        done = python(RUN.format(words))
        assert done.returncode == 2
        assert "'estimate'" in done.stderr
    done = python(RUN.format('"zzz"'))
    assert done.returncode == 2
    assert "Did you mean" not in done.stderr
