"""The manifest of a ``claw.initialize``, compiled in a process of its own: ``main`` is what
clawlite/linux/runtime/bootstrap_session.py starts.

JSON on stdin; an image on stdout, or a JSON-RPC error object.  The manifest names no files: every
primitive stands in it, or in the registry of the package.  A missing ``claw`` means the newest
version: only here may it be missing."""

import json
import os
import sys
import tempfile

from clawlite.core.base.errors import ClawError, ImageMismatch
from clawlite.core.base.uri import parse

FILE = "manifest.json"
NOT_FOUND = -32061  # Runtime Profile 0.2.0, 4: "Primitive not found"


def compile_inline(manifest: dict) -> bytes:
    """Return the image of *manifest*, signed where this machine has a device key.  Raises
    ``ClawError``.
    """
    from clawlite.host.base.problems import ManifestErrors
    from clawlite.host.builder import build
    from clawlite.host.compiler import compiler
    from clawlite.host.manifest import manifest as front

    files = [
        problem
        for slot, value in sorted(manifest["spec"].items())
        for problem in _files(slot, value)
    ]
    if files:
        error = ManifestErrors(files)
        error.code = NOT_FOUND
        raise error
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with open(FILE, "w", encoding="utf-8") as file:
                json.dump(dict({"claw": "0.3.0"}, **manifest), file, indent=1)
            return compiler.build(front.load(FILE), build.device_key(), True).data
        except ManifestErrors as e:
            if all(_is_reference(manifest, problem.path) for problem in e.problems):
                e.code = NOT_FOUND
            raise
        finally:
            os.chdir("/")


def _is_reference(manifest: dict, path: tuple) -> bool:
    """Return whether *path* leads to a good ``claw://`` URI in *manifest*: what is wrong with it
    is that it leads nowhere.
    """
    value = manifest
    try:
        for step in path:
            value = value[step]
        parse(value)
        return True
    except (ClawError, LookupError, TypeError):
        return False


def _files(slot: str, value) -> list:
    from clawlite.host.base.problems import Problem

    named = enumerate(value) if isinstance(value, list) else [(None, value)]
    return [
        Problem(
            ("spec", slot) if at is None else ("spec", slot, at),
            "a manifest in claw.initialize names no files",
            FILE,
            expected="inline: {...} or a claw:// URI",
            found=json.dumps(one),
        )
        for at, one in named
        if isinstance(one, str) and not one.startswith("claw://")
    ]


def main() -> int:
    """Compile stdin to stdout; return 0, or 1 when stdout has an error object."""
    try:
        sys.stdout.buffer.write(compile_inline(json.load(sys.stdin)))
        return 0
    except ImportError as e:
        error = ImageMismatch(
            "manifest: this installation has no compiler (%s is missing)" % e.name,
            "pip install 'clawlite[host]', or name an image that was built elsewhere",
        )
    except ClawError as e:
        error = e
    json.dump(error.to_json(), sys.stdout)
    return 1
