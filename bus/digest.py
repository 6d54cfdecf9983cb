"""SHA-256 without OpenSSL.

`hashlib` loads the whole of OpenSSL to offer it: 4 ms, a fifth of what a command may take. The
interpreter has the algorithm in a module of its own, whose name depends on the version.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # since 3.12
    except ImportError:
        try:
            from _sha256 import sha256  # 3.11
        except ImportError:
            from hashlib import sha256  # other Pythons


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in hex."""
    return sha256(data).hexdigest()
