"""The digests without OpenSSL are those of `hashlib`."""

import hashlib
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from deniable.protocol import digests


@given(st.binary(max_size=300))
def test_they_are_those_of_hashlib(data):
    """Every text has the same SHA-256 and BLAKE2b in both."""
    assert digests.sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()
    ours = digests.blake2b(data, digest_size=8)
    assert ours.digest() == hashlib.blake2b(data, digest_size=8).digest()


def test_hashlib_takes_their_place_where_they_are_missing():
    """An interpreter without its own modules gives the same digest by `hashlib`."""
    code = (
        "import sys\n"
        "for name in ('_sha2', '_sha256'): sys.modules[name] = None\n"
        "from deniable.protocol import digests\n"
        "print(digests.sha256.__name__, digests.sha256(b'a').hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    name, digest = done.stdout.split()
    assert (name, digest) == ("openssl_sha256", hashlib.sha256(b"a").hexdigest())
