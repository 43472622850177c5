"""From a request to a batch: who may send, what and how much; the same for every server."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.batches.bodies import decompress, is_compressed
from deniable_collector.batches.catalogue import MustWait
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.admission import Admission, Cors, origin_refused
from deniable_collector.serving.http import is_text, media_type
from deniable_collector.serving.problems import answered
from deniable_collector.serving.responses import HttpResponse
from deniable_collector.settings import Settings

JSON = "application/json"

COMPRESSED = 16
"""A compressed body may have this part of DENIABLE_MAX_BODY: text shrinks to less, and one that is
made to take long, of nothing but Huffman tables, then takes no longer than a good batch."""


class ReadBody(NamedTuple):
    """What is in a body: a batch, or why it is none where only `answer` may say so. `answer` makes
    the response of what becomes of it, and `grown` is how many bytes were decompressed."""

    batch: Batch | Exception
    answer: Callable[[Receipt | Exception], HttpResponse] = answered
    grown: int = 0


class BatchReader:
    """Knows who may send a batch, and how large a body may be."""

    def __init__(self, intake: Intake, settings: Settings) -> None:
        self.intake = intake
        self.admission = Admission(settings)
        self.cors = Cors(settings.cors_origins)
        self._limit = settings.max_body
        self._compressed_limit = settings.max_body // COMPRESSED

    def check_type(self, content_type: str, origin: str = "", site: str = "") -> None:
        """Refuse a body of another media type than JSON. The arguments are the headers
        Content-Type, Origin and Sec-Fetch-Site.

        Raises:
            IntakeError: it is no batch's type; or text/plain, which counts as JSON, from a page
                that may not send. Browsers ask no leave for text/plain: without this check any
                page could make its visitors send made-up reports.
        """
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

    def limit(self, encoding: str) -> int:
        """The most bytes that a body may have as it is sent, in this encoding (`token`)."""
        return self._compressed_limit if is_compressed(encoding) else self._limit

    def read(self, body: bytes, encoding: str = "", wait: bool = True) -> ReadBody:
        """The batch in a body of that encoding; without `wait`, if that needs no waiting.

        Raises:
            IntakeError: it is none, too long, or not in the encoding that it claims.
            MustWait: it is compressed, or has reports for tallies that were not met before.
            StoreUnavailable: the published schemes cannot be read.
        """
        if not encoding:
            return ReadBody(self.intake.read(body, wait))
        if not wait:
            raise MustWait
        body = decompress(body, encoding, self._limit)
        return ReadBody(self.intake.read(body), grown=len(body))
