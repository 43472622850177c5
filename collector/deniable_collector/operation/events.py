"""The log for the operator: one event on each line, as text or as JSON.

Every line has the same members: `time` (UTC), `level`, `event` (what happened, in one word),
`message` (the same for people), `process` (its id), and the members of the event. It uses the
standard library's logging, as gunicorn does, so one formatter gives the lines of both the same
form.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Literal

_log = logging.getLogger("deniable_collector")


_ABOUT_PROCESSES = "gunicorn.error"
"""The logger whose exceptions are about the server's processes, and not about requests."""


class EventFormatter(logging.Formatter):
    """Formats the records of `tell`, and those of other loggers as events named after them.

    `form` is json (one object on each line) or text (time, level, event and message). An
    exception is shown in full only if it is about the server's own processes. Elsewhere its
    message may contain what was sent, so only its type and places are shown.
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
            if record.name == _ABOUT_PROCESSES:
                document["error"] = "".join(traceback.format_exception(error)).rstrip()
            else:
                document["error"] = f"{type(error).__name__} at {places(error)}"
        if self._json:
            return json.dumps(document, default=str)
        line = "{time} {level} {event}: {message}".format_map(document)
        return line if error is None else f"{line}\n{document['error']}"


def places(error: BaseException) -> str:
    """Where it was raised, innermost first: only files and lines, nothing that was sent."""
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{Path(each.filename).name}:{each.lineno}" for each in frames[::-1])


def tell(
    level: Literal["info", "warning", "error"], event: str, message: str, **fields: Any
) -> None:
    """Write one event. `fields` are members of the JSON line; `message` says them in words."""
    number = logging.getLevelNamesMapping()[level.upper()]
    _log.log(number, "%s", message, extra={"event": event, "fields": fields})


def announce(form: str, event: str, message: str, *, warning: bool = False, **fields: Any) -> None:
    """Write one event before the log is open: as JSON, or only its message.

    It goes to standard output, a warning to standard error.
    """
    line = f"warning: {message}" if warning else message
    if form == "json":
        record = {"levelname": "warning" if warning else "info", "event": event, "fields": fields}
        line = EventFormatter(form).format(logging.makeLogRecord({**record, "msg": message}))
    print(line, file=sys.stderr if warning else sys.stdout, flush=True)


def listen(form: str) -> logging.Handler:
    """Write events to standard error from now on; returns the handler."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EventFormatter(form))
    _log.handlers = [handler]
    _log.setLevel(logging.INFO)
    return handler


def tell_unexpected(error: BaseException) -> None:
    """Log a bug for the operator."""
    # Neither the message nor the values of a traceback: both may contain what was sent.
    kind, where = type(error).__name__, places(error)
    tell("error", "unexpected-error", f"unexpected {kind} at {where}", error=f"{kind} at {where}")
