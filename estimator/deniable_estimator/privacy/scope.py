"""Who can learn what of a device, and what no guarantee covers."""

from __future__ import annotations

from deniable_estimator.messages import message

_NOT_COVERED = (
    "that a device takes part, when, and from which address",
    "a budget that begins anew: the app is reinstalled, its state removed, or a backup restored",
    "what is true of the whole crowd: it may tell about people whose device never reported",
)
"""What no local mechanism protects."""

_FIRST_USE = (
    "when the app is first used in a window: the metric is answered at once, so the time of a "
    "report shows it"
)
"""What the time of sending shows of a metric that is answered at once."""

_BOTH_RECORDED = (
    "that the device has recorded both metrics in a window: with one of them alone it reports "
    "nothing"
)
"""What a report of a pair shows by being there."""

_STORAGE = (
    "a browser that loses its storage, and the ledger with it: Safari deletes it after 7 days "
    "without a visit, people clear it, and private windows begin without it; the bounds for "
    "several reports hold for one life of the storage"
)
"""What a metric that is recorded on the web cannot promise."""

_SEGMENTS = (
    "the segments of the device: each report tells them in clear, and with them whatever they say "
    "about the value by themselves"
)
"""What a metric that is counted by segments does not protect."""

_CHANGES = (
    "the times at which a value changes: against them stands only the bound for reports of "
    "any history, which grows with every report"
)


def learned_by(*, remembers: bool, at_once: bool = False) -> dict[str, str]:
    """Who can learn what of a device: who -> what."""
    network = message(
        "that the device reports, and its address; of the report nothing while TLS holds, "
        "and if it does not, no more than the bounds"
    )
    operator = message(
        "each report as it comes in, and from which address; the bounds need no trust in who "
        "runs it, and the collector keeps neither"
    )
    if at_once:
        network = message(
            "that the device reports, its address, and roughly when the app was first used in a "
            "window; of the report nothing while TLS holds, and if it does not, no more than the "
            "bounds"
        )
        operator = message(
            "each report as it comes in, from which address, and so roughly when the app was "
            "first used in a window; the bounds need no trust in who runs it, and the collector "
            "keeps no report, address or time"
        )
    return {
        "the network": network,
        "the collector's operator": operator,
        "the analyst": message(
            "sums over all devices, which tell far less of one device than its report"
        ),
        "a thief of the store": message(
            "the same sums, and one by one what the last minute added to them: no address or "
            "device is in it"
        ),
        "a thief of the device": _thief(remembers, at_once),
    }


def _thief(remembers: bool, at_once: bool) -> str:
    """What the state file of a device tells."""
    if at_once and remembers:
        return message(
            "the noisy reports it has made, and the key of its memory, which together give away "
            "the values of these reports"
        )
    if at_once:
        return message("the noisy reports it has made, and no true value")
    if remembers:
        return message(
            "the true value of the window that is still open, the noisy reports it has made, and "
            "the key of its memory, which gives away the values of these reports"
        )
    return message(
        "the true value of the window that is still open, and the noisy reports it has made"
    )


def not_covered(
    *,
    remembers: bool,
    at_once: bool = False,
    web: bool = False,
    segments: bool = False,
    pair: bool = False,
) -> tuple[str, ...]:
    """What the guarantee does not cover."""
    more = (
        (segments, _SEGMENTS),
        (web, _STORAGE),
        (at_once, _FIRST_USE),
        (remembers, _CHANGES),
        (pair, _BOTH_RECORDED),
    )
    return (*_NOT_COVERED, *(told for holds, told in more if holds))
