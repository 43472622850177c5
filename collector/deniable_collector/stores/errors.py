"""Why a store refuses a call."""

from __future__ import annotations

from deniable import DeniableError


class StoreError(DeniableError):
    """The store refused the call, and would refuse it later too."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or is not ready; `retry_after` is the wait in seconds."""

    def __init__(self, message: str, retry_after: float = 5.0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class NotKept(StoreError):
    """Windows were dropped, and only the sums of longer periods were kept.

    `windows` are those that cannot be had alone, `periods` the weeks, months and quarters that
    have them; neither is complete in all cases.
    """

    def __init__(self, windows: tuple[str, ...], periods: tuple[str, ...]) -> None:
        self.windows = windows
        self.periods = periods
        kept = f"; kept are {', '.join(periods)}" if periods else ""
        super().__init__(f"{windows[0]} to {windows[-1]} were dropped{kept}: ask for whole periods")
