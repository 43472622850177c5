"""`deniable sent`: the owner of a device reads what it has reported, switches it off, or erases.

It belongs to the SDK, so it needs nothing but the standard library.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import sqlite3
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import get_args

from deniable.device import owner
from deniable.device.sent import OWNER_TEXTS, OwnerLanguage, SentReport, describe_entries
from deniable.device.state import FILE_NAME, State, states_root
from deniable.protocol.errors import DeniableError, StateError
from deniable.protocol.keys import APP
from deniable.protocol.registry import Registry
from deniable.whole_files import written

EXAMPLE = "deniable sent --app editor"
"""What the help begins with."""


class _Parser(argparse.ArgumentParser):
    def format_help(self) -> str:
        return f"Example: {EXAMPLE}\n\n{super().format_help()}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    asked = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without curly quotes, say
    try:
        registry = None if asked.registry is None else Registry.load(asked.registry)
        directory = _find_state(asked.state_dir, asked.app, switching=asked.switch is not None)
        if asked.switch is not None or asked.erase:
            _change(directory, asked.switch, erase=asked.erase)
            return 0
        print(_shown(asked, directory, registry))
    except DeniableError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except (sqlite3.Error, OSError) as error:
        print(f"Error: a file cannot be read or written: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="deniable sent",
        description=(
            "Show every stored report of this device, the newest first: what was reported, and "
            "how often the device would have sent the same if something else were true. The "
            "ledger is never erased, so that the privacy budget cannot be spent twice."
        ),
    )
    parser.add_argument("--app", help="the app, by its name; by default the only one of this user")
    parser.add_argument("--state-dir", type=Path, help="the app's state directory, if it has one")
    parser.add_argument(
        "--registry",
        type=Path,
        metavar="METRICS.TOML",
        help="the app's metrics.toml; needed in words for metrics with very many values",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page for a browser, with what the ledger still allows",
    )
    parser.add_argument(
        "--language",
        choices=get_args(OwnerLanguage),
        default="en",
        help="the language of that page (default: en)",
    )
    for switch, told in (
        ("off", "stop reporting, and delete what waits to be sent"),
        ("on", "allow reporting again, if the app has consent"),
    ):
        parser.add_argument(
            f"--switch-{switch}", dest="switch", action="store_const", const=switch, help=told
        )
    parser.add_argument(
        "--erase",
        action="store_true",
        help="erase values, all reports and the keys of memos; the ledger stays, and metrics "
        "that have reported with memos never do so again",
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _find_state(directory: Path | None, app: str | None, *, switching: bool) -> Path:
    """The directory of the state to read. To switch an app off, it need not have reported yet.

    Raises:
        StateError: there is none, or more than one and none was named, or no app can have this
            name.
    """
    if directory is None and app is not None:
        if not APP.fullmatch(app):
            raise StateError(
                f"no app can be named {app!r}: a name has small letters, digits, - and _, and "
                "begins with a letter"
            )
        directory = Path(states_root(), app)
    if directory is not None:
        if not switching and not (directory / FILE_NAME).exists():
            raise StateError(f"no state of deniable in {directory}")
        return directory
    root = Path(states_root())
    found = sorted(path.parent for path in root.glob(f"*/{FILE_NAME}"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise StateError(f"no app keeps its state under {root}: name one with --state-dir")
    listed = "".join(f"\n  --app {path.name}" for path in found)
    raise StateError(f"more than one app keeps its state under {root}; choose:{listed}")


def _change(directory: Path, switch: str | None, *, erase: bool) -> None:
    """Switch reporting on or off, and erase, as the owner of the device asks."""
    with closing(State(directory)) as state:
        if switch is not None:
            state.switch(on=switch == "on")
            print(f"Reporting is {switch}{', if the app has consent' if switch == 'on' else ''}.")
        if not (directory / FILE_NAME).exists():
            # It may be the wrong name, and then the app goes on.
            print(f"No app has kept anything in {directory} yet; see that the name is right.")
        elif erase:
            with _undone("nothing is erased"):
                state.erase(time.time())
            print(
                "Values, reports and the keys of memos on this device are erased; the ledger stays."
            )
        elif switch == "off":
            with _undone(
                "what waits to be sent is not deleted yet. None of it is sent while reporting is "
                "off, and the app deletes it when it runs"
            ):
                state.withdraw()
            print("What waited to be sent is deleted.")


@contextmanager
def _undone(told: str) -> Iterator[None]:
    """If a change fails, say what has not happened, why, and what to do."""
    try:
        yield
    except StateError as error:
        raise StateError(f"{told}: {error}") from None
    except (sqlite3.Error, OSError) as error:
        raise StateError(
            f"{told}: the state file cannot be read or written ({error}). See that the disk is not "
            "full and the app does not hold the file, and run this again"
        ) from None


def _shown(asked: argparse.Namespace, directory: Path, registry: Registry | None) -> str:
    """What a state holds for its owner: as text or JSON, or where its page was written."""
    with closing(State(directory)) as state:
        with state.transaction() as connection:
            owned = owner.owned(connection, registry)
        sending = not state.switched_off
    language: OwnerLanguage = asked.language if asked.html else "en"
    reports = describe_entries(owned.entries, registry, OWNER_TEXTS[language])
    if asked.html is not None:
        page = owner.owner_page(reports, owned, registry, sending=sending, language=language)
        with written(asked.html, None) as file:
            file.write(page.encode())
        return f"The page is in {asked.html}."
    if asked.json:
        document = {"erased": owned.erased, "reports": [report.to_dict() for report in reports]}
        return json.dumps(document, indent=2, ensure_ascii=False)
    parts = [_paragraph(report) for report in reports]
    if owned.erased is not None:
        parts.append(OWNER_TEXTS["en"].erased.format(day=owned.erased))
    return "\n\n".join(parts or [OWNER_TEXTS["en"].nothing_sent])


def _paragraph(report: SentReport) -> str:
    """One report, as wide as the terminal."""
    width = min(100, shutil.get_terminal_size().columns)
    return textwrap.fill(str(report), width, subsequent_indent="    ", break_on_hyphens=False)
