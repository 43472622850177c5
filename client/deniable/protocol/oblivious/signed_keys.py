"""The gateway's list of keys, signed, so that a relay can pass it on and cannot change it.

A relay that could put its own key into the list could read every report. So the app carries the
public half of the gateway's identity, and takes only lists that were signed with it (ECDSA with
P-256 and SHA-256, which browsers have too). The list itself is that of RFC 9458.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from deniable.protocol.errors import WireError
from deniable.protocol.oblivious.capsules import KeyConfiguration, read_configurations

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

PATH = "/.well-known/ohttp-gateway"
"""Where keys are read and capsules are sent, at the gateway (RFC 9540) and at the relay alike."""

KEYS_TYPE = "application/ohttp-keys"

SIGNATURE = "Deniable-Signature"
"""The header with the signature of a list of keys."""

_CONTEXT = b"deniable gateway keys\0"
_IDENTITY_BYTES = 65
_HALF = 32


def identity_of(private: EllipticCurvePrivateKey) -> str:
    """What apps carry: the public point, uncompressed, in URL-safe base64 of 87 letters."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return _text(private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def check_identity(text: str) -> bytes:
    """The point in a gateway's identity.

    Raises:
        ValueError: it is none.
    """
    try:
        if re.fullmatch(r"[A-Za-z0-9_-]{87}", text):
            point = base64.urlsafe_b64decode(text + "=")
            if len(point) == _IDENTITY_BYTES and point[0] == 4:
                return point
    except (TypeError, binascii.Error):
        pass
    raise ValueError(
        "the gateway's identity must be 87 letters of URL-safe base64: copy it from "
        "`deniable relay key show`"
    )


def sign(private: EllipticCurvePrivateKey, document: bytes) -> str:
    """The signature of a list of keys: r and s in 64 bytes, in URL-safe base64."""
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    signature = private.sign(_CONTEXT + document, ec.ECDSA(SHA256()))
    halves = utils.decode_dss_signature(signature)
    return _text(b"".join(half.to_bytes(_HALF, "big") for half in halves))


def verified(identity: str, document: bytes, signature: str) -> list[KeyConfiguration]:
    """The keys in a list that the gateway of this identity signed; those that can be used here.

    Raises:
        WireError: it did not sign this list, or the list has no key that can be used.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        raw = base64.urlsafe_b64decode(signature + "==")
        if len(raw) != 2 * _HALF:
            raise ValueError
        halves = (int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big"))
        point = check_identity(identity)
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        public.verify(utils.encode_dss_signature(*halves), _CONTEXT + document, ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        raise WireError(
            "bad_signature",
            "the list of keys is not signed by the gateway whose identity the app carries",
        ) from None
    configurations = read_configurations(document)
    if not configurations:
        raise WireError("no_key", "the gateway has no key that this SDK can use")
    return configurations


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
