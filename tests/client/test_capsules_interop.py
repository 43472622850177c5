"""Capsules between deniable and another implementation of HPKE, the package rfc9180.

It is not by the authors of pyhpke. RFC 9458's steps around it are written out here a second time.
"""

import struct

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from rfc9180 import AEADID, HPKE, KDFID, KEMID

from deniable.protocol.oblivious.capsules import KEMS, new_private_key, open_request, seal_request

SUITES = {"x25519": KEMID.DHKEM_X25519_HKDF_SHA256, "p256": KEMID.DHKEM_P256_HKDF_SHA256}


def other(kem):
    return HPKE(SUITES[kem], KDFID.HKDF_SHA256, AEADID.AES_128_GCM)


def response_key(enc, nonce, secret):
    """The key and nonce of a response (RFC 9458, 4.4)."""
    mac = HMAC(enc + nonce, SHA256())
    mac.update(secret)
    prk = mac.finalize()
    return (HKDFExpand(SHA256(), 16, b"key").derive(prk),
            HKDFExpand(SHA256(), 12, b"nonce").derive(prk))  # fmt: skip


@pytest.mark.parametrize("kem", KEMS)
def test_their_client_our_gateway(kem):
    """A request that the other implementation sealed is opened here, and it opens our response."""
    key = new_private_key(9, kem)
    header = struct.pack(">BHHH", 9, KEMS[kem], 1, 1)
    info = b"message/bhttp request\0" + header
    theirs = other(kem)
    public = theirs.kem.deserialize_public_key(key.configuration.public)
    enc, context = theirs.setup.setup_base_sender(public, info)
    opened = open_request({9: key}, header + enc + context.seal(b"", b"a batch"))
    assert opened.message == b"a batch"
    sealed = opened.seal_response(b"thanks")
    secret = context.export(b"message/bhttp response", 16)
    opener, nonce = response_key(enc, sealed[:16], secret)
    assert AESGCM(opener).decrypt(nonce, sealed[16:], None) == b"thanks"


@pytest.mark.parametrize("kem", KEMS)
def test_our_client_their_gateway(kem):
    """A request that was sealed here is opened by the other implementation; so is the response."""
    key = new_private_key(9, kem)
    sealed = seal_request(key.configuration, b"a batch")
    size = 7 + len(key.configuration.public)
    header, enc, text = sealed.capsule[:7], sealed.capsule[7:size], sealed.capsule[size:]
    info = b"message/bhttp request\0" + header
    context = other(kem).setup.setup_base_recipient(enc, key.loaded.raw, info)
    assert context.open(b"", text) == b"a batch"
    nonce = bytes(range(16))
    sealer, start = response_key(enc, nonce, context.export(b"message/bhttp response", 16))
    response = nonce + AESGCM(sealer).encrypt(start, b"thanks", None)
    assert sealed.open_response(response) == b"thanks"
