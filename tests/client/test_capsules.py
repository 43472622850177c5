"""Capsules, against the example of RFC 9458 and the first vector of RFC 9180."""

import itertools
import json
from contextlib import suppress
from functools import partialmethod
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from pyhpke import AEADId, CipherSuite, KDFId, KEMId
from pyhpke.kem_key import KEMKey, KEMKeyPair

from deniable import WireError
from deniable.oblivious import sealed_size
from deniable.protocol.oblivious import capsules
from deniable.protocol.oblivious.binary_http import SMALLEST, padded_size
from deniable.protocol.oblivious.capsules import (
    AEADS,
    KEMS,
    KeyConfiguration,
    NoKey,
    PrivateKey,
    new_private_key,
    open_request,
    read_configurations,
    seal_request,
    write_configurations,
)
from deniable.protocol.oblivious.signed_keys import identity_of, sign, verified
from deniable.protocol.wire import SealedReport, encode_batch

_EXAMPLE = {
    name: bytes.fromhex(text)
    for name, text in json.loads(Path(__file__).with_name("rfc9458.json").read_text()).items()
}
SECRET, EPHEMERAL, NONCE = _EXAMPLE["secret"], _EXAMPLE["ephemeral"], _EXAMPLE["nonce"]
CONFIGURATION, MESSAGE = _EXAMPLE["configuration"], _EXAMPLE["message"]
CAPSULE, RESPONSE = _EXAMPLE["capsule"], _EXAMPLE["response"]
KEY = PrivateKey(1, KEMS["x25519"], SECRET)


def test_the_example_of_rfc_9458(monkeypatch):
    """Appendix A bit by bit: the key configuration, and the capsules of request and response."""
    assert KEY.configuration.encode() == CONFIGURATION
    assert KeyConfiguration.decode(CONFIGURATION) == KEY.configuration
    suite = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)
    private = suite.kem.deserialize_private_key(EPHEMERAL)
    public = KEMKey.from_pyca_cryptography_key(private.raw.public_key())
    known = partialmethod(CipherSuite.create_sender_context, eks=KEMKeyPair(private, public))
    monkeypatch.setattr(CipherSuite, "create_sender_context", known)
    monkeypatch.setattr(capsules, "_random", lambda size: NONCE[:size])
    sealed = seal_request(KEY.configuration, MESSAGE)
    assert sealed.capsule == CAPSULE
    opened = open_request({1: KEY}, CAPSULE)
    assert opened.message == MESSAGE
    assert opened.seal_response(bytes.fromhex("0140c8")) == RESPONSE
    assert sealed.open_response(RESPONSE) == bytes.fromhex("0140c8")


def test_the_numbers_of_algorithms():
    """The algorithms have the numbers and sizes of RFC 9180, 7.1 and 7.3: other implementations
    know them by these."""
    assert KEMS == {"p256": 0x0010, "x25519": 0x0020}
    assert AEADS == {0x0001: 16, 0x0002: 32, 0x0003: 32}


@pytest.mark.parametrize(("kem", "aead"), [*itertools.product(KEMS, AEADS)])
def test_there_and_back(kem, aead):
    """With every algorithm a message and its response come back; no two capsules are alike."""
    key = new_private_key(7, kem)
    assert len(key.secret) == 32
    object.__setattr__(key.configuration, "aeads", (aead,))
    sealed, again = (seal_request(key.configuration, b"a batch") for _ in range(2))
    assert sealed.capsule != again.capsule
    opened = open_request({7: key}, sealed.capsule)
    assert opened.message == b"a batch"
    response = opened.seal_response(b"thanks")
    assert sealed.open_response(response) == b"thanks"
    with pytest.raises(WireError):
        again.open_response(response)


