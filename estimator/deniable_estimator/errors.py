"""The estimator's error, below `deniable.errors.DeniableError`."""

from __future__ import annotations

from deniable import DeniableError

__all__ = ["EstimateError"]


class EstimateError(DeniableError):
    """The request cannot be estimated; the message says what to request instead."""
