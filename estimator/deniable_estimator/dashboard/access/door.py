"""Lets a request in or not: by a token, by a session, or by a proxy that names a person; and the
pages to sign in, with a token once in a form or by a login link, and to sign out.

The cookie names a session, which the server keeps: signing out ends it for every copy of the
cookie. It is signed with a key derived from the dashboard's token, so that a new token ends all.
Sessions are in one small SQLite file, which all processes of a dashboard share and which survives a
restart. It holds a digest of each session's random id, and when it ends: whoever reads it cannot
sign in. The digest is also over the name and the hash of the token of the person whose session it
is: whoever is removed, or gets another token, is signed out at once. Wrong tokens are counted and
slowed (`trust.py`); a right one is let in at any time.
"""

from __future__ import annotations

import hmac
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode

from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    g,
    make_response,
    redirect,
    render_template,
    request,
)
from flask import session as cookie
from flask.sessions import SecureCookieSessionInterface
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import Authorization
from werkzeug.exceptions import Forbidden, Unauthorized

from deniable_estimator.dashboard.access.caller import (
    API,
    SESSION,
    allows,
    asked_for,
    caller,
    for_people,
    local,
    opened_link,
    over_tls,
    require_role,
    sent_here,
)
from deniable_estimator.dashboard.access.people import (
    SAFE,
    PeopleFile,
    Person,
    Role,
    find_person,
    hash_token,
    needed_role,
)
from deniable_estimator.dashboard.access.tokens import find_token, parse_tokens, read_tokens
from deniable_estimator.dashboard.access.trust import Guesses, ProxyHeaders
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.files import PEOPLE, SESSIONS, LastGood, SmallDatabase
from deniable_estimator.messages import message

_PERSON = "person"
"""Where the cookie has the name of the person whose session it is."""

SESSION_SECONDS = 12 * 3600
"""A session ends so long after it was used last."""

_RENEWED = SESSION_SECONDS // 12
"""It is written down that a session was used, if that stands there as longer ago than this."""

access = Blueprint("access", __name__)

_FOREIGN = message("The form was sent from another site. Open the dashboard and try again.")


class Sessions:
    """The open sessions, in a file, or for "" in the memory of this process.

    `clock` is POSIX time in seconds.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._run = SmallDatabase(
            path,
            "CREATE TABLE IF NOT EXISTS sessions (id BLOB PRIMARY KEY, ends REAL NOT NULL) "
            "WITHOUT ROWID",
        ).run

    def begin(self, belonging: str = "") -> str:
        """A new session; its id. It is open only for whoever names the same `belonging`."""
        session, now = secrets.token_urlsafe(32), self._clock()
        self._run("DELETE FROM sessions WHERE ends <= ?", now)
        self._run(
            "INSERT INTO sessions VALUES (?, ?)", _digest(session, belonging), now + SESSION_SECONDS
        )
        return session

    def holds(self, session: str, belonging: str = "") -> bool:
        """Whether the session is open; it then stays so for longer."""
        known, now = _digest(session, belonging), self._clock()
        found = self._run("SELECT ends FROM sessions WHERE id = ? AND ends > ?", known, now)
        later = now + SESSION_SECONDS
        if found and found[0][0] < later - _RENEWED:
            # On a full disk it ends when it would have without this use.
            with suppress(sqlite3.Error):
                self._run("UPDATE sessions SET ends = ? WHERE id = ?", later, known)
        return bool(found)

    def end(self, session: str, belonging: str = "") -> None:
        """Nobody is let in by this session any more."""
        self._run("DELETE FROM sessions WHERE id = ?", _digest(session, belonging))


def _digest(session: str, belonging: str) -> bytes:
    # An id has no line end, so no two pairs are one text.
    whole = f"{session}\n{belonging}" if belonging else session
    return sha256(whole.encode("utf-8", "surrogatepass")).digest()


class _Cookies(SecureCookieSessionInterface):
    def get_cookie_secure(self, app: Flask) -> bool:
        return over_tls()


class Door:
    """Compares tokens, and lets a login link through once.

    Raises:
        SettingsError: the sessions cannot be read.
    """

    def __init__(self, settings: DashboardSettings, clock: Callable[[], float]) -> None:
        self._owner = Person("", Role.OPERATOR, hash_token(settings.dashboard_token))
        self._lock = threading.Lock()
        self.link_left = settings.dashboard_login_link
        """Whether a login link can still open it."""
        self.people = PeopleFile(settings.kept(PEOPLE))
        self.sessions = Sessions(settings.kept(SESSIONS), clock)
        self.guesses = Guesses(settings.trusted_proxies)
        self.proxy = ProxyHeaders(settings)
        path = os.environ.get("DENIABLE_API_TOKENS_FILE")
        # A file is read anew when it changes: a token whose lines are removed opens nothing from
        # then on.
        given = () if path else parse_tokens(settings.api_tokens)
        self.tokens = LastGood(Path(path) if path else None, read_tokens, given)

    def person(self, token: str) -> Person | None:
        """Whose token this is; the dashboard's own is that of an operator without a name."""
        return find_person((*self.people.value.values(), self._owner), token)

    def opens_by_link(self, token: str) -> bool:
        """Whether a login link has the dashboard's token, and is the first to show it."""
        with self._lock:
            if not (self.link_left and find_person([self._owner], token)):
                return False
            self.link_left = False
            return True


