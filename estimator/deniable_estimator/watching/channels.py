"""Sends messages to a webhook, or by Apprise to mail, chats and phones.

An address may hold a secret, and so may what a library or a server says of it. So an error says
which channel failed, and of HTTP the status; nothing else leaves this module.
"""

from __future__ import annotations

import json
import logging
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from deniable import DeniableError

MOST_MESSAGES = 100
"""The most messages in one delivery."""

_SECONDS = 15.0

CHANNEL_KEYS = ("webhook", "apprise")
"""The keys of a channel in a file: it has exactly one of them."""


@dataclass(frozen=True, slots=True)
class NoticeChannel:
    """Where messages are sent. `address` may hold a secret: it is never shown."""

    name: str
    kind: str
    """One of `CHANNEL_KEYS`."""
    address: str

    def __repr__(self) -> str:
        """Without the address."""
        return f"NoticeChannel({self.name!r}, {self.kind!r})"


class ChannelError(DeniableError):
    """A channel did not take a delivery; `channel` is its name."""

    def __init__(self, channel: str, reason: str) -> None:
        self.channel = channel
        super().__init__(f"channel {channel!r} failed: {reason}; it is tried again at the next run")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET without its body."""

    def redirect_request(self, *_: Any) -> None:
        return None


def unusable(channel: NoticeChannel) -> str | None:
    """What is wrong with its address; None if something can be sent there."""
    if channel.kind == "webhook":
        try:
            parts = urlsplit(channel.address)
        except ValueError:
            return "must be an address, like https://chat.acme.example/hook"
        fine = parts.scheme in ("http", "https") and parts.hostname
        return None if fine else "must begin with https:// or http:// and name a host"
    try:
        with _apprise() as apprise:
            known = apprise.Apprise().add(channel.address)
    except ImportError:
        return 'needs Apprise: pip install "deniable[watch]"'
    if known:
        return None
    return "is no address that Apprise knows, like mailtos://user:password@host?to=..."


def send(channel: NoticeChannel, title: str, messages: Sequence[Mapping[str, Any]]) -> None:
    """Send the messages in one delivery.

    Raises:
        ChannelError: the channel did not take it.
    """
    if channel.kind == "webhook":
        _post(channel, {"schema": 1, "title": title, "messages": list(messages)})
    else:
        body = "\n\n".join(str(each["body"]) for each in messages)
        _notify(channel, title, body)


def _post(channel: NoticeChannel, document: Mapping[str, Any]) -> None:
    request = urllib.request.Request(  # noqa: S310  (the rules allow http and https alone)
        channel.address,
        json.dumps(document, ensure_ascii=False).encode(),
        {"Content-Type": "application/json", "User-Agent": "deniable"},
    )
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=_SECONDS):
            pass
    except urllib.error.HTTPError as error:
        error.close()
        raise ChannelError(channel.name, f"it responded with {error.code}") from None
    except (OSError, HTTPException, ValueError):
        raise ChannelError(channel.name, "it cannot be reached") from None


def _notify(channel: NoticeChannel, title: str, body: str) -> None:
    try:
        with _apprise() as apprise:
            notifier = apprise.Apprise()
            taken = notifier.add(channel.address) and notifier.notify(
                body=body, title=title, body_format=apprise.NotifyFormat.TEXT
            )
    except Exception:
        # A plugin may raise anything, with the address in it.
        taken = False
    if not taken:
        raise ChannelError(channel.name, "Apprise could not send it")


@contextmanager
def _apprise() -> Iterator[Any]:
    """The library, kept from writing addresses into a log and warnings about its own imports."""
    logger = logging.getLogger("apprise")
    logger.handlers = [logging.NullHandler()]
    logger.propagate = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import apprise

        yield apprise
