"""Paths of a manifest (``mount_paths``, ``denied_paths``, ``path_within``): what is a string, and
means no file that its maker could mean.

A path is one file, or one folder and all below it; from the root, or below /workspace.  ``//``,
``.`` and a slash at the end mean nothing (core/policy/policy.py).  CKP knows no ``..``, no home, no
variables and no patterns in paths (5.7, 5.8): a rule that is never met protects nothing."""

import re

from clawlite.core.policy.policy import normalise
from clawlite.host.base.problems import enquote

MOST = 256  # paths of one list: each is a mount, or a rule, of each call
MOST_BYTES, MOST_OF_NAME = 4095, 255  # of Linux
WANTED = "a path from the root, or below /workspace"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_VARIABLE = re.compile(r"\$(\{|[A-Za-z_])")


def mistake(path: str):
    """Return (expected, hint) of a *path* that cannot be meant, or None."""
    if not path or "\0" in path or normalise(path) is None:
        return WANTED, "it has %d characters" % len(path) if len(path) > MOST_BYTES else ""
    if path.startswith("~"):
        return WANTED, "no home is known where this is built"
    try:
        data = path.encode()
    except UnicodeEncodeError as e:
        return WANTED, f"character {e.start + 1} is half of one (a lone surrogate)"
    if len(data) > MOST_BYTES or any(len(name) > MOST_OF_NAME for name in data.split(b"/")):
        return (
            f"a path of at most {MOST_BYTES} bytes, {MOST_OF_NAME} for each name in it",
            "no file has such a name",
        )
    clean = _CONTROL.sub("", path.strip())
    if path != clean:
        return (
            "a path without control characters, and without white space at its ends",
            f"write {enquote(clean)}" if clean else "",
        )
    return _climbing(path)


def _climbing(path: str):
    if ".." in path.split("/"):
        return "a path without ..", f"write {enquote(normalise(path))}, if that is meant"
    if _VARIABLE.search(path):
        return (
            "a path without variables",
            "none has a value where this is built; what a tool may write can stand in "
            "clawlite.toml: [sandbox] writable",
        )
    names = path.split("/")
    at = next((index for index, name in enumerate(names) if "*" in name or "?" in name), None)
    if at is not None:
        above = "/".join(names[:at])
        return (
            "a path without * and ?",
            f"{enquote(above or '/workspace')} means all below it, too"
            if above or not path.startswith("/")
            else "name each folder",
        )
    return None
