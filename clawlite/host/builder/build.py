"""Build an image file from a manifest: load, compile, and write it where it overwrites no file of
the maker's."""

import os
import stat

from clawlite.core.base.errors import ClawError
from clawlite.core.image.header import MAGIC
from clawlite.core.image.image_signature import LEAST_KEY
from clawlite.host.base.problems import make_write_error
from clawlite.host.base.regular_file import open_regular
from clawlite.host.base.without_links import replace_named
from clawlite.host.boards import boards
from clawlite.host.compiler import compiler, lint
from clawlite.host.fit import board_fit
from clawlite.host.image.image_reader import begins_as_image, open_image
from clawlite.host.manifest import manifest

IMAGE = "claw.cbor"
# of the time behind the reading of a manifest of 10,000 rules: what is compiled, then fitted
_COMPILED, _FITTED = 0.2, 0.6
# the next step of whoever may not write there
_ELSEWHERE = "let this user write there, or build another file: clawlite build -o FILE"


def build_beside(name: str, at_use: bool = False) -> str:
    """Build the manifest *name* (a file or a folder) to ``claw.cbor`` beside it; return that path.

    at_use  see ``compiler.build``
    On a machine with a device key (``$CLAWLITE_DEVICE_KEY_FILE``) it is signed: nothing else runs
    there. Raises ``ManifestErrors``, or ``ClawError`` when the file cannot be written.
    """
    return build_facts(name, at_use)[0]


def build_facts(name: str, at_use: bool) -> tuple:
    """Return (path, facts) of what ``build_beside`` builds.

    facts  ``Manifest.facts``: all that the image depends on; None when an MCP server is to be asked
           at each start
    """
    loaded, _ = manifest.load_pinned(name)
    path = os.path.join(loaded.folder, IMAGE)
    save(path, compiler.build(loaded, device_key(), at_use).data)
    asks = any(tool.served and tool.served.server.is_trusted for tool in loaded.tools)
    return path, None if asks else loaded.facts


def image_for(name: str, board: str = None, key_file: str = None) -> str:
    """Return the path of an image that runs *name*: itself when it is one, else what the manifest
    is built to.

    board     refuse a manifest that this board cannot honour, or None
    key_file  as for ``build``; None: ``$CLAWLITE_DEVICE_KEY_FILE`` if that is set
    Raises ``ManifestErrors``, ``ClawError``.
    """
    return (
        name
        if begins_as_image(name)  # of anything else the manifest's errors say more
        else build(name, None, key_file or os.environ.get("CLAWLITE_DEVICE_KEY_FILE"), board)[
            "file"
        ]
    )


def device_key():
    """Return the key that images are signed with on this machine
    (``$CLAWLITE_DEVICE_KEY_FILE``), or None.  Raises ``ClawError``.
    """
    file = os.environ.get("CLAWLITE_DEVICE_KEY_FILE")
    return read_key(file) if file else None


