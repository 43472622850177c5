"""The lists of strings that readers send."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from deniable import ValueListError
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.value_list import parse_values, value_texts
from deniable_estimator.asking.listed import Listed
from deniable_estimator.asking.results import digest
from deniable_estimator.dashboard.calculations import LIGHT
from deniable_estimator.dashboard.data import DataSource

_LIGHT_SIZE = 1 << 15
"""A longer list is read in another process: to bring some texts into normal form takes long."""


def sent_list(source: DataSource, sent: bytes | Sequence[str], name: str) -> Sequence[str]:
    """The strings that a reader has sent: lines of text, or a list of texts.

    Raises:
        ValueListError: the list, which the error calls `name`, has a mistake.
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    if isinstance(sent, bytes):
        count, size = len(sent.removesuffix(b"\n").split(b"\n")), len(sent)
    else:
        count, size = len(sent), sum(map(len, sent))
    if count > source.most_strings:
        mistake = CodedMessage(
            "too_many_strings",
            "has more than {most:,} strings; send fewer, or part of them at a time",
            most=source.most_strings,
        )
        raise ValueListError(name, None, mistake)
    text = isinstance(sent, bytes)
    parse = parse_values if text else value_texts
    if count <= LIGHT and size <= _LIGHT_SIZE:
        return parse(sent, name)  # type: ignore[arg-type]
    whole = sent
    if not isinstance(whole, bytes):
        whole = "\n".join(whole).encode("utf-8", "surrogatepass")
    key = digest("sent", name, text, count, hashlib.blake2b(whole, digest_size=20).digest())
    return source.kept(key, lambda: Listed(source.workers.run(parse, sent, name)))
