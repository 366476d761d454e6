"""The file of the people of an agent or a gateway: a line for each, NAME ROLE DIGEST SINCE, between
spaces.

1. A token is NAME:SECRET.  The file has the SHA-256 of the secret alone, which has 256 random bits:
   nobody finds the secret by trying, and whoever reads the file cannot use it.
2. A line that is damaged opens nothing.
"""

from binascii import hexlify
from collections import namedtuple

from clawlite.core.base.dialect import sha256

FILE = "people"  # in the state folder of an agent, or in that of the gateway
ROLES = ("viewer", "user", "admin")  # each may do what those before it may
MAX_PEOPLE = 100
MAX_NAME = 40  # characters
MAX_BYTES = 32768  # of the file

Person = namedtuple("Person", ("name", "role", "digest", "since_s"))


def is_name(text: str) -> bool:
    """Return whether *text* may be a person's name: letters, digits, and ._- after the first."""
    if not 0 < len(text) <= MAX_NAME or text[0] in "._-":
        return False
    for char in text:
        if not ("a" <= char <= "z" or "A" <= char <= "Z" or "0" <= char <= "9" or char in "._-"):
            return False
    return True


def digest_of(secret: bytes) -> str:
    """Return what the file has in place of *secret*."""
    return str(hexlify(sha256(secret).digest()), "utf-8")


def parse(data: bytes) -> list:
    """Return the ``Person`` of each line of a file that is whole, in its order."""
    found = []
    for line in data.split(b"\n"):
        try:
            name, role, digest, since = str(line, "utf-8").split(" ")
            since_s = int(since)
        except ValueError:  # damaged, or empty
            continue
        if is_name(name) and role in ROLES and len(digest) == 64:
            found.append(Person(name, role, digest, since_s))
    return found[:MAX_PEOPLE]


def write(people: list) -> bytes:
    """Return the file of *people*."""
    lines = ["%s %s %s %d\n" % (one.name, one.role, one.digest, one.since_s) for one in people]
    return "".join(lines).encode()


def find(people: list, token: bytes) -> Person | None:
    """Return the ``Person`` whose *token* this is, or None.

    What is compared are digests, of which nobody can choose the beginning: how long it takes tells
    nothing of the secret.
    """
    name, _, secret = token.partition(b":")
    digest = digest_of(secret)
    for one in people:
        if one.name.encode() == name and one.digest == digest:
            return one
    return None
