"""What the owner of the device is shown as a page: what was sent, what it reveals, what waits,
what the ledger has left, and how to switch off and erase. One file of HTML, without scripts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hearsay import open_windows
from hearsay.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from sqlite3 import Connection

    from hearsay.registry import Registry
    from hearsay.sent import SentReport

__all__ = ["Account", "accounts", "owner_page", "waiting_values"]

_LISTED_REPORTS = 200
"""The newest reports are on the page; `hearsay sent` lists all that are remembered."""


@dataclass(frozen=True, slots=True)
class Account:
    """What this device has told about one metric, and what it may still tell."""

    metric: str
    description: str
    answers: int
    spent: Fraction
    """The sum of the epsilons of all answers."""
    left: int | None
    """How many more answers the ledger allows; None where no number ends them, or where the
    metric is not declared any more, so that there are none to come."""
    declared: bool | None
    """None if the registry is not at hand, so that nobody can tell."""


def accounts(connection: Connection, registry: Registry | None) -> list[Account]:
    """An account for every metric that is declared or was ever answered.

    Raises:
        StateError: the ledger is damaged.
    """
    ledger = Ledger(connection)
    found = []
    names = list(registry.metrics) if registry is not None else []
    for name in [*names, *(each for each in ledger.metrics() if each not in names)]:
        metric = None if registry is None else registry.metrics.get(name)
        found.append(
            Account(
                metric=name,
                description="" if metric is None else metric.description,
                answers=ledger.answers(name),
                spent=ledger.spent(name),
                left=None if metric is None or registry is None else ledger.left(metric, registry),
                declared=None if registry is None else metric is not None,
            )
        )
    return found


def waiting_values(connection: Connection) -> int:
    """How many values wait on the device for their window to end."""
    return open_windows.waiting(connection)


def owner_page(
    reports: Sequence[SentReport],
    ledger: Iterable[Account],
    waiting: int,
    *,
    sending: bool,
    app: str = "this app",
    opt_out_url: str | None = None,
    erase_url: str | None = None,
) -> str:
    """The page, as HTML.

    Args:
        reports: what this device has reported, the newest first.
        ledger: what it has told, metric by metric.
        waiting: how many values wait for their window to end.
        sending: whether the app reports anything now.
        app: what the app is called.
        opt_out_url, erase_url: where "switch off" and "erase" lead. A web address, or a path,
            is sent a form by POST; an address of the app's own scheme is a link. What is not
            given is not on the page.

    Raises:
        ValueError: an address would run a script.
    """
    return _PAGE.substitute(
        app=escape(app),
        state=_STATE[sending].format(app=escape(app)),
        actions=_action(opt_out_url, _SWITCH_OFF) + _action(erase_url, _ERASE),
        waiting=_waiting(reports, waiting),
        reports=_reports([each for each in reports if each.status != "queued"]),
        ledger=_ledger(ledger),
    )


def _action(url: str | None, text: str) -> str:
    if url is None:
        return ""
    scheme = urlsplit(url.strip()).scheme.lower()
    if scheme in ("javascript", "data", "vbscript"):
        raise ValueError(f"an address of the page cannot begin with {scheme}:")
    if scheme in ("", "http", "https"):
        return f'<form method="post" action="{escape(url)}"><button>{text}</button></form>'
    return f'<a class="button" href="{escape(url)}">{text}</a>'


def _waiting(reports: Sequence[SentReport], waiting: int) -> str:
    queued = [each for each in reports if each.status == "queued"]
    parts = []
    if waiting == 1:
        parts.append(_ONE_WAITS)
    elif waiting:
        parts.append(_MANY_WAIT.format(count=f"{waiting:,}"))
    if queued:
        parts.append(_QUEUED)
    text = "".join(f"<p>{part}</p>" for part in parts or [_NOTHING_WAITS])
    return text + (_reports(queued) if queued else "")


def _reports(reports: Sequence[SentReport]) -> str:
    if not reports:
        return f"<p>{_NOTHING_SENT}</p>"
    items = []
    for each in reports[:_LISTED_REPORTS]:
        status = _STATUS[each.status]
        if each.reason is not None:
            status += f": {escape(each.reason)}"
        items.append(
            f"<li><h3>{escape(each.description or each.metric)}</h3>"
            f'<p class="said">{escape(each.words[:1].upper() + each.words[1:])}.</p>'
            f'<p class="facts">{escape(each.metric)}, {escape(each.window)}; {status}</p>'
            f"{_likelihoods(each)}</li>"
        )
    more = len(reports) - _LISTED_REPORTS
    rest = f"<p>{_MORE.format(count=f'{more:,}')}</p>" if more > 0 else ""
    return f"<ul>{''.join(items)}</ul>{rest}"


def _likelihoods(report: SentReport) -> str:
    if not report.likelihoods:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(each.value)}</th>'
        f"<td>{float(100 * each.probability):.3g} %</td></tr>"
        for each in report.likelihoods
    )
    return (
        f'<details><summary>{_HOW_OFTEN}</summary><table><thead><tr><th scope="col">{_IF_TRUE}'
        f'</th><th scope="col">{_SAME}</th></tr></thead><tbody>{rows}</tbody></table></details>'
    )


def _ledger(ledger: Iterable[Account]) -> str:
    rows = []
    for each in ledger:
        if each.declared is None:
            left = _NOT_KNOWN
        elif not each.declared:
            left = _NOT_ASKED
        elif each.left is None:
            left = _UNTIL_EXPIRY
        else:
            left = f"{each.left:,}"
        rows.append(
            f'<tr><th scope="row">{escape(each.description or each.metric)}</th>'
            f"<td>{each.answers:,}</td><td>{left}</td><td>{_certainty(each.spent)}</td></tr>"
        )
    if not rows:
        return f"<p>{_NO_LEDGER}</p>"
    heads = "".join(f'<th scope="col">{head}</th>' for head in _LEDGER_HEADS)
    return (
        f'<div class="scroll" role="region" aria-labelledby="ledger" tabindex="0"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"<p>{_LEDGER_NOTE}</p>"
    )


def _certainty(spent: Fraction) -> str:
    """Out of 100: how often an even guess is right at most, rounded up."""
    if spent > 600:
        return "100"
    chance = 100 / (1 + math.exp(-float(spent)))
    return f"{min(100.0, math.ceil(chance * 10 - 1e-9) / 10):.1f}"


_STATE = {
    True: "Reporting is on: {app} reports what is listed here, and nothing else.",
    False: "Reporting is off: {app} reports nothing.",
}
_SWITCH_OFF = "Switch reporting off"
_ERASE = "Erase what waits here"
_ONE_WAITS = (
    "1 true value waits on this device until its day, week or month has ended. Then noise is added "
    "to it, the value is deleted, and only the noisy report can be sent."
)
_MANY_WAIT = (
    "{count} true values wait on this device until their day, week or month has ended. Then noise "
    "is added to each, the value is deleted, and only the noisy report can be sent."
)
_QUEUED = "These reports are ready and have not been sent yet:"
_NOTHING_WAITS = "Nothing waits to be sent."
_NOTHING_SENT = "This device has not reported anything yet."
_MORE = "And {count} older ones."
_STATUS = {
    "queued": "waits to be sent",
    "sent": "sent",
    "rejected": "refused by the collector",
    "dropped": "dropped without being sent",
}
_HOW_OFTEN = "How often your device would have said exactly this"
_IF_TRUE = "If this were true"
_SAME = "It would say the same"
_NOT_KNOWN = "not known without its metrics.toml"
_NOT_ASKED = "not asked any more"
_UNTIL_EXPIRY = "until the question expires"
_NO_LEDGER = "Nothing has been told yet."
_LEDGER_HEADS = (
    "Question",
    "Answers given",
    "Answers left",
    "An even guess is now right at most, of 100 times",
)
_LEDGER_NOTE = (
    "Before any answer an even guess is right 50 times of 100. The last column holds for whoever "
    "has kept every answer of this device and knows everything else. When no answers are left, "
    "the device stops for good."
)

_PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'">
<title>What $app has reported</title>
<style>
:root { color-scheme: light dark; --ground: #fafaf8; --surface: #fff; --ink: #1b1c1a;
 --soft: #5d5f5a; --line: #e6e5e0; --accent: #0f766e; }
@media (prefers-color-scheme: dark) { :root { --ground: #121413; --surface: #191c1b;
 --ink: #eceeec; --soft: #a0a5a1; --line: #2a2e2c; --accent: #5fd3c6; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
 font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 720px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 8px; }
h2 { font-size: 18px; margin: 32px 0 8px; }
h3 { font-size: 16px; margin: 0; }
p { margin: 6px 0; }
ul { list-style: none; margin: 0; padding: 0; }
li { background: var(--surface); border: 1px solid var(--line); border-radius: 10px;
 padding: 14px 16px; margin-top: 10px; overflow-wrap: anywhere; }
.facts { color: var(--soft); font-size: 14px; }
.actions { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 14px; }
form { margin: 0; }
button, .button { display: inline-block; font: inherit; color: var(--ink); cursor: pointer;
 background: var(--surface); border: 1px solid var(--soft); border-radius: 8px;
 padding: 8px 16px; text-decoration: none; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
summary { color: var(--accent); cursor: pointer; font-size: 14px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: right; padding: 6px 0 6px 16px; font-weight: 400; vertical-align: top; }
th:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); border-bottom: 1px solid var(--line); }
@media print { .actions { display: none; } }
</style>
</head>
<body>
<main>
<h1>What $app has reported</h1>
<p>$state</p>
<p>Your device adds its own noise to every answer before it is sent, so that no single report
says anything reliable about you.</p>
<div class="actions">$actions</div>
<h2>Waiting</h2>
$waiting
<h2>Reported</h2>
$reports
<h2 id="ledger">What it adds up to</h2>
$ledger
</main>
</body>
</html>
"""
)
