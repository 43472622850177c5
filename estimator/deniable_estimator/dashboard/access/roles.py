"""What each role may do: one table that names the least role for every route of the dashboard.

A route that is missing here opens to operators only, and `tests/estimator/dashboard/test_roles.py`
fails until its line is added.
"""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """A role may do whatever the roles before it may."""

    READER = 1
    ANALYST = 2
    OPERATOR = 3

    @property
    def word(self) -> str:
        """As files, headers and commands write it."""
        return self.name.lower()


ROLES = tuple(each.word for each in Role)
"""The roles, as files, headers and commands write them."""

ROUTES: dict[str, Role | None] = {
    # Before anybody has signed in.
    "GET static": None,
    "GET healthz": None,
    "GET access.sign_in": None,
    "POST access.sign_in_post": None,
    "POST access.sign_out": None,
    "GET api.openapi": None,
    # What a link opens is let in before this table (`sharing/opening.py`); all else is this page.
    "GET nothing_shared": None,
    # Pages, their files and their pictures.
    "GET pages.overview": Role.READER,
    "GET pages.metric_page": Role.READER,
    "GET pages.metric_file": Role.READER,
    "GET pages.trend_file": Role.READER,
    "GET pictures.metric_picture": Role.READER,
    "GET embedding.embedded": Role.READER,
    "GET embedding.embedded_board": Role.READER,
    "GET boards.boards_page": Role.READER,
    "GET boards.board_page": Role.READER,
    "GET pictures.trend_picture": Role.READER,
    "POST pages.metric_upload": Role.ANALYST,
    "POST pages.forget_upload": Role.ANALYST,
    "GET segments.segments_page": Role.READER,
    "GET segments.segments_file": Role.READER,
    "GET segments.segments_picture": Role.READER,
    "GET discovering.finds_page": Role.READER,
    "GET discovering.finds_file": Role.READER,
    "GET discovering.finds_picture": Role.READER,
    "GET comparing.comparison_page": Role.ANALYST,
    "GET comparing.comparison_file": Role.ANALYST,
    "GET planner.values": Role.ANALYST,
    "GET planner.number": Role.ANALYST,
    "GET planner.pair": Role.ANALYST,
    "GET planner.discovery": Role.ANALYST,
    "GET planner.retention": Role.ANALYST,
    "GET planner.lifetime": Role.ANALYST,
    "GET released.releases_page": Role.READER,
    "GET released.release_page": Role.READER,
    "GET released.release_file": Role.READER,
    "GET released.newest": Role.READER,
    "GET released.newest_file": Role.READER,
    # Links that share a view. Operators revoke those of others too.
    "GET sharing.share": Role.ANALYST,
    "POST sharing.make": Role.ANALYST,
    "GET sharing.links": Role.ANALYST,
    "POST sharing.revoke": Role.ANALYST,
    # The read API grants its other addresses (`api/__init__.py`).
    "GET api.nowhere": Role.READER,
}
"""The least role for each route, by its method and endpoint; None opens to everybody."""


def grant(role: Role, route: str) -> None:
    """Let people with this role use a route, `METHOD endpoint`, that the table does not name."""
    ROUTES[route] = role


def needed_role(method: str, endpoint: str | None) -> Role | None:
    """The least role that a request needs; None if it needs nobody to have signed in.

    Addresses that do not exist need a reader, so that a stranger cannot tell them from others.
    """
    if endpoint is None:
        return Role.READER
    if method not in ("GET", "HEAD", "OPTIONS"):
        return ROUTES.get(f"{method} {endpoint}", Role.OPERATOR)
    return ROUTES.get(f"GET {endpoint}", ROUTES.get(f"POST {endpoint}", Role.OPERATOR))


def role_of(word: object) -> Role | None:
    """The role that is written like this; None if there is none."""
    return Role[word.upper()] if isinstance(word, str) and word in ROLES else None
