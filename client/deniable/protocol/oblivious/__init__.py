"""Oblivious HTTP (RFC 9458): the form of requests, capsules and keys."""