def test_every_bit_counts():
    """A capsule with any bit changed, or cut off anywhere, is refused; so is such a response."""
    sealed = seal_request(KEY.configuration, b"a batch")
    for place in range(len(sealed.capsule)):
        damaged = bytearray(sealed.capsule)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(WireError):
            open_request({1: KEY}, bytes(damaged))
        with pytest.raises(WireError):
            open_request({1: KEY}, sealed.capsule[:place])
    response = open_request({1: KEY}, sealed.capsule).seal_response(b"thanks")
    for place in range(len(response)):
        damaged = bytearray(response)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(WireError):
            sealed.open_response(bytes(damaged))
        with pytest.raises(WireError):
            sealed.open_response(response[:place])


def test_keys_of_another_number_or_kind():
    """A capsule for an unknown key, or for another kind of key under its number, finds no key."""
    sealed = seal_request(KEY.configuration, b"a batch")
    for keys in ({}, {2: KEY}, {1: new_private_key(1, "p256")}, {1: new_private_key(1, "x25519")}):
        with pytest.raises(NoKey):
            open_request(keys, sealed.capsule)


@given(st.binary(max_size=300))
def test_noise_is_no_capsule(noise):
    """Any other bytes are refused, and never raise anything else."""
    with pytest.raises(WireError):
        open_request({noise[0] if noise else 0: KEY}, noise)


def test_a_public_key_of_small_order():
    """A gateway's key that would give everybody the same secret is refused."""
    with pytest.raises(WireError):
        seal_request(KeyConfiguration(1, KEMS["x25519"], bytes(32)), b"a batch")


def test_lists_of_keys():
    """A list comes back in its order, without kinds that are not known; a cut one is none."""
    keys = [new_private_key(3, "p256").configuration, KEY.configuration]
    document = write_configurations(keys)
    assert read_configurations(document) == keys
    foreign = b"\0\x03\x09\xff\xff"
    assert read_configurations(foreign + document) == keys
    only_sha512 = CONFIGURATION.replace(bytes.fromhex("0001000100010003"), b"\0\3\0\1\0\3\0\3")
    assert KeyConfiguration.decode(only_sha512) is None
    for cut in range(1, len(document)):
        with suppress(WireError):
            assert len(read_configurations(document[:cut])) < 2


def test_signed_lists():
    """The identity's list is taken; one of another identity, changed, or unsigned is refused."""
    gateway, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    document = write_configurations([KEY.configuration])
    identity = identity_of(gateway)
    assert verified(identity, document, sign(gateway, document)) == [KEY.configuration]
    changed = document[:-1] + bytes([document[-1] ^ 1])
    for text, signature in (
        (document, sign(other, document)),
        (changed, sign(gateway, document)),
        (document, ""),
        (document, "x" * 86),
        (document, "ü"),
    ):
        with pytest.raises(WireError, match="not signed by the gateway"):
            verified(identity, text, signature)
    with pytest.raises(WireError, match="no key that this SDK can use"):
        verified(identity, b"", sign(gateway, b""))


def batch(reports):
    return encode_batch("0" * 32, reports)


def test_sizes_hold_what_they_must():
    """A size holds the batch and what is around it, also of a body that is no batch."""
    for body in (b"", b"{}", b"x" * 5000, json.dumps({"reports": [1]}).encode(), b"[" * 9000):
        assert sealed_size(body, 80) >= len(body) + 80
    assert [padded_size(size) for size in (1, 1024, 1025, 4096)] == [1024, 1024, 2048, 4096]


@pytest.mark.parametrize("columns", [3, [3], [3, 4, 5], "AAAA"])
def test_room_for_the_longest_batch(columns):
    """A batch gets the next size exactly if the longest one of its metrics, whose row and columns
    have ten digits, would need it. The smallest sizes are those of the documentation."""
    assert SMALLEST == 1024
    most = 10**10 - 1
    longest = columns
    if not isinstance(columns, str):
        longest = most if isinstance(columns, int) else [most] * len(columns)
    size = len(batch([SealedReport("browser", "f" * 16, "2026-11-21", most, longest)]))
    for row in (0, 7):
        body = batch([SealedReport("browser", "f" * 16, "2026-11-21", row, columns)])
        assert sealed_size(body, 1024 - size) == 1024
        assert sealed_size(body, 1025 - size) == 2048
