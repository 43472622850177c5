"""What a request says of itself: whether a browser sent it, over what, from which site, and by
which link it was let in."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import Request, current_app, has_request_context, request

from deniable_estimator.dashboard.sharing.links import SharedLink

API = "/api/"
"""Where the read API begins."""

OPENED = "deniable.opened_link"
"""Where the request's environment has its link. Nothing that a client sends gets such a name."""


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
    """The link by which this request was let in; None for whoever signs in."""
    if not has_request_context():
        return None
    found: OpenedLink | None = request.environ.get(OPENED)
    return found


def over_tls() -> bool:
    """Whether the browser speaks TLS: DENIABLE_PUBLIC_URL says so, or else the request."""
    public: str = current_app.config["DENIABLE_PUBLIC_URL"]
    return public.startswith("https:") if public else request.is_secure


def for_people(request: Request) -> bool:
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


def from_elsewhere(request: Request) -> bool:
    """Whether a browser says that another site sent this form.

    Browsers say so in Sec-Fetch-Site, older ones in Origin; what is no browser says nothing
    and carries no cookie that could be abused.
    """
    return _sent_here(request) is False


def from_here(request: Request) -> bool:
    """Whether a browser says that a page of ours sent this form."""
    return _sent_here(request) is True


def local(target: str) -> str:
    """The target, if it is a page of ours; a path that begins with // names another host."""
    fine = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if fine else "/"


def _sent_here(request: Request) -> bool | None:
    """Whether a page of ours sent the form; None if the request does not say."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin")
    if origin is None:
        return None
    public = current_app.config["DENIABLE_PUBLIC_URL"]
    return origin == public if public else urlsplit(origin).netloc == request.host
