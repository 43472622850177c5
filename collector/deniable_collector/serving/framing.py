"""What a request must be before anybody reads it, whatever server parsed it (RFC 9112).

Where two readers could see different requests in the same bytes, or differ in whom it is for,
nobody reads it: a proxy in front must not be made to see another request than the collector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from deniable_collector.refusals import not_http

_VERSIONS = ("1.1", "1.0")

_is_host = re.compile(rb"[A-Za-z0-9._~%!$&'()*+;=:\[\]-]*").fullmatch
"""Whether this can be a Host. It has no comma, so two lines, which are joined by one, are none."""

_PRINTABLE = re.compile(r"[\t\x20-\x7e]*")


def check_framing(version: str, headers: Mapping[bytes, bytes]) -> None:
    """Refuse a request of another version, without its one Host, or in an unknown coding.

    `version` is "1.1"; the names of `headers` are in lower case, and lines of one name joined.

    Raises:
        IntakeError: `not-http`.
    """
    if version not in _VERSIONS:
        raise not_http("no other version is served but 1.0")
    host = headers.get(b"host", None if version == "1.1" else b"")
    if host is None or not _is_host(host):
        raise not_http("a request has one Host header, which names a host")
    coding = headers.get(b"transfer-encoding")
    if coding is not None and (version != "1.1" or coding.lower() != b"chunked"):
        raise not_http("a body may come in chunks over HTTP/1.1, and in no other coding")


def token(value: str) -> str:
    """A header's value in lower case without white space around it; of odd bytes, no known one."""
    if not _PRINTABLE.fullmatch(value):
        return "?"
    return value.strip(" \t").lower()


def media_type(value: str) -> str:
    """A Content-Type in lower case and without its parameters; of odd bytes, no known one."""
    return token(value).partition(";")[0].rstrip(" \t")


def is_text(value: str) -> bool:
    """Whether a Content-Type is text/plain in UTF-8, or without a charset."""
    kind, *parameters = token(value).split(";")
    named = (each.partition("=") for each in parameters)
    charsets = {text.strip(' \t"') for name, _, text in named if name.strip(" \t") == "charset"}
    return kind.rstrip(" \t") == "text/plain" and charsets <= {"utf-8", "utf8"}
