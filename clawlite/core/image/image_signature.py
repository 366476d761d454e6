"""The seal of an image: SHA-256 digest, and HMAC-SHA256 (RFC 2104) with a device key; and how a
device shows a gateway its token with the same HMAC.

The seal is checked when an image arrives (flashed or inspected) and whenever Linux loads one.  A
board's boot checks the CRC alone (core/image/image.py).  A module of its own, so that a boot does
not load it."""

from binascii import hexlify

from clawlite.core.base.dialect import sha256
from clawlite.core.base.errors import ImageError

_CHUNK = 1024
LEAST_KEY = 16  # bytes of a device key
SIGNED = 73  # bytes of a seal with a signature; 40 without (null)


def check(read, size: int, seal_at: int, key: bytes | None = None):
    """Check the digest, and with *key* the signature too.

    read     ``read(offset, length) -> bytes`` over the file
    size     int, bytes of the file
    seal_at  int, where the seal begins (``Image.seal_at``)
    key      1 or more bytes, or None when this device also runs unsigned images
    Raises ``ImageError``.  Cost: the file read and hashed once.
    """
    if key is not None and size - seal_at != SIGNED:
        raise ImageError(
            "image: not signed, and this device runs signed images only",
            "build it with: clawlite build --key-file FILE",
        )
    digest = sha256()
    pos, end = 0, seal_at + 5
    while pos < end:
        chunk = read(pos, end - pos if end - pos < _CHUNK else _CHUNK)
        if not chunk:
            raise ImageError("image: truncated at byte %d" % pos)
        digest.update(chunk)
        pos += len(chunk)
    if not same(digest.digest(), read(seal_at + 7, 32)):
        raise ImageError(
            "image: bad digest: the file is not what was built", "build or flash it again"
        )
    if key is not None and not same(sign(read, seal_at + 39, key), read(seal_at + 41, 32)):
        raise ImageError(
            "image: signed with another key than this device's",
            "build it with: clawlite build --key-file FILE",
        )


def sign(read, end: int, key: bytes) -> bytes:
    """Return HMAC-SHA256 with *key* over the first *end* bytes of a file (RFC 2104)."""
    if len(key) > 64:
        key = sha256(key).digest()
    key = key + bytes(64 - len(key))
    inner = sha256(bytes([b ^ 0x36 for b in key]))
    pos = 0
    while pos < end:
        chunk = read(pos, end - pos if end - pos < _CHUNK else _CHUNK)
        inner.update(chunk)
        pos += len(chunk)
    outer = sha256(bytes([b ^ 0x5C for b in key]))
    outer.update(inner.digest())
    return outer.digest()


def prove(token: str, nonce: bytes) -> dict:
    """Return what shows that this device has the *token*, NAME:TOKEN, of its gateway."""
    name, _, key = token.partition(":")
    mac = sign(lambda at, size: nonce[at : at + size], len(nonce), key.encode())
    return {"name": name, "mac": str(hexlify(mac), "utf-8")}


def same(left: bytes, right: bytes) -> bool:
    """Compare in a time that does not depend on where *left* and *right* differ."""
    difference = len(left) ^ len(right)
    for a, b in zip(left, right):
        difference |= a ^ b
    return difference == 0
