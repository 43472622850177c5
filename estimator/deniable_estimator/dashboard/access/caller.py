"""Who sends the current request, by a browser or not, from which site and by which link; and what
that person or token may do."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import Request, current_app, g, has_request_context, request
from flask import session as cookie

from deniable import Metric
from deniable_estimator.dashboard.access.people import Person, Role, needed_role
from deniable_estimator.dashboard.access.tokens import SCOPES, ApiToken
from deniable_estimator.dashboard.problems import ApiProblem, refusal
from deniable_estimator.dashboard.sharing.links import SharedLink
from deniable_estimator.messages import message

API = "/api/"
"""Where the read API begins."""

OPENED = "deniable.opened_link"
"""Where the request's environment has its link. Nothing that a client sends gets such a name."""

SESSION = "session"
"""Where the cookie has the session's id."""


def opened_link() -> SharedLink | None:
    """The link by which this request was let in; None for whoever signs in."""
    if not has_request_context():
        return None
    found: SharedLink | None = request.environ.get(OPENED)
    return found


def over_tls() -> bool:
    """Whether the browser speaks TLS: DENIABLE_PUBLIC_URL says so, or else the request."""
    public: str = current_app.config["DENIABLE_SETTINGS"].public_url
    return public.startswith("https:") if public else request.is_secure


def for_people() -> bool:
    """Whether to answer with a page: not to a program with a token, nor for a file."""
    return (
        request.authorization is None
        and "." not in request.path
        and not request.path.startswith(API)
        and request.accept_mimetypes.accept_html
    )


def asked_for(request: Request) -> str:
    """The path and query of a request."""
    return request.full_path.rstrip("?")


def local(target: str) -> str:
    """The target, if it is a page of ours; a path that begins with // names another host."""
    fine = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if fine else "/"


def sent_here() -> bool | None:
    """Whether a browser says that a page of ours sent this form; None if the request does not say.

    Browsers say so in Sec-Fetch-Site, older ones in Origin; what is no browser says nothing
    and carries no cookie that could be abused.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin")
    if origin is None:
        return None
    public = current_app.config["DENIABLE_SETTINGS"].public_url
    return origin == public if public else urlsplit(origin).netloc == request.host


def caller() -> Person | None:
    """The person who sends this request; None for a program with a token of the read API, and for
    whoever has not signed in."""
    person: Person | None = g.get("person")
    return person


def has_role(needed: Role) -> bool:
    """Whether this request is of a person with that role."""
    person = caller()
    return person is not None and person.role >= needed


_EVERYTHING = ApiToken("", "", frozenset(SCOPES))
"""What people may read: it has all scopes, and no limit."""


def token_shown() -> ApiToken:
    """The token of the read API that this request shows; that of people has no name."""
    found: ApiToken = g.get("holder", _EVERYTHING)
    return found


def allows(endpoint: str, method: str = "GET") -> bool:
    """Whether the person may use a route, so that pages offer what is allowed."""
    needed = needed_role(method, endpoint)
    return needed is None or has_role(needed)


def require_role(needed: Role) -> None:
    """Let a person pass only with that role. Tokens of the read API have scopes instead.

    Raises:
        ApiProblem: the role is less.
    """
    person = caller()
    if person is not None and person.role < needed:
        raise ApiProblem(
            403,
            "missing-role",
            message("Forbidden"),
            message(
                "This needs the role {needed}, and yours is {role}. An operator of this dashboard "
                "can give you another role.",
                needed=role_name(needed),
                role=role_name(person.role),
            ),
            role=needed.word,
        )


def role_name(role: Role) -> str:
    """The role in the words of pages."""
    names = {
        Role.READER: message("reader"),
        Role.ANALYST: message("analyst"),
        Role.OPERATOR: message("operator"),
    }
    return names[role]


def require(scope: str, metric: Metric | None = None) -> None:
    """Let a request pass only if its token has the scope, and reaches the metric.

    Raises:
        ApiProblem: it has not, or does not; the problem names what is missing.
    """
    holder = token_shown()
    if scope not in holder.scopes:
        raise refusal(
            403,
            "missing-scope",
            f"This needs the scope {scope}, which the token {holder.name} does not have. Make "
            "one that has it with `deniable dashboard token new`.",
            scope=scope,
        )
    if metric is not None and not holder.reaches(metric):
        raise refusal(
            403,
            "metric-out-of-reach",
            f"The token {holder.name} is limited to other metrics than {metric.name}.",
            scope=scope,
            metric=metric.name,
        )


def require_all(scope: str) -> None:
    """Let a request of this scope pass only if its token is limited to no metrics.

    Raises:
        ApiProblem: it is; the problem names no metric.
    """
    if (holder := token_shown()).limited:
        told = f"The token {holder.name} is limited to some metrics, and this is about all."
        raise refusal(403, "metric-out-of-reach", told, scope=scope)


def reader_of() -> str:
    """Who asks, for limits on what one reader may ask for: a link, a token, a person, or a session
    of the dashboard's own token."""
    opened, person = opened_link(), caller()
    if opened is not None:
        return f"link {opened.id}"
    if name := token_shown().name:
        return f"token {name}"
    return f"person {person.name}" if person and person.name else f"session {cookie.get(SESSION)}"
