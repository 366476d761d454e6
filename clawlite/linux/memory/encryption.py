"""Encryption of entries: AES-256-GCM, with a key that lies elsewhere (CKP 5.6 ``encryption``).

    content of an entry   nonce (12 bytes), ciphertext and tag (16) of JSON [key, text, is_json,
                          metadata]
    key of an entry       16 bytes of HMAC-SHA256 in hex: the same key of the same store is the same
                          text
    vector                nonce, ciphertext and tag of the float32s
    keys                  HMAC-SHA256 of the agent's key over what they are for, the agent and the
                          store
    sealed                a row a store: which key it has; entries with another key, or with none,
                          are never mixed into it

1. Not encrypted: names of stores, identities and channels, ids, times, sizes, ids of requests,
   which entries have one key in common.
2. Nothing of such a store is in the index: a question opens the newest ``MAX_OPENED`` entries one
   by one.
3. It needs the package ``cryptography`` (pip install 'clawlite[crypto]'); without it, or without
   the key, it is refused by name.
"""

import os
from binascii import unhexlify

from clawlite.core.base.errors import ClawError, StoreError

MAX_OPENED = 5000  # entries of a place that a question looks at
_NONCE = 12
_MARK = b"clawlite memory 1"


def _hmac(key: bytes, data: bytes) -> bytes:
    import hmac  # it loads OpenSSL, as the cipher does: not for who encrypts nothing

    return hmac.digest(key, data, "sha256")


class EntryCiphers:
    """What opens and closes the entries of one agent's stores.

    db            ``database.Database``
    agent         its name
    resolve       function(name of a secret) -> its value, raises ``ClawError``
    dumps, loads  JSON
    """

    def __init__(self, db, agent: str, resolve, dumps, loads):
        self._db, self._agent, self._resolve, self._dumps, self._loads = (
            db,
            agent,
            resolve,
            dumps,
            loads,
        )
        self._known = {}  # name -> EntryCipher or None, of the file as it was opened
        self._opened = None

    def of(self, store, writes: bool = False):
        """Return the ``EntryCipher`` of *store*, or None where it is not encrypted.  *writes*: a
        commit has begun.

        Raises ``StoreError`` where the key cannot be had, is not the one of the entries, or some of
        them have none."""
        if self._db.opened != self._opened:
            self._known.clear()
            self._opened = self._db.opened
        if store.name not in self._known:
            box = None
            if store.secret:
                key = _store_key(store, self._resolve)
                box = EntryCipher(store.name, key, self._agent, self._dumps, self._loads)
            if self._is_whole(store, box, writes):
                self._known[store.name] = box
            return box
        return self._known[store.name]

    def _is_whole(self, store, box, writes: bool) -> bool:
        """Check that what is there goes with *box*; return whether that is on record."""
        row = self._db.row("SELECT mark FROM sealed WHERE store=?", (store.name,))
        if box and row:
            box.open(row[0])
        elif row:
            raise StoreError(
                "store %s is encrypted, and the manifest does not say so" % store.name,
                "declare encryption: true again",
            )
        elif box and self._db.row(
            "SELECT 1 FROM entries JOIN places ON "
            "entries.id>>40=places.number WHERE store=? AND "
            "typeof(content)='text' LIMIT 1",
            (store.name,),
        ):
            raise StoreError(
                "store %s has entries that are not encrypted" % store.name,
                "give the encrypted store another name, or remove its entries",
            )
        elif box and writes:
            self._db.run("INSERT INTO sealed VALUES(?, ?)", (store.name, box.seal(_MARK)))
        elif box:
            return False
        return True


class EntryCipher:
    """What opens and closes the entries of one store."""

    def __init__(self, store: str, key: bytes, agent: str, dumps, loads):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._store, self._dumps, self._loads = store, dumps, loads
        about = "%s\0%s" % (agent, store)
        self._cipher = AESGCM(_hmac(key, ("content\0" + about).encode()))
        self._index_key = _hmac(key, ("keys\0" + about).encode())

    def index(self, key: str) -> str:
        """Return what stands for *key* in the database."""
        return _hmac(self._index_key, key.encode())[:16].hex()

    def mark(self, data: bytes) -> bytes:
        """Return 4 bytes that tell one request from another, and nothing of what is in it."""
        return _hmac(self._index_key, b"request\0" + data)[:4]

    def pack(self, key, text: str, is_json: bool, metadata) -> list:
        """Return [key, content, is_json, metadata] as the database gets them."""
        return [
            None if key is None else self.index(key),
            self.seal(self._dumps([key, text, is_json, metadata]).encode()),
            False,
            None,
        ]

    def unpack(self, content: bytes) -> list:
        """Return [key, text, is_json, metadata] of an entry.  Raises ``StoreError``."""
        return self._loads(self.open(content))

    def seal(self, data: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, None)

    def open(self, data) -> bytes:
        found = None
        try:
            found = self._cipher.decrypt(data[:_NONCE], data[_NONCE:], None)
        # of the package: InvalidTag, ValueError; a text where bytes should be
        except Exception:
            pass
        if found is None:
            raise StoreError(
                "store %s: it cannot be decrypted: the key is another one, or the data is "
                "damaged" % self._store,
                "give the agent the key that it was encrypted with",
            )
        return found


def key_of(name: str, resolve) -> bytes:
    """Return the key that the secret *name* is: 32 bytes as 64 hexadecimal digits.  Raises
    ``ClawError``, also without the package.
    """
    from importlib.util import find_spec

    if find_spec("cryptography") is None:
        from clawlite.linux.files.packages import install

        raise ClawError(
            "it is encrypted, and the package cryptography is missing",
            install("crypto"),
        )
    key = None
    try:
        key = unhexlify(resolve(name))
    except ValueError:
        pass
    if key is None or len(key) != 32:
        raise ClawError(
            "the secret %s is no key: expected 64 hexadecimal digits" % name,
            "make one: openssl rand -hex 32",
        )
    return key


def check(agent: str, stores: list):
    """Raise ``StoreError`` for the first of *stores*, which are encrypted, that has no key here,
    or no package.
    """
    from clawlite.linux.secrets import secrets

    for store in stores:
        _store_key(store, lambda name: secrets.resolve(name, secrets.stores(agent)))


def _store_key(store, resolve) -> bytes:
    """As ``key_of``, for *store*.  Raises ``StoreError``."""
    try:
        return key_of(store.secret, resolve)
    except ClawError as e:
        raise StoreError("store %s: %s" % (store.name, e.message), e.hint) from None
