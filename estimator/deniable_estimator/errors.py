"""The estimator's leaf on the error tree of `deniable.errors`."""

from __future__ import annotations

from deniable import DeniableError

__all__ = ["EstimateError"]


class EstimateError(DeniableError):
    """What was asked cannot be estimated; the message says what to ask instead."""
