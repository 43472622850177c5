"""Capsules: encapsulated requests and responses of Oblivious HTTP (RFC 9458).

A capsule is sealed for one
of the gateway's keys; the response is sealed with a secret that only this request and the gateway
have.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from deniable.protocol.errors import WireError
from deniable.protocol.randomness import system_bits

if TYPE_CHECKING:
    from pyhpke import CipherSuite, ContextInterface

KEMS: Mapping[str, int] = {"x25519": 0x0020, "p256": 0x0010}
"""The key exchanges by name: DHKEM of RFC 9180 with HKDF-SHA256. A browser has both, or P-256
alone."""

KDF = 0x0001
"""HKDF-SHA256, the only one that is used."""

AEADS: Mapping[int, int] = {0x0001: 16, 0x0002: 32, 0x0003: 32}
"""The bytes of a key of AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305."""

PUBLIC_BYTES: Mapping[int, int] = {0x0020: 32, 0x0010: 65}
"""The bytes of a public key of each KEM."""

SECRET_BYTES = 32
"""The bytes of a private key, and of what an exchange gives."""


@lru_cache(maxsize=16)
def suite_of(kem: int, aead: int) -> CipherSuite:
    """The suite of these algorithms, by their numbers in RFC 9180, 7."""
    from pyhpke import AEADId, CipherSuite, KDFId, KEMId

    return CipherSuite.new(KEMId(kem), KDFId(KDF), AEADId(aead))


REQUEST_TYPE, RESPONSE_TYPE = "message/ohttp-req", "message/ohttp-res"

KEY_PROBLEM = "https://iana.org/assignments/http-problem-types#ohttp-key"
"""The type of the problem that says that the gateway does not take this key (RFC 9458, 5.3)."""

_OFFERED = (0x0001, 0x0003)
_NONCE = 12
_TAG = 16
_REQUEST, _RESPONSE = b"message/bhttp request", b"message/bhttp response"
_HEADER = struct.Struct(">BHHH")


class NoKey(WireError):
    """The gateway has no key for this capsule, or the key does not open it."""

    def __init__(self, message: str) -> None:
        super().__init__("ohttp-key", message)


@dataclass(frozen=True)
class KeyConfiguration:
    """A public key of the gateway: its id, its KEM, its bytes, and the AEADs that it goes with."""

    id: int
    kem: int
    public: bytes
    aeads: tuple[int, ...] = _OFFERED

    def encode(self) -> bytes:
        """The key configuration of RFC 9458, 3.1."""
        pairs = b"".join(struct.pack(">HH", KDF, aead) for aead in self.aeads)
        head = struct.pack(">BH", self.id, self.kem)
        return head + self.public + struct.pack(">H", len(pairs)) + pairs

    @classmethod
    def decode(cls, text: bytes) -> KeyConfiguration | None:
        """Read one; None if it is of a KEM, or has only algorithms, that are not known here.

        Raises:
            WireError: it is no key configuration.
        """
        if len(text) < 3:
            raise _no_keys()
        number, kem = struct.unpack_from(">BH", text)
        size = PUBLIC_BYTES.get(kem)
        if size is None:
            return None
        told, pairs = text[3 + size : 3 + size + 2], text[3 + size + 2 :]
        if not pairs or len(pairs) % 4 or told != struct.pack(">H", len(pairs)):
            raise _no_keys()
        named = struct.iter_unpack(">HH", pairs)
        aeads = tuple(aead for kdf, aead in named if kdf == KDF and aead in AEADS)
        return cls(number, kem, text[3 : 3 + size], aeads) if aeads else None


def write_configurations(configurations: Iterable[KeyConfiguration]) -> bytes:
    """A list as `application/ohttp-keys` (RFC 9458, 3.2)."""
    each = (configuration.encode() for configuration in configurations)
    return b"".join(struct.pack(">H", len(text)) + text for text in each)


def read_configurations(document: bytes) -> list[KeyConfiguration]:
    """The keys in `application/ohttp-keys` that can be used here, in their order.

    Raises:
        WireError: it is no such list.
    """
    found, place = [], 0
    while place < len(document):
        (size,) = struct.unpack_from(">H", document.ljust(place + 2, b"\0"), place)
        text = document[place + 2 : place + 2 + size]
        if len(text) != size:
            raise _no_keys()
        found.append(KeyConfiguration.decode(text))
        place += 2 + size
    return [each for each in found if each is not None]


@dataclass(frozen=True)
class PrivateKey:
    """A key of the gateway: its id, its KEM, and the secret bytes."""

    id: int
    kem: int
    secret: bytes

    @cached_property
    def configuration(self) -> KeyConfiguration:
        """The public half."""
        public = type(self.loaded)(self.loaded.raw.public_key())
        return KeyConfiguration(self.id, self.kem, public.to_public_bytes())

    @cached_property
    def loaded(self) -> Any:
        """The key as pyhpke has it.

        Raises:
            ValueError: these bytes are no key of this KEM.
        """
        return suite_of(self.kem, _OFFERED[0]).kem.deserialize_private_key(self.secret)


def new_private_key(number: int, kem: str) -> PrivateKey:
    """A new key under this id, from the operating system's randomness."""
    pair = suite_of(KEMS[kem], _OFFERED[0]).kem.derive_key_pair(_random(64))
    # pyhpke 0.6.5 gives a key of P-256 in 256 bytes, with zeros in front.
    return PrivateKey(number, KEMS[kem], pair.private_key.to_private_bytes()[-SECRET_BYTES:])


