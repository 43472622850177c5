"""The link by which the current request was let in, if it was."""

from __future__ import annotations

from dataclasses import dataclass

from flask import has_request_context, request

from deniable_estimator.dashboard.sharing.links import SharedLink

__all__ = ["OPENED", "OpenedLink", "opened_link"]

OPENED = "deniable.opened_link"
"""Where the request's environment has it. Nothing that a client sends gets such a name."""


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """A link with the secret that has opened it."""

    link: SharedLink
    secret: str

    @property
    def address(self) -> str:
        """The path that opens the view."""
        return f"/shared/{self.secret}"


def opened_link() -> OpenedLink | None:
    """The link of this request; None for whoever signs in."""
    if not has_request_context():
        return None
    found: OpenedLink | None = request.environ.get(OPENED)
    return found
