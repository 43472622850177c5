"""What the operator is told: one event on each line of the log, as text or as JSON.

Every line has the same members: `time` (UTC), `level`, `event` (what happened, in one word),
`message` (the same for people), `process` (its id), and what else belongs to the event. The
standard library's logging is enough for that, and gunicorn and uvicorn speak it already: one
formatter gives the lines of all three the same form.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Literal, TextIO

__all__ = ["EventFormatter", "announce", "listen", "places", "tell"]

_log = logging.getLogger("deniable_collector")


_ABOUT_PROCESSES = {"gunicorn.error"}
"""Loggers whose exceptions are about the server's processes: `logs` keeps requests out."""


class EventFormatter(logging.Formatter):
    """Formats the records of `tell`, and those of other loggers as events named after them.

    `form` is json: one object on each line; or text: time, level, event and message. An
    exception is shown in full where only the server's own processes can be its subject;
    elsewhere its message may hold what was sent, and its type and places must do.
    """

    def __init__(self, form: str) -> None:
        super().__init__()
        self._json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        seconds, milliseconds = divmod(int(record.created * 1000), 1000)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        document = {
            "time": f"{moment}.{milliseconds:03}Z",
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
            "process": record.process,
            **getattr(record, "fields", {}),
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            full = record.name in _ABOUT_PROCESSES
            document["error"] = (
                "".join(traceback.format_exception(error)).rstrip()
                if full
                else f"{type(error).__name__} at {places(error)}"
            )
        if self._json:
            return json.dumps(document, default=str)
        line = "{time} {level} {event}: {message}".format_map(document)
        return line if error is None else f"{line}\n{document['error']}"


def places(error: BaseException) -> str:
    """Where it was raised, innermost first: files and lines, and nothing that was sent."""
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{Path(each.filename).name}:{each.lineno}" for each in frames[::-1])


def tell(
    level: Literal["info", "warning", "error"], event: str, message: str, **fields: Any
) -> None:
    """Write one event. `fields` go into the line of JSON; `message` says them in words."""
    number = logging.getLevelNamesMapping()[level.upper()]
    _log.log(number, "%s", message, extra={"event": event, "fields": fields})


def announce(form: str, event: str, message: str, *, warning: bool = False, **fields: Any) -> None:
    """Write one event where no log is open: as JSON, or as its message alone.

    It goes to standard output, a warning to standard error.
    """
    line = f"warning: {message}" if warning else message
    if form == "json":
        level = logging.WARNING if warning else logging.INFO
        record = logging.LogRecord(_log.name, level, "", 0, message, (), None)
        record.event, record.fields = event, fields
        line = EventFormatter(form).format(record)
    print(line, file=sys.stderr if warning else sys.stdout, flush=True)


def listen(form: str, stream: TextIO | None = None) -> logging.Handler:
    """Write events to a stream, standard error by default, from now on; returns the handler."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(EventFormatter(form))
    _log.handlers = [handler]
    _log.setLevel(logging.INFO)
    return handler
