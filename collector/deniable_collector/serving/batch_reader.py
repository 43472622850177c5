"""From a request to a batch: who may send, what and how much; the same for every server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.batches.bodies import decompress
from deniable_collector.batches.catalogue import MustWait
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.admission import Admission, Cors, origin_refused
from deniable_collector.serving.http import Request, is_text, media_type, token
from deniable_collector.serving.responses import HttpResponse, answered
from deniable_collector.settings import Settings

JSON = "application/json"
_JSON = JSON.encode()

COMPRESSED = 16
"""A compressed body may have this part of DENIABLE_MAX_BODY: text shrinks to less, and one that is
made to take long, of nothing but Huffman tables, then takes no longer than a good batch."""

_DESCRIBED = (b"content-type", b"origin", b"sec-fetch-site")
"""Headers that say what a body is, and which page sends it."""


class ReadBody(msgspec.Struct, frozen=True):
    """What is in a body: a batch, or why it is none where only `answer` may say so. `answer` makes
    the response of what becomes of it, and `grown` is how many bytes were decompressed."""

    batch: Batch | Exception
    answer: Callable[[Receipt | Exception], HttpResponse] = answered
    grown: int = 0


class Expected(NamedTuple):
    """What a header says of its body: the most bytes that it may have as it is sent, what reads it,
    and whether it is compressed.

    `read` takes a body, and whether it may wait. It raises IntakeError where it is no batch, and
    MustWait if it would have to wait: it is compressed, or has reports for tallies that were not
    met before.
    """

    limit: int
    read: Callable[[bytes, bool], ReadBody]
    compressed: bool = False


class BatchReader:
    """Knows who may send a batch, and how large a body may be."""

    def __init__(self, intake: Intake, settings: Settings) -> None:
        self.intake = intake
        self.admission = Admission(settings)
        self.cors = Cors(settings.cors_origins)
        self._limit = settings.max_body
        self._plain = Expected(self._limit, lambda body, wait: ReadBody(intake.read(body, wait)))

    def admit(self, request: Request) -> Expected:
        """Check who sends a batch, and what is announced.

        Raises:
            IntakeError: 429 if its network sends too much, 401 without a good key; or no batch
                comes like this.
        """
        # The rate comes first, so that it limits how fast keys can be guessed.
        self.admission.pace(request.connection.peer, request.headers)
        self.admission.check_key(request.headers, request.query)
        return self.expect(request.headers)

    def expect(self, headers: Mapping[bytes, bytes]) -> Expected:
        """What is announced by a header.

        Raises:
            IntakeError: it is no batch's type; or text/plain, which counts as JSON, from a page
                that may not send. Browsers ask no leave for text/plain: without this check any
                page could make its visitors send made-up reports.
        """
        if headers.get(b"content-type") != _JSON:
            self._check_type(*(headers.get(name, b"").decode("latin-1") for name in _DESCRIBED))
        encoding = headers.get(b"content-encoding", b"").decode("latin-1")
        # Most have none.
        if not encoding or (encoding := token(encoding)) in ("", "identity"):
            return self._plain

        def read(body: bytes, wait: bool) -> ReadBody:
            if not wait:
                raise MustWait
            body = decompress(body, encoding, self._limit)
            return ReadBody(self.intake.read(body), grown=len(body))

        return Expected(self._limit // COMPRESSED, read, compressed=True)

    def _check_type(self, content_type: str, origin: str, site: str) -> None:
        if media_type(content_type) == JSON:
            return
        if not is_text(content_type):
            raise IntakeError(
                "http-415",
                f"send Content-Type: {JSON} (or text/plain in UTF-8, with the same content)",
            )
        # A browser names the page's origin, and no page can change what it names.
        if origin and site != "same-origin" and not self.cors.allows(origin):
            raise origin_refused(origin)
