"""Oblivious HTTP (RFC 9458): sending through a relay."""
