"""From a request to a batch: who may send, what and how much; the same for every server."""

from __future__ import annotations

from deniable_collector.batches.batch import Batch
from deniable_collector.batches.binary import MEDIA_TYPE
from deniable_collector.batches.bodies import IntakeError, is_compressed
from deniable_collector.intake import Intake
from deniable_collector.serving import framing
from deniable_collector.serving.admission import Admission
from deniable_collector.serving.cors import Cors, origin_refused
from deniable_collector.settings import Settings

__all__ = ["COMPRESSED", "JSON", "BatchReader"]

JSON = "application/json"

COMPRESSED = 16
"""A compressed body may have this part of DENIABLE_MAX_BODY: text shrinks to less, and one that is
made to take long, of nothing but Huffman tables, then takes no longer than a good batch."""


class BatchReader:
    """Knows how to read each media type, and how large a body may be."""

    def __init__(self, intake: Intake, settings: Settings) -> None:
        self.intake = intake
        self.admission = Admission.of(settings)
        self.cors = Cors.of(settings)
        self._limits = {JSON: settings.max_body, MEDIA_TYPE: settings.max_binary_body}
        self._grown_limit = settings.max_body
        self.compressed_limit = settings.max_body // COMPRESSED
        """The most bytes of a body of either type before decompression, if it is compressed."""

    def media_type(self, content_type: str, origin: str, site: str) -> str:
        """The media type of a batch, in lower case and without its parameters; text/plain counts as
        JSON. The arguments are the headers Content-Type, Origin and Sec-Fetch-Site.

        Raises:
            IntakeError: it is text/plain from a page that may not send. Browsers ask no leave for
                it, unlike for the other types: without this check any page could make its visitors
                send made-up reports.
        """
        if not framing.is_text(content_type):
            return framing.media_type(content_type)
        # A browser names the page's origin, and no page can change what it names.
        listed = self.cors is not None and self.cors.allows(origin)
        if origin and site != "same-origin" and not listed:
            raise origin_refused()
        return JSON

    def limit(self, media_type: str, encoding: str = "") -> int:
        """The most bytes that a body of this type may have, decompressed.

        A compressed one may not have more than a body of JSON: a few kilobytes are not to cost as
        much as a large binary batch, which hardly shrinks and is sent plain. `media_type` is in
        lower case and without its parameters, `encoding` a Content-Encoding in lower case.

        Raises:
            IntakeError: this is not a batch's media type.
        """
        limit = self._limits.get(media_type)
        if limit is None:
            raise IntakeError(
                "http-415",
                415,
                "Unsupported Media Type",
                f"send Content-Type: {JSON} (or text/plain in UTF-8, with the same content), or "
                f"{MEDIA_TYPE} for a binary batch",
            )
        return min(limit, self._grown_limit) if is_compressed(encoding) else limit

    def read(self, media_type: str, body: bytes) -> Batch:
        """The batch in a decompressed body.

        Raises:
            IntakeError, StoreUnavailable: as `Intake.read` does.
        """
        if media_type == MEDIA_TYPE:
            return self.intake.read_binary(body)
        return self.intake.read(body)

    def read_fast(self, media_type: str, encoding: str, body: bytes) -> Batch | None:
        """The fast path: the batch, if it can be read at once without waiting; else None."""
        if encoding:
            return None
        if media_type == JSON:
            return self.intake.read_fast(body)
        return self.intake.read_binary_fast(body) if media_type == MEDIA_TYPE else None
