"""The digest as plain text, and as HTML that mail programs show: styles inline, no script."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from deniable_estimator.dashboard.language import LANGUAGES
from deniable_estimator.isolation import isolated
from deniable_estimator.messages import counted, message, sentence, translated
from deniable_estimator.watching.digest import DigestLine, WeeklyDigest

_TITLE = sentence("deniable: {first} to {last}")
_NONE = message("nothing")
_FOOT = message(
    "Changes are told from noise over all metrics together: in 20 digests at most one false change "
    "is expected."
)

_DARK = (
    "@media (prefers-color-scheme: dark) {"
    " .page { background: #14181d !important; color: #e6e9ed !important }"
    " .soft { color: #a3adb8 !important } a { color: #8ab8ff !important }"
    " .row { border-color: #37404a !important } }"
)
"""Mail programs that know dark screens read this; the others show the inline styles."""

_PAGE = (
    "margin:0;padding:24px;background:#ffffff;color:#1b2128;"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif"
)
_HEADING = "font-size:18px;margin:28px 0 8px"
_ROW = "padding:8px 0;border-top:1px solid #d5dae0;vertical-align:top"
_LINK = "color:#0b57c4;font-weight:600"
_SOFT = "color:#56616c"


def digest_title(digest: WeeklyDigest) -> str:
    """The subject of a mail."""
    return message(_TITLE, first=digest.first.isoformat(), last=digest.last.isoformat())


def as_text(digest: WeeklyDigest, language: str) -> str:
    """The digest for terminals and plain mail."""
    tell = _teller(language)
    lines = [tell(digest_title(digest)), ""]
    for heading, rows in _parts(digest):
        lines.append(f"{tell(heading)} ({len(rows)})")
        for each in rows:
            noted = [f"    {tell(each.noted)}"] if each.noted else []
            lines += [f"  {each.metric}: {tell(each.text)}", *noted, f"    {each.link}"]
        if not rows:
            lines.append(f"  {tell(_NONE)}")
        lines.append("")
    return "\n".join([*lines, tell(_FOOT), ""])


def as_html(digest: WeeklyDigest, language: str) -> str:
    """The digest as one page without anything that it would have to load."""
    tell = _teller(language)
    title = escape(tell(digest_title(digest)))
    body = [f'<h1 style="font-size:22px;margin:0">{title}</h1>']
    for heading, rows in _parts(digest):
        body.append(f'<h2 style="{_HEADING}">{escape(tell(heading))} ({len(rows)})</h2>')
        body.append(_rows_as_html(rows, tell))
    body.append(f'<p class="soft" style="{_SOFT}">{escape(tell(_FOOT))}</p>')
    return (
        f'<!doctype html>\n<html lang="{escape(language)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{_DARK}</style></head>\n"
        f'<body class="page" style="{_PAGE}">\n' + "\n".join(body) + "\n</body></html>\n"
    )


def _parts(digest: WeeklyDigest) -> list[tuple[str, tuple[DigestLine, ...]]]:
    since = counted(
        "Changed since {moment}, of {count} metric",
        "Changed since {moment}, of {count} metrics",
        digest.compared,
        moment=isolated(digest.moment),
    )
    return [
        *([(since, digest.since)] if digest.compared else []),
        (message("Changed"), digest.changed),
        (message("Needs attention"), digest.attention),
        (message("Not changed"), digest.unchanged),
    ]


def _rows_as_html(rows: tuple[DigestLine, ...], tell: Callable[[str], str]) -> str:
    if not rows:
        return f'<p class="soft" style="{_SOFT};margin:0">{escape(tell(_NONE))}</p>'
    cells = [
        f'<tr><td class="row" style="{_ROW};width:25%;padding-right:16px">'
        f'<a href="{escape(each.link)}" style="{_LINK}">{escape(each.metric)}</a></td>'
        f'<td class="row" style="{_ROW}">{escape(tell(each.text))}{_noted(each, tell)}</td></tr>'
        for each in rows
    ]
    return (
        '<table role="presentation" style="border-collapse:collapse;width:100%;max-width:800px">\n'
        + "\n".join(cells)
        + "\n</table>"
    )


def _noted(line: DigestLine, tell: Callable[[str], str]) -> str:
    if not line.noted:
        return ""
    return f'<br><span class="soft" style="{_SOFT}">{escape(tell(line.noted))}</span>'


def _teller(language: str) -> Callable[[str], str]:
    known = LANGUAGES[language]
    return lambda text: str(translated(text, known))
