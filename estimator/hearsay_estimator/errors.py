"""The estimator's leaf on the error tree of `hearsay.errors`."""

from __future__ import annotations

from hearsay import HearsayError

__all__ = ["EstimateError"]


class EstimateError(HearsayError):
    """What was asked cannot be estimated; the message says what to ask instead."""
