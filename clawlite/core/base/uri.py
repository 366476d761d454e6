"""claw:// URIs: the grammar of CKP 0.2.0, 7.

    claw://local/KIND/NAME[@VERSION]           authority "local"
    claw://registry/NAMESPACE/NAME@VERSION     authority "registry"
    claw://KIND/NAME                           alias, in manifests only; the same as
                                               claw://local/KIND/NAME

1. KIND adds telemetry and world-model to the 0.2.0 ABNF: 5.10 gives the first its URI, 0.3.0 both.
2. Letters are ASCII and literals are lower case, so that one thing has one spelling.
3. Nothing is normalised: a URI that does not fit the grammar is refused.
"""

from collections import namedtuple

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import InvalidParams

KINDS = (
    "identity",
    "provider",
    "channel",
    "tool",
    "skill",
    "memory",
    "sandbox",
    "policy",
    "swarm",
    "telemetry",
    "world-model",
)
MAX_NAME = 63
MAX_URI = 255  # the grammar bounds name and namespace, not the version

_MAX_NAME = const(63)
_MAX_URI = const(255)

# parts of a URI behind claw://
_AUTHORITY = const(0)
_KIND = const(1)
_NAMESPACE = const(1)
_SHORT_NAME = const(1)
_NAME = const(2)

URI = namedtuple("URI", ("authority", "kind", "namespace", "name", "version"))


def parse(uri: str, alias: bool = False) -> URI:
    """Return ``URI(authority, kind, namespace, name, version)``.

    alias  also accept the alias form, which is returned as the canonical ``local`` form
    kind is None for a registry, namespace None for local, and version None when there is none.
    Raises InvalidParams.  Source: CKP 0.2.0, 7.
    """
    if not isinstance(uri, str) or not uri.startswith("claw://"):
        _refuse(uri, "a claw:// URI")
    if len(uri) > _MAX_URI:
        raise InvalidParams("a claw:// URI of %d characters; at most %d" % (len(uri), _MAX_URI))
    parts = uri[7:].split("/")
    if len(parts) == 3 and parts[_AUTHORITY] == "local":
        name, version = _split_version(uri, parts[_NAME])
        return URI("local", _kind(uri, parts[_KIND]), None, _name(uri, name), version)
    if len(parts) == 3 and parts[_AUTHORITY] == "registry":
        name, version = _split_version(uri, parts[_NAME])
        if version is None:
            _refuse(uri, "claw://registry/NAMESPACE/NAME@VERSION, always with its version")
        if not _is_word(parts[_NAMESPACE], "-."):
            _refuse(uri, 'a namespace of 1 to 63 letters, digits, "-" and "."')
        return URI("registry", None, parts[_NAMESPACE], _name(uri, name), version)
    if len(parts) == 2 and parts[_AUTHORITY] in KINDS:
        if not alias:
            _refuse(uri, "the canonical form, claw://local/KIND/NAME")
        if "@" in parts[_SHORT_NAME]:
            _refuse(uri, "no version in the short form; claw://local/KIND/NAME@VERSION has one")
        return URI("local", parts[_AUTHORITY], None, _name(uri, parts[_SHORT_NAME]), None)
    _refuse(uri, "claw://local/KIND/NAME or claw://registry/NAMESPACE/NAME@VERSION")


def canonical(uri: URI) -> str:
    """Return the one text that ``parse`` turns into *uri*."""
    version = "@" + uri.version if uri.version is not None else ""
    middle = uri.kind if uri.authority == "local" else uri.namespace
    return "claw://%s/%s/%s%s" % (uri.authority, middle, uri.name, version)


def is_semver(text: str) -> bool:
    """Return whether *text* is ``1*DIGIT "." 1*DIGIT "." 1*DIGIT [ "-" pre-release ]``."""
    dash = text.find("-")
    core = text if dash < 0 else text[:dash]
    if dash >= 0 and not _is_made_of(text[dash + 1 :], "-."):
        return False
    numbers = core.split(".")
    if len(numbers) != 3:
        return False
    for number in numbers:
        if not number:
            return False
        for char in number:
            if not "0" <= char <= "9":
                return False
    return True


def _is_made_of(text: str, also: str) -> bool:
    """Return whether *text* is at least one of ASCII letters, digits and the characters in
    *also*.
    """
    for char in text:
        if not ("a" <= char <= "z" or "A" <= char <= "Z" or "0" <= char <= "9" or char in also):
            return False
    return len(text) > 0


def _is_word(text: str, also: str) -> bool:
    return len(text) <= _MAX_NAME and _is_made_of(text, also)


def _split_version(uri: str, text: str) -> tuple:
    at = text.find("@")
    if at < 0:
        return text, None
    if not is_semver(text[at + 1 :]):
        _refuse(uri, 'a version such as 1.0.0 after the "@"')
    return text[:at], text[at + 1 :]


def _kind(uri: str, kind: str) -> str:
    if kind not in KINDS:
        _refuse(uri, "a kind: " + ", ".join(KINDS))
    return kind


def _name(uri: str, name: str) -> str:
    if not _is_word(name, "-"):
        _refuse(uri, 'a name of 1 to 63 letters, digits and "-"')
    return name


def _refuse(uri, expected: str):
    found = '"' + uri[:80] + '"' if isinstance(uri, str) else type(uri).__name__
    raise InvalidParams("expected %s, found %s" % (expected, found))
