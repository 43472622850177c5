"""The language of a page, and the translation of its templates.

A language is chosen by `?lang=` (which a cookie remembers), else by the cookie, else by the
browser's Accept-Language, else it is English. English is written in the templates and the
code; every other language is one file of translations beside the templates.
"""

from __future__ import annotations

import gettext
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from flask import Flask, Response, g, has_request_context, request
from jinja2 import pass_eval_context
from jinja2.nodes import EvalContext
from markupsafe import Markup, escape

from deniable.protocol.coded_message import CodedMessage
from deniable_estimator.dashboard.access.caller import opened_link, over_tls
from deniable_estimator.messages import Dated, Language, Message, translated

TRANSLATIONS = Path(__file__).parent / "translations"
"""The catalogues: messages.pot of what there is to translate, and a file of each language."""

ENGLISH = Language("en", "English", gettext.NullTranslations())

_NAMES = {"zh-Hans": "简体中文"}
_ASKED = {"en": "en", "zh": "zh-Hans"}
"""The language that a browser requests, without region and script -> ours."""

PARAMETER = "lang"
COOKIE = "deniable_language"
_COOKIE_SECONDS = 365 * 86_400
_WORDS = (Message, Dated, CodedMessage)
_TRANSLATED = frozenset({"text/html", "image/svg+xml", "image/png"})


def _coded(text: str) -> Markup:
    """A sentence in which code stands between backticks."""
    found = re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(told(text))))
    return Markup(found)  # noqa: S704


def _read(tag: str) -> Language:
    with (TRANSLATIONS / f"{tag.replace('-', '_')}.po").open("rb") as file:
        catalog = read_po(file, locale=tag.replace("-", "_"))
    compiled = io.BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return Language(tag, _NAMES[tag], gettext.GNUTranslations(compiled))


LANGUAGES: Mapping[str, Language] = {"en": ENGLISH, **{tag: _read(tag) for tag in _NAMES}}
"""All of them, by tag."""


def offer_languages(app: Flask) -> None:
    """Translate every page of the application into the language of its request."""
    app.after_request(_say_which)
    environment = app.jinja_env
    environment.add_extension("jinja2.ext.i18n")
    environment.policies["ext.i18n.trimmed"] = True
    environment.finalize = told
    environment.filters["told"] = told
    environment.filters["coded"] = _coded
    environment.globals.update(
        gettext=_gettext,
        ngettext=_ngettext,
        pgettext=_pgettext,
        language=current_language,
        languages=tuple(LANGUAGES.values()),
        in_language=_in_language,
    )
    environment.newstyle_gettext = True  # type: ignore[attr-defined]


def current_language() -> Language:
    """The language of the current request; English outside of a request."""
    try:
        # A page asks a thousand times: each look at `g` or the request counts.
        chosen: Language = g.language
    except (AttributeError, RuntimeError):
        if not has_request_context():
            return ENGLISH
        chosen = g.language = _requested()
    return chosen


def told(text: Any) -> Any:
    """A message in the language of the page; anything else unchanged."""
    # Most of a page is not a message; looking up the language each time is slow.
    return translated(text, current_language()) if isinstance(text, _WORDS) else text


def _requested() -> Language:
    for tag in (request.args.get(PARAMETER, ""), request.cookies.get(COOKIE, "")):
        if tag in LANGUAGES:
            return LANGUAGES[tag]
    for tag, quality in request.accept_languages:
        found = _ASKED.get(tag.partition("-")[0].lower())
        if found is not None and quality > 0:
            return LANGUAGES[found]
    return ENGLISH


def _say_which(response: Response) -> Response:
    """Set the headers for the language of a page, and the cookie for a chosen language."""
    if response.mimetype not in _TRANSLATED or request.endpoint == "static":
        return response
    response.headers["Content-Language"] = current_language().tag
    response.vary.update(("Accept-Language", "Cookie"))
    chosen = request.args.get(PARAMETER, "")
    # A page of another site that frames a chart does not choose for the dashboard.
    if chosen in LANGUAGES and request.blueprint != "embedding":
        response.set_cookie(
            COOKIE,
            chosen,
            max_age=_COOKIE_SECONDS,
            secure=over_tls(),
            httponly=True,
            samesite="Lax",
        )
    return response


def _in_language(tag: str) -> str:
    """The address of this page in another language."""
    if (opened := opened_link()) is not None:
        return f"{opened.opened_at}?{urlencode([(PARAMETER, tag)])}"
    kept = [pair for pair in request.args.items(multi=True) if pair[0] != PARAMETER]
    return f"{request.path}?{urlencode([*kept, (PARAMETER, tag)])}"


@pass_eval_context
def _gettext(context: EvalContext, template: str, /, **variables: Any) -> str:
    return _filled(context, current_language().texts.gettext(template), variables)


@pass_eval_context
def _pgettext(context: EvalContext, use: str, template: str, /, **variables: Any) -> str:
    """Of a text with several translations, by its use: "share" is a noun in one place, a verb in
    another."""
    return _filled(context, current_language().texts.pgettext(use, template), variables)


@pass_eval_context
def _ngettext(context: EvalContext, one: str, several: str, count: int, /, **variables: Any) -> str:
    template = current_language().texts.ngettext(one, several, count)
    return _filled(context, template, {"num": count, **variables})


def _filled(context: EvalContext, template: str, variables: Mapping[str, Any]) -> str:
    texts = {name: told(each) for name, each in variables.items()}
    if not context.autoescape:
        return template % texts
    # Markup's own operator does the same in twice the time.
    return Markup(template % {name: escape(each) for name, each in texts.items()})  # noqa: S704
