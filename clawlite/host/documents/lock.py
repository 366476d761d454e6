"""clawlite.lock: the documents of other registries, word for word, with their SHA-256.  The file is
beside the manifest and belongs under version control with it.

    version = 1
    [[document]]        one for each claw://registry/ URI of the manifest, sorted
    uri, url, sha256, text

1. A build reads the documents only from this file, so the same folder gives the same image on every
   machine, without a network.
2. ``registries.pin`` adds missing documents.  A text that does not match its hash is refused,
   because somebody has changed the file.
"""

import dataclasses
import functools
import hashlib

from clawlite.core.base.errors import ClawError
from clawlite.host.base.document import MAX_BYTES
from clawlite.host.base.problems import quoted
from clawlite.host.base.regular_file import open_regular
from clawlite.host.base.toml_text import read_toml
from clawlite.host.base.without_links import replace_named
from clawlite.host.documents.sources import Refused, Sources

FILE = "clawlite.lock"
MAX_LOCK = MAX_BYTES  # of the file: a server may list 1,000 tools, of many kilobytes each


@dataclasses.dataclass
class Entry:
    """One document: its canonical URI, where it came from, the SHA-256 of its text in hex, and
    the text.
    """

    uri: str
    url: str
    sha256: str
    text: str


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@functools.lru_cache(maxsize=1)
def _decoded(data: bytes) -> dict:
    """Return what *data* says: one build reads its lock three times, and a long one takes 0.1 s."""
    return read_toml(data.decode())


def read(sources: Sources) -> dict[str, Entry]:
    """Return {URI: Entry} of the lock beside the manifest, {} when there is none.  Raises
    ``Refused`` (message, hint).
    """
    path = sources.shown(FILE)
    sources.check_place(FILE, path)
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(MAX_LOCK + 1)
        sources.facts["file", path] = data
    except FileNotFoundError:
        sources.facts["present", path] = False
        return {}
    except OSError as e:
        raise Refused(
            f"{path}: {e.strerror}",
            "make it readable, or remove it: the next build writes it again",
        ) from None
    mend = "bring back the file that clawlite wrote, or remove it and build again"
    try:
        if len(data) > MAX_LOCK:
            raise ValueError(f"more than {MAX_LOCK:,} bytes")
        found = _decoded(data)
        if found.get("version") != 1:
            raise ValueError(f"version {found.get('version')}, expected 1")
        entries = [
            Entry(**{key: str(value) for key, value in each.items()})
            for each in found.get("document", [])
        ]
    except (ValueError, TypeError, AttributeError) as e:
        raise Refused(f"{path} cannot be read: {e}", mend) from None
    for entry in entries:
        if digest(entry.text) != entry.sha256:
            raise Refused(
                f"{path}: the text of {quoted(entry.uri)} does not match its SHA-256: it "
                f"was changed",
                mend,
            )
    return {entry.uri: entry for entry in entries}


def write(sources: Sources, entries: list[Entry]) -> None:
    """Write the lock, whole or not at all.  Raises ``OSError``, and ``ClawError`` for one that
    ``read`` would refuse.
    """
    import tomli_w

    path = sources.shown(FILE)
    made = {
        "version": 1,
        "document": [
            dataclasses.asdict(entry) for entry in sorted(entries, key=lambda entry: entry.uri)
        ],
    }
    # the text in one line: a multi-line string would lose its first newline, and CRs
    data = tomli_w.dumps(made).encode()
    if len(data) > MAX_LOCK:
        raise ClawError(
            f"{path} would have {len(data):,} bytes; it may have at most {MAX_LOCK:,}",
            "name fewer documents of registries, or fewer servers",
        )
    replace_named(path, data)
