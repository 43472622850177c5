"""The page for the owner of the device: what was sent, what it reveals, what waits, what the
ledger still allows, and how to switch off and erase. One file of HTML, without scripts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from pathlib import Path
from sqlite3 import Connection
from string import Template
from typing import NamedTuple
from urllib.parse import urlsplit

from deniable.device import open_windows, outbox
from deniable.device.ledger import Ledger
from deniable.device.outbox import Entry
from deniable.device.sent import OWNER_TEXTS, OwnerLanguage, OwnerTexts, SentReport, percent
from deniable.protocol.keys import PEOPLE_KEYS
from deniable.protocol.registry import Registry

_LISTED_REPORTS = 200
"""The page shows the newest reports; `deniable sent` lists all that are stored."""


class Account(NamedTuple):
    """What this device has revealed about one metric, and how many reports it may still send."""

    metric: str
    description: str
    reports: int
    spent: Fraction
    """The sum of the epsilons of all reports."""
    left: int | None
    """How many more reports the ledger allows. None if there is no limit, or if no such metric is
    known to be declared."""


class Owned(NamedTuple):
    """What a state holds for the owner of the device."""

    entries: Sequence[Entry] = ()
    """Every stored report, the newest first."""
    ledger: Sequence[Account] = ()
    """An account for every metric that is declared or was ever reported."""
    waiting: int = 0
    """How many values wait for their window to end."""
    erased: str | None = None
    """The UTC day on which reports were last erased, if they ever were."""


def owned(connection: Connection, registry: Registry | None) -> Owned:
    """What a state holds for the owner of the device.

    Raises:
        StateError: the ledger is damaged.
    """
    ledger, accounts = Ledger(connection), []
    reports = ledger.reports()
    known = {} if registry is None else registry.metrics
    for name in dict.fromkeys((*known, *reports)):
        described, left = "", None
        if registry is not None and name in known:
            described, left = known[name].description, ledger.left(known[name], registry)
        accounts.append(Account(name, described, reports.get(name, 0), ledger.spent(name), left))
    (erased,) = connection.execute("SELECT erased FROM device").fetchone()
    return Owned(outbox.entries(connection), accounts, open_windows.waiting(connection), erased)


def owner_page(
    reports: Sequence[SentReport],
    owned: Owned | None,
    registry: Registry | None,
    *,
    sending: bool,
    app: str | None = None,
    opt_out_url: str | None = None,
    erase_url: str | None = None,
    language: OwnerLanguage = "en",
) -> str:
    """The page, as HTML.

    Args:
        reports: what this device has reported, the newest first.
        owned: what else it holds; None if that cannot be read now.
        registry: says who receives the reports and where to ask; None if it is not available.
        sending: whether the app reports anything now.
        app: what the app is called, if it has a name.
        opt_out_url, erase_url: where "switch off" and "erase" lead. A web address or a path
            gets a form with POST; an address of the app's own scheme gets a link. Without an
            address, the button is left out.
        language: of the page; `reports` are already in a language.

    Raises:
        ValueError: an address would run a script.
    """
    texts = OWNER_TEXTS[language]
    name = escape(texts.this_app if app is None else app)
    unreadable = f"<p>{texts.unreadable}</p>"
    page = Path(__file__).with_name("owner.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        language=texts.language,
        title=texts.title.format(app=name),
        state=(texts.on if sending else texts.off).format(app=name),
        noise=texts.noise,
        actions=_action(opt_out_url, texts.switch_off) + _action(erase_url, texts.erase),
        received_title=texts.received,
        received=_received(registry, name, texts),
        waiting_title=texts.waiting,
        waiting=_waiting(reports, owned.waiting, texts) if owned else unreadable,
        reported_title=texts.reported,
        reports=_reports([each for each in reports if each.status != "queued"], texts, owned.erased)
        if owned
        else unreadable,
        ledger_title=texts.ledger,
        ledger=_ledger(owned.ledger, registry, texts) if owned else unreadable,
    )


def _received(registry: Registry | None, app: str, texts: OwnerTexts) -> str:
    named = {key: getattr(registry, key, None) for key in PEOPLE_KEYS}
    people = {key: escape(told) for key, told in named.items() if told is not None}
    parts = [getattr(texts, key).format(**people) for key in people]
    return "".join(f"<p>{part}</p>" for part in (*parts, texts.switch.format(app=app)))


def _action(url: str | None, text: str) -> str:
    if url is None:
        return ""
    parts = urlsplit(url.strip())
    scheme = parts.scheme.lower()
    if "\\" in url or (not scheme and parts.netloc):
        # A browser takes //host, and the same with backslashes, for an address of another site.
        raise ValueError("an address of the page that names a site begins with https://")
    if scheme in ("javascript", "data", "vbscript"):
        raise ValueError(f"an address of the page cannot begin with {scheme}:")
    if scheme in ("", "http", "https"):
        return f'<form method="post" action="{escape(url)}"><button>{text}</button></form>'
    return f'<a class="button" href="{escape(url)}">{text}</a>'


def _waiting(reports: Sequence[SentReport], waiting: int, texts: OwnerTexts) -> str:
    queued = [each for each in reports if each.status == "queued"]
    parts = []
    if waiting == 1:
        parts.append(texts.one_waits)
    elif waiting:
        parts.append(texts.many_wait.format(count=f"{waiting:,}"))
    if queued:
        parts.append(texts.queued)
    text = "".join(f"<p>{part}</p>" for part in parts or [texts.nothing_waits])
    return text + (_reports(queued, texts, None) if queued else "")


def _reports(reports: Sequence[SentReport], texts: OwnerTexts, erased: str | None) -> str:
    before = "" if erased is None else f"<p>{texts.erased.format(day=escape(erased))}</p>"
    if not reports:
        return before or f"<p>{texts.nothing_sent}</p>"
    items = []
    for each in reports[:_LISTED_REPORTS]:
        status = texts.statuses[each.status]
        if each.reason is not None:
            status = texts.refused.format(status=status, reason=escape(each.reason))
        words = texts.words.format(words=each.words[:1].upper() + each.words[1:])
        about = texts.about.format(
            metric=escape(each.metric), window=escape(each.window), status=status
        )
        items.append(
            f"<li><h3>{escape(each.description or each.metric)}</h3>"
            f'<p class="said">{escape(words)}</p><p class="facts">{about}</p>'
            f"{_likelihoods(each, texts)}</li>"
        )
    more = len(reports) - _LISTED_REPORTS
    rest = f"<p>{texts.more.format(count=f'{more:,}')}</p>" if more > 0 else ""
    return f"<ul>{''.join(items)}</ul>{rest}{before}"


def _likelihoods(report: SentReport, texts: OwnerTexts) -> str:
    if not report.likelihoods:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(value)}</th><td>{percent(each)}</td></tr>'
        for value, each in report.likelihoods.items()
    )
    return (
        f"<details><summary>{texts.how_often}</summary><table><thead><tr>"
        f'<th scope="col">{texts.if_true}</th><th scope="col">{texts.same}</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></details>"
    )


def _ledger(ledger: Iterable[Account], registry: Registry | None, texts: OwnerTexts) -> str:
    rows = []
    for each in ledger:
        if registry is None:
            left = texts.not_known
        elif each.metric not in registry.metrics:
            left = texts.not_asked
        elif each.left is None:
            left = texts.until_expiry
        else:
            left = f"{each.left:,}"
        rows.append(
            f'<tr><th scope="row">{escape(each.description or each.metric)}</th>'
            f"<td>{each.reports:,}</td><td>{left}</td><td>{certainty(each.spent)}</td></tr>"
        )
    if not rows:
        return f"<p>{texts.no_ledger}</p>"
    heads = "".join(f'<th scope="col">{head}</th>' for head in texts.ledger_heads)
    return (
        f'<div class="scroll" role="region" aria-labelledby="ledger" tabindex="0"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"<p>{texts.ledger_note}</p>"
    )


def certainty(spent: Fraction) -> str:
    """Out of 100: how often a 50/50 guess is right at most afterwards, rounded up; with more
    decimals where it would read 100."""
    chance = 100 / (1 + math.exp(-float(spent))) if spent < 600 else 100
    for digits in (1, 2, 3):
        rounded = math.ceil(chance * 10**digits - 1e-9) / 10**digits
        if rounded < 100:
            return f"{rounded:.{digits}f}"
    return "100"
