"""The one `deniable` command."""

from __future__ import annotations

import errno
import sys


def main() -> None:
    """Run the command. If its output cannot be written, that is told in one line."""
    try:
        try:
            _run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        sys.stdout = None  # Python would try to write the rest when it ends
        sys.exit(f"Error: the output cannot be written: {error.strerror}")


def _run() -> None:
    """Without click, only `deniable sent` runs, which the owner of any device may need; for the
    others the error names the extra to install."""
    try:
        import click  # noqa: F401  (the SDK alone does not need it)
    except ModuleNotFoundError:
        if sys.argv[1:2] == ["sent"]:
            from deniable.tools import sent_command

            sys.exit(sent_command.main(sys.argv[2:]))
        sys.exit(
            "deniable: all commands but `deniable sent` need click: install deniable with its "
            "extra cli, which a clone does by pip install '.[cli]'"
        )
    from deniable.tools.command_line import run

    run()