@dataclass(frozen=True)
class _Exchange:
    """What both sides of a request have in common, and nobody else: how its response is sealed."""

    _enc: bytes
    _aead: int
    _context: ContextInterface

    def _response_key(self, nonce: bytes) -> tuple[Any, bytes]:
        """The key and the nonce of a response: HKDF-SHA256 (RFC 5869), whose expansion needs one
        block, as neither has more than 32 bytes. The standard library takes half of pyhpke's time
        for it."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

        size = AEADS[self._aead]
        secret = self._context.export(_RESPONSE, size)
        prk = hmac.digest(self._enc + nonce, secret, "sha256")
        key = hmac.digest(prk, b"key\1", "sha256")[:size]
        start = hmac.digest(prk, b"nonce\1", "sha256")[:_NONCE]
        return (ChaCha20Poly1305 if self._aead == 0x0003 else AESGCM)(key), start


@dataclass(frozen=True)
class Sealed(_Exchange):
    """A request for the gateway, and how to open its response."""

    capsule: bytes

    def open_response(self, capsule: bytes) -> bytes:
        """The message in the gateway's response.

        Raises:
            WireError: the gateway did not seal it for this request.
        """
        size = AEADS[self._aead]
        nonce, sealed = capsule[:size], capsule[size:]
        if len(sealed) < _TAG:
            raise WireError("malformed", "the gateway's response is cut off")
        key, start = self._response_key(nonce)
        try:
            message: bytes = key.decrypt(start, sealed, None)
            return message
        except Exception:
            raise WireError("malformed", "the response is not the gateway's") from None


def seal_request(configuration: KeyConfiguration, message: bytes) -> Sealed:
    """Seal a message for the gateway, each time in a new context (RFC 9458, 4.3).

    Raises:
        WireError: the public key is none.
    """
    aead = configuration.aeads[0]
    suite = suite_of(configuration.kem, aead)
    header = _HEADER.pack(configuration.id, configuration.kem, KDF, aead)
    try:
        public = suite.kem.deserialize_public_key(configuration.public)
        enc, context = suite.create_sender_context(public, info=_REQUEST + b"\0" + header)
    except Exception:
        raise WireError("malformed", "the gateway's public key is none") from None
    return Sealed(enc, aead, context, header + enc + context.seal(message))


@dataclass(frozen=True)
class Opened(_Exchange):
    """A request that was in a capsule, and how to seal its response."""

    message: bytes

    def seal_response(self, message: bytes) -> bytes:
        """The capsule of a response (RFC 9458, 4.4)."""
        nonce = _random(AEADS[self._aead])
        key, start = self._response_key(nonce)
        sealed: bytes = key.encrypt(start, message, None)
        return nonce + sealed


def open_request(keys: Mapping[int, PrivateKey], capsule: bytes) -> Opened:
    """Open a capsule with the key that it names.

    Raises:
        NoKey: no such key, or it does not open this capsule.
        WireError: the bytes are no capsule.
    """
    if len(capsule) < _HEADER.size:
        raise _cut_off()
    number, kem, kdf, aead = _HEADER.unpack_from(capsule)
    key = keys.get(number)
    if key is None:
        raise NoKey("key identifier unknown")
    if kem != key.kem or kdf != KDF or aead not in key.configuration.aeads:
        raise NoKey("the key has other algorithms")
    end = _HEADER.size + PUBLIC_BYTES[kem]
    enc, sealed = capsule[_HEADER.size : end], capsule[end:]
    if len(sealed) < _TAG:
        raise _cut_off()
    info = _REQUEST + b"\0" + capsule[: _HEADER.size]
    try:
        context = suite_of(kem, aead).create_recipient_context(enc, key.loaded, info=info)
        message = context.open(sealed)
    except Exception:
        # A damaged capsule, or one for another key that had this id.
        raise NoKey("the key does not open this capsule") from None
    return Opened(enc, aead, context, message)


def _random(size: int) -> bytes:
    return system_bits(8 * size).to_bytes(size, "big")


def _cut_off() -> WireError:
    return WireError("bad-capsule", "the capsule is cut off: send it again")


def _no_keys() -> WireError:
    return WireError("malformed", "this is no list of keys (application/ohttp-keys of RFC 9458)")
