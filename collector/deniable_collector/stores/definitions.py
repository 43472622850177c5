"""Published schemes as every store saves them: the canonical JSON of their definition."""

from __future__ import annotations

import json
from functools import lru_cache

from deniable import Scheme, SchemeError
from deniable_collector.stores.errors import StoreError


class Unpublished(StoreError):
    """The store does not know the requested scheme."""


@lru_cache(maxsize=4096)
def read_scheme(canonical: bytes) -> Scheme:
    """The scheme that `Scheme.canonical()` wrote. Those read last are kept: readers ask for all
    schemes of a store again and again, and to build them takes long.

    Raises:
        StoreError: this version of deniable cannot read it.
    """
    try:
        return Scheme.from_definition(json.loads(canonical))
    except (SchemeError, ValueError) as error:
        raise StoreError(
            f"the store has a scheme that cannot be read: {error}. Another version of deniable has "
            "published it"
        ) from error


def unpublished(metric: str, fingerprint: str) -> Unpublished:
    """The error for a scheme that the store does not know."""
    return Unpublished(
        f"scheme {fingerprint} of metric {metric} was never published to this store: "
        "start the collector with the registry that declares it"
    )
