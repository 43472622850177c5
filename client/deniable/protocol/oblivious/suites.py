"""The algorithms of HPKE (RFC 9180) that capsules use, from pyhpke.

The extra `oblivious` installs pyhpke; it is imported when a suite is first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyhpke import CipherSuite, KEMInterface, KEMKeyInterface

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

_KEYS = 16
"""Of how many private keys the public half is kept; a gateway has fewer."""


@lru_cache(maxsize=16)
def suite_of(kem: int, aead: int) -> CipherSuite:
    """The suite of these algorithms, by their numbers in RFC 9180, 7."""
    from pyhpke import AEADId, CipherSuite, KDFId, KEMId

    suite = CipherSuite.new(KEMId(kem), KDFId(KDF), AEADId(aead))
    return CipherSuite(_kem_of(kem), suite.kdf, suite.aead)


@lru_cache(maxsize=2)
def _kem_of(number: int) -> KEMInterface:
    """pyhpke's key exchange, which writes the public half of a private key once: pyhpke's own
    computes it anew for each capsule, a tenth of the time that opening one takes."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDH
    from pyhpke import KEMId
    from pyhpke.kem import KEM

    curve = () if number == KEMS["x25519"] else (ECDH(),)
    public = lru_cache(maxsize=_KEYS)(partial(public_bytes, number))

    class KnownKeysKem(KEM):
        def decap(
            self, enc: bytes, skr: KEMKeyInterface, pks: KEMKeyInterface | None = None
        ) -> bytes:
            """Decap of RFC 9180, 4.1.

            Raises:
                ValueError: it was asked to authenticate the sender, which is not done here, or
                    `enc` is no public key.
            """
            if pks is not None:
                raise ValueError("capsules have no authenticated sender")
            shared = skr.raw.exchange(*curve, self.deserialize_public_key(enc).raw)
            return self.extract_and_expand(shared, enc + public(skr), SECRET_BYTES)

    return KnownKeysKem(KEMId(number))


def public_bytes(kem: int, private: Any) -> bytes:
    """The public half of pyhpke's private key."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = private.raw.public_key()
    if kem == KEMS["x25519"]:
        raw: bytes = public.public_bytes_raw()
    else:
        raw = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return raw
