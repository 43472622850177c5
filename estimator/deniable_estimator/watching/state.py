"""What was told already, in a small file: each finding once, until it has ended.

The file holds no report and no address: the newest window that was judged of each metric, and of
each finding when it began, when it was last seen, when it ended, and to which channels it must
still be sent. It is replaced in one step, so that a crash leaves the old or the new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

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
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError) as error:
            raise _damaged(path) from error
        try:
            return cls._read(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(path) from error

    def save(self, path: Path) -> None:
        """Replace the file in one step.

        Raises:
            WatchStateError: it cannot be written.
        """
        document = {"schema": SCHEMA, **asdict(self)}
        try:
            replace_file(path, json.dumps(document, ensure_ascii=False, indent=1), 0o600)
        except OSError as error:
            raise WatchStateError(
                f"{path} cannot be written ({error.strerror}): name a file in a folder that this "
                "user may write to with --state"
            ) from error

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> WatchState:
        if document["schema"] != SCHEMA:
            raise ValueError("another schema")
        told = {}
        known = {each.name for each in fields(ToldFinding)}
        for key, each in document["told"].items():
            found = ToldFinding(**{name: each[name] for name in known})
            ended = found.ended is None or isinstance(found.ended, (int, float))
            if not (
                ended
                and isinstance(found.since, str)
                and isinstance(found.told, (int, float))
                and isinstance(found.seen, (int, float))
                and isinstance(found.waiting, list)
                and (not found.waiting or isinstance(found.message, dict))
            ):
                raise ValueError("a finding of another form")
            told[key] = found
        judged = dict(document["judged"])
        for label in judged.values():
            try:
                windows.start(label)
            except WindowError as error:
                raise ValueError("no window") from error
        return cls(judged, told)


def _damaged(path: Path) -> WatchStateError:
    return WatchStateError(
        f"{path} cannot be read as the state of deniable watch: restore it from a backup, or "
        "remove it; without it everything that holds now is told once more"
    )
