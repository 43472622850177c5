"""A plan for a segment in place of all devices: its figures are those of fewer devices."""

from __future__ import annotations

from dataclasses import dataclass

from deniable_estimator.messages import message

__all__ = ["PlannedSegment"]


@dataclass(frozen=True)
class PlannedSegment:
    """The segment that is planned, in place of all devices."""

    share: float
    """The part of all devices that it has."""
    all_devices: int

    @property
    def devices(self) -> int:
        """Its devices."""
        return max(1, round(self.share * self.all_devices))

    @property
    def words(self) -> str:
        """What the figures of the plan are of."""
        return message(
            "For a segment with {share:.4g} of {devices:,} devices. Every figure is of the segment "
            "alone: where it says how many devices are needed, all segments together need "
            "{times:,.4g} times as many.",
            share=self.share,
            devices=self.all_devices,
            times=1 / self.share,
        )

    def to_dict(self) -> dict[str, float]:
        """For JSON: with `devices` of the plan those of the segment."""
        return {"segment_share": self.share, "all_devices": self.all_devices}
