"""From a request to a batch: who may send, what and how much; the same for every server."""

from __future__ import annotations

from deniable_collector.batches.bodies import decompress, is_compressed
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.admission import Admission, Cors, origin_refused
from deniable_collector.serving.http import is_text, media_type
from deniable_collector.settings import Settings

JSON = "application/json"

COMPRESSED = 16
"""A compressed body may have this part of DENIABLE_MAX_BODY: text shrinks to less, and one that is
made to take long, of nothing but Huffman tables, then takes no longer than a good batch."""


class BatchReader:
    """Knows who may send a batch, and how large a body may be."""

    def __init__(self, intake: Intake, settings: Settings) -> None:
        self.intake = intake
        self.admission = Admission.of(settings)
        self.cors = Cors.of(settings)
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
        listed = self.cors is not None and self.cors.allows(origin)
        if origin and site != "same-origin" and not listed:
            raise origin_refused(origin)

    def limit(self, encoding: str) -> int:
        """The most bytes that a body may have as it is sent, in this encoding (`token`)."""
        return self._compressed_limit if is_compressed(encoding) else self._limit

    def decompressed(self, body: bytes, encoding: str) -> bytes:
        """The whole body, as it was before it was encoded.

        Raises:
            IntakeError: it is too long, or not in the encoding that it claims.
        """
        return decompress(body, encoding, self._limit)