def guard(app: Flask, settings: DashboardSettings, clock: Callable[[], float]) -> None:
    """Ask everybody for a token, a session or a proxy's word, but where `ROOMS` says otherwise.

    Raises:
        SettingsError: the sessions cannot be read.
    """
    own = settings.dashboard_token.encode()
    app.secret_key = hmac.digest(own, b"deniable dashboard session", "sha256")
    app.session_interface = _Cookies()
    app.config.update(
        SESSION_COOKIE_NAME="deniable_dashboard",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        PERMANENT_SESSION_LIFETIME=SESSION_SECONDS,
    )
    app.extensions["deniable_door"] = Door(settings, clock)
    app.before_request(_check)
    app.jinja_env.globals.update(caller=caller, allows=allows, door=door)


def door() -> Door:
    """The door of the current application."""
    found: Door = current_app.extensions["deniable_door"]
    return found


def remember(person: Person) -> None:
    """Begin a session of this person, whatever the browser had before."""
    cookie.clear()
    cookie.permanent = True
    session = door().sessions.begin(_belonging(person))
    cookie[SESSION] = session
    if person.name:
        cookie[_PERSON] = person.name


def signed_in() -> Person | None:
    """The person whose session the cookie names, if it is open."""
    session, name = cookie.get(SESSION), cookie.get(_PERSON, "")
    person = door().people.value.get(name) if name else Person("", Role.OPERATOR)
    if person is None or not isinstance(session, str):
        return None
    return person if door().sessions.holds(session, _belonging(person)) else None


def _belonging(person: Person) -> str:
    """What a session depends on beside its id: it ends when the person's name or token changes."""
    return f"{person.name}\n{person.hashed}" if person.name else ""


def _check() -> ResponseReturnValue | None:
    if request.method not in SAFE and sent_here() is False:
        raise Forbidden(_FOREIGN)
    if opened_link() is not None:
        # It has been let in for this view, or a file of it, alone (`sharing/opening.py`).
        return None
    needed = needed_role(request.method, request.endpoint)
    if needed is None:
        return None
    person = _by_proxy()
    credentials = request.authorization
    # A proxy that asks for a password by Basic may pass it on; that is no token of ours.
    if credentials is not None and not (person and credentials.type == "basic"):
        person = _by_authorization(credentials)
    elif person is None:
        person = signed_in()
        if person is None and for_people():
            target = "" if request.path == "/" else f"?{urlencode({'next': asked_for(request)})}"
            return redirect(f"/login{target}", 303)
        if person is None:
            raise Unauthorized("Sign in first, or send the token as Authorization: Bearer.")
    g.person = person
    require_role(needed)
    return None


def _by_proxy() -> Person | None:
    """The person whom a proxy names in this request."""
    person = door().proxy.person(request, door().people.value)
    if person and request.method not in SAFE and not sent_here():
        # The proxy's own cookie may come along with the form of any site, so silence is not enough.
        raise Forbidden(_FOREIGN)
    if person:
        # A session of before would let in whoever comes without the header next.
        cookie.pop(SESSION, None)
        cookie.pop(_PERSON, None)
    return person


def _by_authorization(credentials: Authorization) -> Person | None:
    """The person whose token the request carries; None for a token of the read API.

    Raises:
        Unauthorized: it is nobody's.
        ApiProblem: it is one of too many wrong ones of this network, or opens the API alone.
    """
    shown = (credentials.token or "") if credentials.type == "bearer" else ""
    entrance = door()
    if (person := entrance.person(shown)) is not None:
        return person
    if (holder := find_token(entrance.tokens.value, shown)) is None:
        entrance.guesses.wrong(request)
        raise Unauthorized(
            "The token is not one of the dashboard's. Send it as Authorization: Bearer."
        )
    if not request.path.startswith(API):
        raise ApiProblem(
            403,
            "token-out-of-scope",
            message("Forbidden"),
            "This token opens the read API alone.",
        )
    g.holder = holder
    return None


@access.get("/login")
def sign_in() -> ResponseReturnValue:
    """The form; or, by a login link, straight in."""
    target = local(request.args.get("next", "/"))
    token = request.args.get("token")
    if token is None:
        return redirect(target, 303) if signed_in() else _form(target)
    if door().link_left:
        if door().opens_by_link(token):
            remember(Person("", Role.OPERATOR))
            return redirect(target, 303)
        if (slowed := _wrong(target)) is not None:
            return slowed
    # The redirect takes the token out of the address bar whether or not it was right.
    return redirect("/" if signed_in() else "/login?used=1", 303)


@access.post("/login")
def sign_in_post() -> ResponseReturnValue:
    """Begin a session of the person whose token the form has."""
    target = local(request.form.get("next", "/"))
    person = door().person(request.form.get("token", "").strip())
    if person is None:
        return _wrong(target) or (_form(target, wrong=True), 403)
    remember(person)
    return redirect(target, 303)


@access.post("/logout")
def sign_out() -> ResponseReturnValue:
    """End the session, for whoever else has a copy of its cookie too."""
    session, person = cookie.get(SESSION), signed_in()
    if isinstance(session, str) and person is not None:
        door().sessions.end(session, _belonging(person))
    cookie.clear()
    return redirect("/login", 303)


def _wrong(target: str) -> Response | None:
    """Count a wrong token. The form with how long to wait, for a network that has shown too
    many."""
    try:
        door().guesses.wrong(request)
    except ApiProblem as error:
        if not for_people():
            raise
        refusal = make_response(_form(target, slowed=error.description), error.code)
        refusal.headers["Retry-After"] = str(error.retry_after)
        return refusal
    return None


def _form(target: str, *, wrong: bool = False, slowed: str | None = None) -> str:
    return render_template(
        "login.html",
        target=target,
        wrong=wrong,
        slowed=slowed,
        used=request.args.get("used") == "1",
    )
