"""What a collector's responses to impossible reports mean, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deniable.tools.doctor.result import CheckResult, listed

ADDRESS = (
    "use the collector's address, without /v1/reports; by default port 8080 is the collector's, "
    "and 8090 the dashboard's"
)


def refused_batch(problem: str | None, message: str, ingest_key: str | None) -> CheckResult:
    """Why the collector did not read the batch at all."""
    if problem == "no-ingest-key":
        given = "does not accept this ingest key" if ingest_key else "asks for an ingest key"
        return CheckResult(
            "endpoint", "ingest_key", "error", f"the collector {given}",
            "pass one of its DENIABLE_INGEST_KEYS as Client(ingest_key=...), and to this command "
            "in DENIABLE_INGEST_KEY",
        )  # fmt: skip
    if problem in ("too-many-requests", "store-unavailable", "queue-full", "too-many-connections"):
        return CheckResult(
            "endpoint", "busy", "warning", f"{message}; devices would try again later",
            "see the collector's log, or `deniable doctor --operator` on its machine",
        )  # fmt: skip
    return CheckResult(
        "endpoint", "refused_batch", "error", message,
        "is there a proxy in front that changes requests? docs/reference/protocol.md explains the "
        "responses",
    )  # fmt: skip


_FOLLOW = (
    "give the collector the app's metrics.toml and send it SIGHUP. Devices keep such reports for "
    "six days"
)

_VERDICTS = {
    "unknown_metric": ("another_registry", "the collector does not know these metrics", _FOLLOW),
    "unknown_scheme": (
        "another_registry",
        "the collector has these metrics with other parameters",
        _FOLLOW,
    ),
    "bad_window": ("another_registry", "the collector has another window for these", _FOLLOW),
    "expired_metric": ("another_registry", "at the collector these have expired", _FOLLOW),
    "window_not_closed": (
        "clock_ahead",
        "the collector refuses windows that have not ended by its clock",
        "set the clock of this machine and the collector's by NTP",
    ),
    "window_too_old": (
        "clock_behind",
        "the collector refuses windows that ended long ago by its clock",
        "set the clock of this machine and the collector's by NTP",
    ),
}
"""For each reason of a collector: a code, what it means, and what to do."""


def verdicts(reasons: Mapping[str, list[str]]) -> Iterator[CheckResult]:
    """What the collector's reasons mean, but for the one that says that all is well."""
    for reason, names in reasons.items():
        if reason in _VERDICTS:
            code, message, advice = _VERDICTS[reason]
            check = "clock" if code.startswith("clock") else "registry"
            yield CheckResult(check, code, "error", f"{message}: {listed(names)}", advice)
        elif reason != "bad_row":
            yield CheckResult(
                "endpoint", "not_a_collector", "error",
                f"what responds treats reports as no collector does: {listed(names)}", ADDRESS,
            )  # fmt: skip
