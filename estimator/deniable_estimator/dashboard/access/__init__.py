"""Who may sign in: with a token, once in a form (then a cookie is set) or with each request.

The dashboard's token opens everything; tokens of the read API (`tokens.py`) open what their
scopes name, and no page.

The cookie names a session, which the server keeps (`sessions.py`): signing out ends it for every
copy of the cookie. It is signed with a key derived from the token, so that a new token ends all.
Wrong tokens are counted and slowed (`guesses.py`).
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Sequence
from urllib.parse import urlencode, urlsplit

from flask import (
    Blueprint,
    Flask,
    Request,
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
from werkzeug.exceptions import Forbidden, Unauthorized

from deniable import Metric
from deniable_estimator.dashboard.access.guesses import Guesses
from deniable_estimator.dashboard.access.sessions import SESSION_SECONDS, Sessions
from deniable_estimator.dashboard.access.tokens import ApiToken, digest_of_token, find_token
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.messages import message

__all__ = ["API", "access", "for_people", "guard", "may_read", "over_tls", "reader_of", "require"]

API = "/api/"
"""Where the read API begins."""

access = Blueprint("access", __name__)

_SESSION = "session"
_OPEN = frozenset(
    {
        *("access.sign_in", "access.sign_out", "static", "healthz", "api.openapi"),
        # It opens by a signature of its own.
        "embedding.embedded",
    }
)
"""Endpoints that need no token."""


class _Cookies(SecureCookieSessionInterface):
    def get_cookie_secure(self, app: Flask) -> bool:
        return over_tls()


class _Door:
    """Compares tokens, and lets a login link through once."""

    def __init__(
        self,
        token: str,
        login_link: bool,
        tokens: Sequence[ApiToken],
        sessions: Sessions,
        guesses: Guesses,
    ) -> None:
        self.sessions, self.guesses = sessions, guesses
        self._digest = digest_of_token(token)
        self._tokens = tuple(tokens)
        self._link_left = login_link
        self._lock = threading.Lock()

    def opens(self, token: str) -> bool:
        # Digests have one length, so the comparison tells nothing about the token's.
        return hmac.compare_digest(digest_of_token(token), self._digest)

    def holder(self, token: str) -> ApiToken | None:
        """The token of the read API that this is."""
        return find_token(self._tokens, token)

    def opens_by_link(self, token: str) -> bool:
        with self._lock:
            if not (self._link_left and self.opens(token)):
                return False
            self._link_left = False
            return True


def guard(
    app: Flask,
    token: str,
    *,
    login_link: bool,
    sessions: Sessions,
    guesses: Guesses,
    public_url: str = "",
    tokens: Sequence[ApiToken] = (),
) -> None:
    """Ask for the token everywhere but at the door; `tokens` open the read API."""
    app.secret_key = hmac.digest(token.encode(), b"deniable dashboard session", "sha256")
    app.session_interface = _Cookies()
    app.config.update(
        SESSION_COOKIE_NAME="deniable_dashboard",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        PERMANENT_SESSION_LIFETIME=SESSION_SECONDS,
        DENIABLE_PUBLIC_URL=public_url,
    )
    app.extensions["deniable_door"] = _Door(token, login_link, tokens, sessions, guesses)
    app.before_request(_check)
    app.register_blueprint(access)


def over_tls() -> bool:
    """Whether the browser speaks TLS: DENIABLE_PUBLIC_URL says so, or else the request."""
    public: str = current_app.config["DENIABLE_PUBLIC_URL"]
    return public.startswith("https:") if public else request.is_secure


@access.get("/login")
def sign_in() -> ResponseReturnValue:
    """The form; or, by a login link, straight in."""
    target = _local(request.args.get("next", "/"))
    token = request.args.get("token")
    if token is None:
        return redirect(target, 303) if _signed_in() else _form(target)
    door = _door()
    if (slowed := _slowed(target)) is not None:
        return slowed
    if not door.opens(token):
        door.guesses.wrong(request)
    # The redirect takes the token out of the address bar whether or not it was right.
    if door.opens_by_link(token):
        _remember()
        return redirect(target, 303)
    return redirect("/" if _signed_in() else "/login?used=1", 303)


@access.post("/login")
def sign_in_post() -> ResponseReturnValue:
    target = _local(request.form.get("next", "/"))
    door = _door()
    if (slowed := _slowed(target)) is not None:
        return slowed
    if not door.opens(request.form.get("token", "").strip()):
        door.guesses.wrong(request)
        return _form(target, wrong=True), 403
    _remember()
    return redirect(target, 303)


@access.post("/logout")
def sign_out() -> ResponseReturnValue:
    """End the session, for whoever else has a copy of its cookie too."""
    session = cookie.get(_SESSION)
    if isinstance(session, str):
        _door().sessions.end(session)
    cookie.clear()
    return redirect("/login", 303)


def _check() -> ResponseReturnValue | None:
    if request.method not in ("GET", "HEAD", "OPTIONS") and _from_elsewhere(request):
        raise Forbidden(
            message("The form was sent from another site. Open the dashboard and try again.")
        )
    if request.endpoint in _OPEN or request.endpoint == "access.sign_in_post":
        return None
    credentials = request.authorization
    if credentials is not None:
        shown = (credentials.token or "") if credentials.type == "bearer" else ""
        door = _door()
        door.guesses.check(request)
        if door.opens(shown):
            return None
        if (holder := door.holder(shown)) is None:
            door.guesses.wrong(request)
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
    if _signed_in():
        return None
    if for_people(request):
        target = "" if request.path == "/" else f"?{urlencode({'next': _asked_for(request)})}"
        return redirect(f"/login{target}", 303)
    raise Unauthorized("Sign in first, or send the token as Authorization: Bearer.")


def require(scope: str, metric: Metric | None = None) -> None:
    """Let a request pass only if its token has the scope, and reaches the metric.

    Raises:
        ApiProblem: it has not, or does not; the problem names what is missing.
    """
    holder: ApiToken | None = g.get("holder")
    if holder is None:
        return
    if scope not in holder.scopes:
        raise ApiProblem(
            403,
            "missing-scope",
            "Missing scope",
            f"This needs the scope {scope}, which the token {holder.name} does not have. Make "
            "one that has it with `deniable token new`.",
            scope=scope,
        )
    if metric is not None and not holder.reaches(metric):
        raise ApiProblem(
            403,
            "metric-out-of-reach",
            "Metric out of reach",
            f"The token {holder.name} is limited to other metrics than {metric.name}.",
            scope=scope,
            metric=metric.name,
        )


def may_read(metric: Metric) -> bool:
    """Whether the request's token reaches the metric."""
    holder: ApiToken | None = g.get("holder")
    return holder is None or holder.reaches(metric)


