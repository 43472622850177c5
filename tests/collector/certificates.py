"""Certificates for TLS between the collector and Redis, good ones and bad ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Certificates:
    """PEM files in one folder: NAME.pem is a certificate, NAME.key its key.

    `ca` signs all but `stranger`, an authority that signed none. All name localhost; `expired` is
    for another time.
    """

    folder: Path

    def path(self, name):
        return str(self.folder / name)

    def query(self, **changes):
        """What an address needs to connect; other files than usual, or none where one is ""."""
        files = {**_FILES, **changes}
        return urlencode({name: self.path(file) for name, file in files.items() if file})

    def server(self):
        """The options of a Redis that shows this certificate, and asks for one of its clients."""
        return (
            *("--tls-ca-cert-file", self.path("ca.pem")),
            *("--tls-cert-file", self.path("server.pem")),
            *("--tls-key-file", self.path("server.key")),
        )


_FILES = {"ssl_ca_certs": "ca.pem", "ssl_certfile": "client.pem", "ssl_keyfile": "client.key"}


def make_certificates(folder):
    """All of them, in a folder that exists."""
    now = datetime.now(UTC)
    authority = _write(folder, "ca", now - DAY, now + DAY, None)
    _write(folder, "stranger", now - DAY, now + DAY, None)
    for name, begin, end in (
        ("server", now - DAY, now + DAY),
        ("client", now - DAY, now + DAY),
        ("expired", now - 2 * DAY, now - DAY),
    ):
        _write(folder, name, begin, end, authority)
    return Certificates(folder)


def _write(folder, name, begin, end, authority):
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = "ca" if authority else name
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), True)
    )
    if authority:
        names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        builder = builder.add_extension(names, False)
    signed = builder.sign(authority or key, hashes.SHA256())
    (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return key