def save(path: str, data: bytes) -> bool:
    """Write an image to *path*, whole or not at all; return False when it was there already, byte
    for byte.

    Raises ``ClawError`` for what is there and is no image: that may be something a person wrote, or
    a device.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            is_image = stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read(3) == MAGIC
            if not is_image:
                raise ClawError(
                    f"{path} exists and is no image", "name another file with -o, or move it away"
                )
            file.seek(0)
            # of a longer one, no more than shows that it is another
            if file.read(len(data) + 1) == data:
                return False
    except FileNotFoundError:
        pass
    except OSError as e:
        raise ClawError(f"{path}: {e.strerror}", _ELSEWHERE) from None
    try:
        replace_named(path, data)
    except OSError as e:
        raise make_write_error(path, e, _ELSEWHERE) from None
    return True


def _at_once(path, flags):
    # a FIFO without a writer would wait for one; Windows has none, and no such flag
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def build(
    name: str,
    output: str = None,
    key_file: str = None,
    board: str = None,
    refresh: bool = False,
    allowed=(),
    accepted=(),
    reach=lambda share: None,
) -> dict:
    """Build the manifest *name*; return what ``clawlite build`` shows.

    output    where the image goes; None: ``claw.cbor`` beside the manifest
    key_file  file with the device key to sign with, or None
    board     refuse what this board (``boards.names``) cannot honour, or None
    refresh   fetch the documents of other registries again, ask MCP servers again for their tools,
              and refuse changes
    accepted  names of MCP servers whose changed tools are taken
    allowed   folders outside of the manifest's that its files may lie in
    reach     is told which share is done of what comes after the manifest was read
    Keys: file, bytes, changed, pinned (URIs of what was asked now and stands in clawlite.lock),
    drivers (``pinned_drivers.list_rows``), requires,
    sections, heap_bytes and held_bytes (heap that turns work with, and what is held
    between them: host/fit/heap.py), swarm_bytes (what of these is for the swarm), flash_bytes,
    word_bits (of these), board, fits and fits_not (names of boards), why_not ({each of fits_not:
    its first reason}), dead, shadowed, warnings."""
    loaded, pinned = manifest.load_pinned(name, refresh, allowed, accepted)
    reach(0)
    key = read_key(key_file) if key_file else None
    profile = boards.profile(board, loaded.folder) if board else None
    if profile:
        built, need = board_fit.demand(loaded, profile, lambda: compiler.build(loaded, key))
    else:
        built = compiler.build(loaded, key)
        need = board_fit.Need(loaded, built.data)
    reach(_COMPILED)
    fits, why_not = board_fit.fitting_boards(loaded, need)
    reach(_FITTED)
    path = output or os.path.join(loaded.folder, IMAGE)
    before = _agent_of(path)
    changed = save(path, built.data)
    there = profile if profile and profile.runtime == "micropython" else None
    found = lint.find(loaded)
    found["warnings"] = found["warnings"] + board_fit.notes(loaded, profile, need)
    if before not in (None, loaded.name):
        said = f"it had the agent {before}, and now has {loaded.name} - to keep both: -o FILE"
        found["warnings"].append({"file": path, "line": 0, "message": said})
    return {
        "file": path,
        "bytes": len(built.data),
        "changed": changed,
        "pinned": pinned,
        "requires": compiler.requires(loaded),
        "drivers": loaded.driver_rows(),
        "sections": [{"name": part, "bytes": size} for part, size in built.sections],
        "heap_bytes": need.heap(there),
        "held_bytes": need.count_held(there),
        "swarm_bytes": need.swarm(there),
        "flash_bytes": need.flash(there),
        "word_bits": there.word_bits if there else 32,
        "board": board,
        "fits": fits,
        "fits_not": list(why_not),
        "why_not": why_not,
        **found,
    }


def _agent_of(path: str):
    """Return the name of the agent whose image is at *path*, or None."""
    if not os.path.isfile(path) or not begins_as_image(path):
        return None
    try:
        return open_image(path).agent.name
    except ClawError:
        return None


def read_key(path: str) -> bytes:
    """Return the device key in the file *path*.  Raises ``ClawError``: there is none, or it is
    too short, or others may read it.
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            mode, key = os.fstat(file.fileno()).st_mode, file.read(4096).strip()
    except OSError as e:
        raise ClawError(f"{path}: {e.strerror}", "name a file that holds the device key") from None
    if mode & 0o077 and os.name == "posix":
        raise ClawError(
            f"{path}: others may read or change the device key (mode {mode & 0o777:03o})",
            f"chmod 600 '{path}', and make a new key if somebody else was here",
        )
    if len(key) < LEAST_KEY:
        raise ClawError(
            f"{path}: expected a device key of {LEAST_KEY} bytes or more, got {len(key)}",
            "make one: head -c 32 /dev/urandom | base64",
        )
    return key