def reader_of(request: Request) -> str:
    """Who asks, for limits on what one reader may ask for: a token, or a session."""
    if request.endpoint in _OPEN:
        return "embedded"
    holder: ApiToken | None = g.get("holder")
    if holder is not None:
        return f"token {holder.name}"
    if request.authorization is not None:
        return "token"
    return f"session {cookie.get(_SESSION)}"


def for_people(request: Request) -> bool:
    """Whether to answer with a page: not to a program with a token, nor for a file."""
    return (
        request.authorization is None
        and "." not in request.path
        and not request.path.startswith(API)
        and request.accept_mimetypes.accept_html
    )


def _asked_for(request: Request) -> str:
    return request.full_path.rstrip("?")


def _from_elsewhere(request: Request) -> bool:
    """Whether a browser says that another site sent this form.

    Browsers say so in Sec-Fetch-Site, older ones in Origin; what is no browser says nothing
    and carries no cookie that could be abused.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("Origin")
    if origin is None:
        return False
    public = current_app.config["DENIABLE_PUBLIC_URL"]
    return origin != public if public else urlsplit(origin).netloc != request.host


def _local(target: str) -> str:
    """The target, if it is a page of ours; a path that begins with // names another host."""
    fine = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if fine else "/"


def _slowed(target: str) -> Response | None:
    """The form with how long to wait, for a network that has shown too many wrong tokens."""
    try:
        _door().guesses.check(request)
    except ApiProblem as error:
        if not for_people(request):
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


def _remember() -> None:
    cookie.clear()
    cookie.permanent = True
    cookie[_SESSION] = _door().sessions.begin()


def _signed_in() -> bool:
    if "signed_in" not in g:
        session = cookie.get(_SESSION)
        g.signed_in = isinstance(session, str) and _door().sessions.holds(session)
    signed_in: bool = g.signed_in
    return signed_in


def _door() -> _Door:
    door: _Door = current_app.extensions["deniable_door"]
    return door
