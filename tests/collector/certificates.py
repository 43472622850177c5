"""Certificates for TLS, good ones and bad ones: NAME.pem is a certificate, NAME.key its key.

`ca` signs all but `stranger`, an authority that signed none. All name localhost; `expired` is for
another time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


def make_certificates(folder):
    """All of them, in a folder that exists, which is returned."""
    now = datetime.now(UTC)
    authority = _write(folder, "ca", now, None)
    _write(folder, "stranger", now, None)
    for name, begin in (("server", now), ("client", now), ("expired", now - 2 * DAY)):
        _write(folder, name, begin, authority)
    return folder


def _write(folder, name, moment, authority):
    """One for a day before and after a moment."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject, issuer = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)])
        for each in (name, "ca" if authority else name)
    )
    builder = x509.CertificateBuilder(issuer, subject, key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(moment - DAY).not_valid_after(moment + DAY)
    constraints = x509.BasicConstraints(ca=authority is None, path_length=None)
    builder = builder.add_extension(constraints, critical=True)
    if authority:
        names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        builder = builder.add_extension(names, critical=False)
    signed = builder.sign(authority or key, hashes.SHA256())
    (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    secret = key.private_bytes(*form, serialization.NoEncryption())
    (folder / f"{name}.key").write_bytes(secret)
    return key
