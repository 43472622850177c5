"""Errors for programs: problem documents (RFC 9457), each with its own type."""

from __future__ import annotations

from typing import Any

from werkzeug.exceptions import HTTPException

__all__ = ["ApiProblem"]


class ApiProblem(HTTPException):
    """An error with a type, `urn:deniable:problem:KIND`, and what a program needs to react."""

    def __init__(
        self,
        status: int,
        kind: str,
        title: str,
        detail: str,
        *,
        retry_after: int | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.code = status
        self.kind = f"urn:deniable:problem:{kind}"
        self.title = title
        self.members = members
        self.retry_after = retry_after

    @property
    def name(self) -> str:
        return self.title

    def get_headers(self, *args: Any, **kwargs: Any) -> list[tuple[str, str]]:
        """The headers, with Retry-After if waiting helps."""
        headers = super().get_headers(*args, **kwargs)
        if self.retry_after is not None:
            headers.append(("Retry-After", str(self.retry_after)))
        return headers
