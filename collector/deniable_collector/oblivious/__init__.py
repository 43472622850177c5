"""The two hops of Oblivious HTTP (RFC 9458): the gateway in the collector, and the relay."""
