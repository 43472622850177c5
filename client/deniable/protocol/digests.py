"""BLAKE2b and SHA-256 from the interpreter itself.

`hashlib` loads OpenSSL, which takes 2 ms: too much for a tool that records one value and exits.
Its own modules give the same digests. Where an interpreter lacks them, `hashlib` is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["blake2b", "sha256"]

if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    try:
        from _blake2 import blake2b

        try:
            from _sha2 import sha256
        except ImportError:  # Python 3.11
            from _sha256 import sha256
    except ImportError:
        from hashlib import blake2b, sha256
