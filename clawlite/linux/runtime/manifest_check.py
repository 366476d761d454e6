"""Checks the manifest in a ``claw.initialize`` where an agent has an image already.

1. The image stays the authority over what this agent is (docs/adr/0006).  Nothing of the manifest
   is taken over.
2. The compiler takes a second and may not be installed, so what claw.schema.json itself says is
   checked here: required fields, unknown fields and types; and of inline primitives what stands in
   ``manifest_fields``.  Files and URIs that are named are left to the compiler.
3. ``claw`` may be missing, as in the example of CKP 0.2.0, 9.3.1.  A null is not an absent field:
   the schema refuses it, and so does the compiler.  Source  CKP 0.2.0, 6; claw.schema.json 0.3.0.
"""

from clawlite.core.base.errors import ImageError
from clawlite.core.base.printable import escape_line
from clawlite.linux.io.jsontext import dumps

_TOP = ("claw", "kind", "metadata", "spec")
_REQUIRED = ("identity", "providers")
_LISTS = ("providers", "channels", "tools", "skills", "policies", "world_models")
_SLOTS = ("identity", "memory", "sandbox", "swarm", "telemetry") + _LISTS
_SHOWN = 60  # characters of a peer's own words in an error
_REFERENCE = 'a file, a claw:// URI or {"inline": {...}}'
_PROVIDERS = "a list of at least one Provider"
_NOTHING = object()  # the value of a field that is missing


def check(manifest: dict):
    """Return None when *manifest* has the shape of a Claw manifest.

    manifest  has passed ``handshake.agree``, so kind, metadata, its name and spec have their types
    Raises ``ImageError`` (-32060) for the first problem; its data has the keys that a problem of
    the compiler has.
    """
    _check_names(manifest, _TOP, "")
    if "claw" in manifest:
        _match(_is_protocol, "claw", manifest["claw"], "0.2.x or 0.3.x")
    _metadata(manifest["metadata"])
    spec = manifest["spec"]
    _check_names(spec, _SLOTS, "spec.")
    for slot in _REQUIRED:
        if slot not in spec:
            raise _problem("spec." + slot, _PROVIDERS if slot in _LISTS else _REFERENCE, _NOTHING)
    for slot, value in spec.items():
        _slot(slot, value)


def _metadata(metadata: dict):
    """Raise unless the fields that the schema names have its types; it admits others."""
    _match(
        _is_name,
        "metadata.name",
        metadata["name"],
        "1 to 63 letters, digits and hyphens, no hyphen first",
    )
    if "version" in metadata:
        _match(
            _is_version, "metadata.version", metadata["version"], "a semantic version such as 1.0.0"
        )
    for field, kind, expected in (
        ("description", str, "text"),
        ("labels", dict, "an object"),
        ("annotations", dict, "an object"),
    ):
        if field in metadata and not isinstance(metadata[field], kind):
            raise _problem("metadata." + field, expected, metadata[field])
    for key, value in metadata.get("labels", {}).items():
        if not isinstance(value, str):
            raise _problem("metadata.labels." + key[:_SHOWN], "text", value)


def _slot(slot: str, value):
    """Raise unless *value* is what the schema wants of *slot*: a reference, or a list of them."""
    path = "spec." + slot
    if slot not in _LISTS:
        _reference(path, slot, value)
        return
    if not isinstance(value, list):
        raise _problem(path, "a list", value)
    if not value and slot in _REQUIRED:
        raise _problem(path, _PROVIDERS, value)
    for at, one in enumerate(value):
        _reference("%s[%d]" % (path, at), slot, one)


def _reference(path: str, slot: str, value):
    """Raise unless *value* is text, or an object whose ``inline`` has the fields of its kind."""
    if not isinstance(value, (str, dict)) or value == "":
        raise _problem(path, _REFERENCE, value)
    if isinstance(value, dict):
        # only here, because most manifests name files, and an agent waits for this until READY
        from clawlite.linux.runtime.manifest_fields import INLINE, first_problem

        inline = value.get("inline", _NOTHING)
        found = first_problem(path + ".inline", INLINE[slot], inline, _NOTHING)
        if found:
            raise _problem(*found)


def _check_names(found: dict, names: tuple, place: str):
    for key in found:
        if key not in names:
            raise _problem(place + key[:_SHOWN], "one of " + ", ".join(names), key)


def _match(is_right, path: str, value, expected: str):
    if not isinstance(value, str) or not is_right(value):
        raise _problem(path, expected, value)


# Patterns of the schema, without ``re``: importing it would double the time to READY.


def _is_name(text: str) -> bool:
    plain = text.replace("-", "0")
    return len(text) <= 63 and text[:1] != "-" and plain.isascii() and plain.isalnum()


def _is_version(text: str) -> bool:
    numbers, dash, pre = text.partition("-")
    parts = numbers.split(".")
    is_pre = not dash or pre != "" and "\n" not in pre
    return len(parts) == 3 and is_pre and all(part.isascii() and part.isdigit() for part in parts)


def _is_protocol(text: str) -> bool:
    return text[:4] in ("0.2.", "0.3.") and "-" not in text and _is_version(text)


def _problem(path: str, expected: str, value) -> ImageError:
    """Return the error of *value* at *path*; what a peer wrote is cut and made printable."""
    if value is _NOTHING:
        found = "nothing"
    elif isinstance(value, list):
        found = "a list" if value else "an empty list"
    elif isinstance(value, dict):
        found = "an object" if value else "an empty object"
    else:
        found = escape_line(dumps(value), _SHOWN)
    path = escape_line(path, _SHOWN)
    problem = {
        "file": "",
        "line": 0,
        "path": path,
        "message": "",
        "expected": expected,
        "found": found,
        "hint": "",
    }
    return ImageError(
        f"manifest.{path}: expected {expected}, found {found}",
        "check the manifest with: clawlite check",
        {"problems": [problem]},
    )
