"""What was told already, in a small file: each finding once, until it has ended.

The file holds no report and no address: the newest window that was judged of each metric, or since
when its first report is awaited; and of each finding when it began, when it was last seen, when it
ended, and to which channels it must still be sent. It is replaced in one step, so that a crash
leaves the old or the new one.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from deniable import DeniableError, WindowError
from deniable.protocol import windows
from deniable_estimator.files import replace_file

SCHEMA = 1

QUIET_DAYS = 7
"""A change or an anomaly has ended when it was not seen for so many days, or for two windows if
these are longer, and the series is back. A change near the limit would otherwise be told again and
again."""

_KEPT_DAYS = 90
"""What ended so long ago is forgotten."""


class WatchStateError(DeniableError):
    """The state file cannot be read or written; the message says what to do."""


@dataclass(slots=True)
class ToldFinding:
    """One finding that was told, or still waits for a channel."""

    since: str
    """When it began: a window or a day."""
    told: float
    """POSIX time in seconds, as the next two."""
    seen: float
    """When it was last found; of what one window says, the end of that window."""
    ended: float | None = None
    waiting: list[str] = field(default_factory=list)
    """The channels that it must still be sent to."""
    message: dict[str, Any] | None = None
    """What is sent, as long as a channel waits."""


@dataclass
class WatchState:
    """What the file holds."""

    judged: dict[str, str] = field(default_factory=dict)
    """The newest window that was judged, by metric."""
    told: dict[str, ToldFinding] = field(default_factory=dict)
    """By the key of the finding."""
    awaited: dict[str, float] = field(default_factory=dict)
    """Since when a metric is watched that never had a report: POSIX time in seconds, by metric."""

    def is_active(self, key: str) -> bool:
        """Whether a finding was told and has not ended."""
        return key in self.told and self.told[key].ended is None

    def forget(self, now: float) -> None:
        """Drop what ended long ago and waits for no channel."""
        old = [
            key
            for key, each in self.told.items()
            if each.ended is not None
            and not each.waiting
            and now - each.ended > _KEPT_DAYS * 86_400
        ]
        for key in old:
            del self.told[key]

    @classmethod
    def load(cls, path: Path) -> WatchState:
        """The state in a file; an empty one where there is no file.

        Raises:
            WatchStateError: the file is damaged or cannot be read.
        """
        try:
            found = msgspec.json.decode(path.read_bytes(), type=_File)
            for label in found.judged.values():
                windows.start(label)
            if any(each.waiting and each.message is None for each in found.told.values()):
                raise ValueError("nothing to send")
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, WindowError, msgspec.MsgspecError, RecursionError):
            raise WatchStateError(
                f"{path} cannot be read as the state of deniable watch: restore it from a backup, "
                "or remove it; without it everything that holds now is told once more"
            ) from None
        return cls(found.judged, found.told, found.awaited)

    def save(self, path: Path) -> None:
        """Replace the file in one step.

        Raises:
            WatchStateError: it cannot be written.
        """
        document = {"schema": SCHEMA, **asdict(self)}
        try:
            replace_file(path, json.dumps(document, ensure_ascii=False, indent=1), 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error


class _File(msgspec.Struct):
    schema: Literal[1]
    judged: dict[str, str]
    told: dict[str, ToldFinding]
    awaited: dict[str, float] = {}


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Hold the lock of a state file, so that two runs do not tell the same.

    Raises:
        WatchStateError: another run holds it, or the folder cannot be written.
    """
    path = state.with_name(f"{state.name}.lock")
    try:
        file = path.open("a")
    except OSError as error:
        raise _unwritable(path, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise WatchStateError(
                f"another deniable watch uses {state} now: wait for it, or give this one a file of "
                "its own with --state"
            ) from None
        yield


def _unwritable(path: Path, error: OSError) -> WatchStateError:
    return WatchStateError(
        f"{path} cannot be written ({error.strerror}): name a file in a folder that this user may "
        "write to with --state"
    )
