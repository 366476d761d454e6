"""The secret store, encrypted: AES-256-GCM with a key that lies elsewhere (CKP 5.7
``secrets.encryption``).

    file of a secret   "clawlite aes-256-gcm 1", line feed, base64 of nonce (12 bytes), ciphertext
                       and tag (16), line feed
    bound to           the agent's name, NUL, the secret's name: a file that is renamed or copied to
                       another agent is refused
    key                the file that $CLAWLITE_SECRETS_KEY_FILE names: 32 bytes, or 64 hexadecimal
                       digits; nobody else may read it

It needs the package ``cryptography`` (pip install 'clawlite[crypto]'); without it, or without a
key, it is refused by name."""

import binascii
import os
import stat

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.regular_file import open_regular

MAGIC = b"clawlite aes-256-gcm 1\n"
VARIABLE = "CLAWLITE_SECRETS_KEY_FILE"
_NONCE = 12


def has_key() -> bool:
    """Return whether the environment names a key."""
    return bool(os.environ.get(VARIABLE))


def seal(agent: str, name: str, value: bytes) -> bytes:
    """Return the contents of the file of a secret.  Raises ``ClawError``."""
    nonce = os.urandom(_NONCE)
    return MAGIC + binascii.b2a_base64(nonce + _cipher().encrypt(nonce, value, _bound(agent, name)))


def open_sealed(agent: str, name: str, data: bytes) -> bytes:
    """Return the value in *data*, which begins with ``MAGIC``.  Raises ``ClawError``, whose
    message has nothing of the value.
    """
    cipher, value = _cipher(), None
    try:
        coded = binascii.a2b_base64(data[len(MAGIC) :])
        value = cipher.decrypt(coded[:_NONCE], coded[_NONCE:], _bound(agent, name))
    except Exception:  # of the package: InvalidTag, ValueError
        pass
    if value is None:
        raise ClawError(
            "it cannot be decrypted: the key or the name has changed, or it is damaged",
            "set it again with: clawlite secrets set %s" % name,
        )
    return value


def _bound(agent: str, name: str) -> bytes:
    return agent.encode() + b"\0" + name.encode()


def _cipher():
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        from clawlite.linux.files.packages import install

        raise ClawError(
            "the secret store is encrypted, and the package cryptography is missing",
            install("crypto"),
        ) from None
    return AESGCM(_key())


def _key() -> bytes:
    path = os.environ.get(VARIABLE)
    if not path:
        raise ClawError(
            "the secret store is encrypted, and $%s names no key" % VARIABLE,
            "export it: a file of 32 random bytes, mode 600",
        )
    try:
        with open(path, "rb", opener=open_regular) as file:
            status, data = os.fstat(file.fileno()), file.read(128)
    except OSError as e:
        raise ClawError(
            "the key %s: %s" % (path, e.strerror), "check the path, and who may read it"
        ) from None
    if os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ClawError(
            "the key %s: others may read it (mode %03o)" % (path, status.st_mode & 0o777),
            "chmod 600 '%s'" % path,
        )
    if len(data) == 32:
        return data
    key = None
    try:
        key = binascii.unhexlify(data.strip())
    except ValueError:
        pass
    if key is None or len(key) != 32:
        raise ClawError(
            "the key %s: expected 32 bytes or 64 hexadecimal digits" % path,
            "make a new one: head -c 32 /dev/urandom > FILE",
        )
    return key
