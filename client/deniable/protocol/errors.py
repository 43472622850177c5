"""Every error that deniable raises on purpose, as one small tree.

::

    DeniableError
    ├── RegistryError      the metrics.toml has mistakes (carries every one of them)
    ├── ValueListError     a file of values has a line that is not a value (carries a code)
    ├── MetricError        a metric is not declared, or cannot take a value
    ├── SegmentError       a segment is not declared or not known, or cannot take a value
    ├── SchemeError        a mechanism cannot be built, or would exceed its epsilon (carries a code)
    ├── WireError          a batch or report is malformed (carries a reason code)
    ├── WindowError        a window label cannot be read
    ├── StateError         the device's state file cannot be trusted
    ├── TransportError     a batch did not reach the collector (carries retry_after)
    └── RejectedError      the collector left a report out (carries metric and reason)

The collector and the estimator add their own subclasses under the same root. An error has
the attributes that a program needs to react; its message says what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deniable.protocol.coded_message import CodedMessage, counted
from deniable.protocol.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence


Severity: TypeAlias = Literal["error", "warning", "note"]


class DeniableError(Exception):
    """The root: `except DeniableError` catches every error that deniable raises on purpose."""


@frozen
class Problem:
    """One mistake, warning or note: where it is and what to do about it."""

    line: int | None
    where: str
    message: str
    severity: Severity = "error"

    def describe(self, source: str) -> str:
        """`file:line: severity: where: message`, as editors and people read it."""
        place = source if self.line is None else f"{source}:{self.line}"
        where = f"{self.where}: " if self.where else ""
        return f"{place}: {self.severity}: {where}{self.message}"


class MistakesError(DeniableError):
    """A file that people write has mistakes; `problems` holds all of them, in file order."""

    def __init__(self, problems: Sequence[Problem], source: str = "metrics.toml") -> None:
        self.problems = tuple(problems)
        self.source = source
        lines = [f"{counted(len(self.problems), 'mistake')} in {source}:"]
        lines += [f"  {problem.describe(source)}" for problem in self.problems]
        super().__init__("\n".join(lines))


class RegistryError(MistakesError):
    """The registry has mistakes; `problems` holds all of them, in file order."""


class ValueListError(DeniableError):
    """A file of values has a mistake; `line` (from 1) is where, if it is at one line.

    `code` says which mistake it is; "list" if it has no code of its own.
    """

    def __init__(self, source: str, line: int | None, mistake: str) -> None:
        self.source = source
        self.line = line
        self.mistake = mistake
        self.code: str = getattr(mistake, "code", "list")
        if line is None:
            told = CodedMessage("in_list", "{source} {mistake}", source=source, mistake=mistake)
        else:
            told = CodedMessage(
                "in_line",
                "{source}, line {line}: {mistake}",
                source=source,
                line=line,
                mistake=mistake,
            )
        super().__init__(told)


class MetricError(DeniableError):
    """A metric is not declared, or cannot take a value; `metric` is its name. The message does not
    repeat the value."""

    def __init__(self, metric: str, message: str) -> None:
        self.metric = metric
        super().__init__(f"metric {metric!r}: {message}")


class SegmentError(DeniableError):
    """An app told the client a segment that the registry does not have, or not one that a metric
    needs; `segment` is its name."""

    def __init__(self, segment: str, message: str) -> None:
        self.segment = segment
        super().__init__(f"segment {segment!r}: {message}")


class SchemeError(DeniableError):
    """A mechanism cannot be built from these parameters.

    `code` says which limit of a declared parameter is not kept; "scheme" if anything else is wrong.
    `str` of it is the `CodedMessage` with the arguments.
    """

    def __init__(self, message: str = "") -> None:
        self.code: str = getattr(message, "code", "scheme")
        super().__init__(message)

    @classmethod
    def of(cls, code: str, template: str, /, **arguments: Any) -> SchemeError:
        """The error of a `CodedMessage`."""
        return cls(CodedMessage(code, template, **arguments))


class WireError(DeniableError):
    """A batch or report is malformed; `reason` is a code for programs."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class WindowError(DeniableError):
    """A window label that is not a UTC day, ISO week or month; `label` is that text."""

    def __init__(self, label: str) -> None:
        self.label = label
        super().__init__(
            f"{label!r} is not a window: write a UTC day (2026-11-21), "
            "an ISO week (2026-W47) or a month (2026-11)"
        )


class StateError(DeniableError):
    """The device's state file cannot be trusted, so nothing may be reported from it.

    `damaged` is true if the file is this app's and damaged, and false if it is another app's or
    a newer version's.
    """

    def __init__(self, message: str, *, damaged: bool = False) -> None:
        self.damaged = damaged
        super().__init__(message)


class TransportError(DeniableError):
    """A batch did not arrive; `retry_after` is the shortest wait in seconds, if one was asked for.

    `final` is true if the collector has refused the batch for good, so that sending the same
    bytes again cannot help. `foreign` is true if something else than a collector responded: a
    proxy, or the web server at a wrong address.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        final: bool = False,
        foreign: bool = False,
    ) -> None:
        self.retry_after = retry_after
        self.final = final
        self.foreign = foreign
        super().__init__(message)


class RejectedError(DeniableError):
    """The collector accepted a batch but left out one report of it.

    `metric` and `reason` (a code of docs/reference/protocol.md) say which and why. `waits` is true
    if the app has a newer registry than the collector: the report is kept and sent again.
    """

    def __init__(self, metric: str, reason: str, *, waits: bool) -> None:
        self.metric = metric
        self.reason = reason
        self.waits = waits
        advice = (
            "the report waits: give the collector the app's metrics.toml first"
            if waits
            else "the report is dropped"
        )
        super().__init__(f"metric {metric!r}: the collector responded with {reason}; {advice}")


class UndeclaredValueWarning(UserWarning):
    """A value that the metric does not declare was recorded, and counted as its `other`, or dropped
    where it cannot be.

    The warning is only given in Python's development mode and by `deniable.testing`: in the logs
    of an app in production it would reveal something about the value.
    """
