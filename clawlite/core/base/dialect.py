"""What the core needs from both dialects, in one place.

``const`` marks an integer that MicroPython's compiler folds away; CPython sees a plain int.
``sha256`` is hashlib's.  On CPython ``import hashlib`` loads OpenSSL, which costs 4 to 6 ms and
3.8 MiB, and an agent hashes only some KB.  So CPython uses the interpreter's own SHA-256, which is
up to seven times slower, unless OpenSSL is loaded already (docs/adr/0002).
"""

try:
    from micropython import const
    from hashlib import sha256
except ImportError:  # CPython: the constant stays a plain int
    from sys import modules

    try:
        from _sha2 import sha256 as _own  # CPython >= 3.12
    except ImportError:
        try:
            from _sha256 import sha256 as _own
        except ImportError:  # an interpreter that was built without its own SHA-256
            from hashlib import sha256 as _own

    def const(value):
        return value

    def sha256(data=b""):  # type: ignore[misc]
        openssl = modules.get("_hashlib")
        return openssl.openssl_sha256(data) if openssl else _own(data)
