"""Two hops after Oblivious HTTP (RFC 9458): a relay sees addresses and no report, the gateway
reports and no address (docs/how-to/two-hops.md)."""

from deniable.device.oblivious.transport import ObliviousTransport

__all__ = ["ObliviousTransport"]
