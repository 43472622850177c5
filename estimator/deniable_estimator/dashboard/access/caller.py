"""Who sends the current request, and what that person or token may do."""

from __future__ import annotations

from flask import Request, g
from flask import session as cookie

from deniable import Metric
from deniable_estimator.dashboard.access.people import Person
from deniable_estimator.dashboard.access.requests import opened_link
from deniable_estimator.dashboard.access.roles import Role, needed_role
from deniable_estimator.dashboard.access.tokens import ApiToken
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.messages import message

SESSION = "session"
"""Where the cookie has the session's id."""


def caller() -> Person | None:
    """The person who sends this request; None for a program with a token of the read API, and for
    whoever has not signed in."""
    person: Person | None = g.get("person")
    return person


def allows(endpoint: str, method: str = "GET") -> bool:
    """Whether the person may use a route, so that pages offer what is allowed."""
    needed, person = needed_role(method, endpoint), caller()
    return needed is None or (person is not None and person.role >= needed)


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
    holder: ApiToken | None = g.get("holder")
    if holder is None:
        return
    if scope not in holder.scopes:
        raise ApiProblem(
            403,
            "missing-scope",
            "Missing scope",
            f"This needs the scope {scope}, which the token {holder.name} does not have. Make "
            "one that has it with `deniable dashboard token new`.",
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


def require_all(scope: str) -> None:
    """Let a request pass only if its token has the scope, and is limited to no metrics.

    Raises:
        ApiProblem: it has not, or is; the problem names no metric.
    """
    require(scope)
    holder: ApiToken | None = g.get("holder")
    if holder is not None and holder.limited:
        raise ApiProblem(
            403,
            "metric-out-of-reach",
            "Metric out of reach",
            f"The token {holder.name} is limited to some metrics, and this is about all.",
            scope=scope,
        )


def may_read(metric: Metric) -> bool:
    """Whether the request's token reaches the metric."""
    holder: ApiToken | None = g.get("holder")
    return holder is None or holder.reaches(metric)


def reads_all() -> bool:
    """Whether the request's token is limited to no metrics."""
    holder: ApiToken | None = g.get("holder")
    return holder is None or not holder.limited


def reads_settled() -> bool:
    """Whether the request's token sees only windows that take no reports any more."""
    holder: ApiToken | None = g.get("holder")
    return holder is not None and holder.settled


def reader_of(request: Request) -> str:
    """Who asks, for limits on what one reader may ask for: a token, a person, or a session."""
    if needed_role(request.method, request.endpoint) is None:
        return "anybody"
    opened = opened_link()
    if opened is not None:
        return f"link {opened.link.id}"
    holder: ApiToken | None = g.get("holder")
    if holder is not None:
        return f"token {holder.name}"
    person = caller()
    if person is not None and person.name:
        return f"person {person.name}"
    if request.authorization is not None:
        return "token"
    return f"session {cookie.get(SESSION)}"
