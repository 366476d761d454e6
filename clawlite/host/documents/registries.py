"""Other registries: ``[registries]`` of clawlite.toml, fetched when a build first needs a document,
pinned in clawlite.lock.

    [registries]
    acme = "https://claw.example.com/registry"      claw://registry/acme/NAME@VERSION is
                                                    .../NAME@VERSION.yaml

1. HTTPS alone, also after a redirect.
2. A document is fetched once.  With ``refresh`` it is fetched again, and one that has changed is
   refused with the difference: a version never changes, so either its publisher or somebody in
   between is wrong.
3. What is loaded is the lock (lock.py); nothing here runs, and a manifest that needs no other
   registry never comes here.
"""

from clawlite.core.base import uri as claw_uri
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.host.base import yaml_text
from clawlite.host.base.document import Document
from clawlite.host.base.problems import ManifestErrors, QuotingError, enquote, one_of
from clawlite.host.base.toml_text import read_toml
from clawlite.host.documents import lock, registry
from clawlite.host.documents.sources import Refused, Sources

SETTINGS = "clawlite.toml"
MAX_DOCUMENT = 262144  # bytes
_SHOWN = 40  # lines of a difference


def read_declared(sources: Sources) -> dict[str, str]:
    """Return {namespace: base URL} of the settings; host/manifest/settings.py reports their
    mistakes.
    """
    try:
        found = read_toml(sources.read(SETTINGS).decode()).get("registries", {})
    except (Refused, ValueError):
        return {}
    return (
        {name: base for name, base in found.items() if isinstance(base, str)}
        if isinstance(found, dict)
        else {}
    )


def address(base: str, uri) -> str:
    """Return the URL of the document of *uri* (``core.uri.URI``)."""
    return f"{base.rstrip('/')}/{uri.name}@{uri.version}.yaml"


def document(sources: Sources, uri) -> Document:
    """Return the pinned document of *uri*.  Raises ``Refused`` (message, hint)."""
    known = read_declared(sources)
    text = claw_uri.canonical(uri)
    if uri.namespace not in known:
        raise Refused(
            f"no such registry: {enquote(uri.namespace)}",
            f"known here: "
            f"{one_of(['clawlite', *sorted(known)])}; "
            f"others stand in {SETTINGS}: "
            f'[registries] {uri.namespace} = "https://..."',
        )
    entry = lock.read(sources).get(text)
    if entry is None:
        raise Refused(f"{text} is not in {lock.FILE}", "clawlite build fetches it and pins it")
    if entry.url != address(known[uri.namespace], uri):
        raise Refused(
            f"{lock.FILE} has {text} from {entry.url}, and {SETTINGS} names {known[uri.namespace]}",
            "clawlite build fetches it anew",
        )
    return yaml_text.read(entry.text.encode(), text)


def pin(sources: Sources, root: str, refresh: bool = False) -> list[str]:
    """Fetch what the manifest *root* (a file of *sources*) needs of other registries and the lock
    lacks; return the URIs fetched.

    refresh  fetch all of it, and compare
    Raises ``ClawError`` when a document cannot be fetched, is not the requested one, or has
    changed; then nothing is written."""
    # of another URL, and of our own registry in another place, the settings say what is wrong
    known = {
        name: base
        for name, base in read_declared(sources).items()
        if base.startswith("https://") and name != registry.NAMESPACE
    }
    wanted = _find_wanted(sources, root, known) if known else []
    if not wanted:
        return []
    old = lock.read(sources)
    # what MCP servers listed (host/mcp/pinned.py) stays
    entries = [entry for uri, entry in old.items() if not uri.startswith("claw://")]
    fetched = []
    for uri in wanted:
        text, url = claw_uri.canonical(uri), address(known[uri.namespace], uri)
        entry = old.get(text)
        if entry is None or entry.url != url or refresh:
            new = _fetch(uri, text, url)
            if entry is not None and entry.sha256 != new.sha256:
                raise change_error(
                    entry,
                    new,
                    "a version never changes: ask its publisher; to accept it anyway, "
                    f"remove its entry from {lock.FILE}",
                )
            entry = new
            fetched.append(text)
        entries.append(entry)
    if {entry.uri: entry for entry in entries} != old:
        lock.write(sources, entries)
    return fetched


def _find_wanted(sources: Sources, root: str, known: dict) -> list:
    """Return the URIs that the slots of *root* name, of registries in *known*; mistakes in it
    are for the loader to say.
    """
    try:
        spec = yaml_text.read(sources.read(root), root).data["spec"]
        slots = [slot if isinstance(slot, list) else [slot] for slot in spec.values()]
    except (ManifestErrors, Refused, KeyError, TypeError, AttributeError):
        return []
    found = []
    for entry in [
        entry
        for slot in slots
        for entry in slot
        if isinstance(entry, str) and entry.startswith("claw://registry/")
    ]:
        try:
            uri = claw_uri.parse(entry)
        except InvalidParams:
            continue
        if uri.namespace in known and uri not in found:
            found.append(uri)
    return found


def _fetch(uri, text: str, url: str) -> lock.Entry:
    data = fetch(url)
    try:
        content = data.decode()
        metadata = yaml_text.read(data, text).data["metadata"]
        has = metadata["name"], metadata.get("version")
    except (ManifestErrors, ValueError, KeyError, TypeError, AttributeError) as e:
        raise ClawError(
            f"{url} is no document of a registry: {' '.join(str(e).split())[:300]}",
            "tell the operator of that registry",
        ) from None
    if has != (uri.name, uri.version):
        raise ClawError(
            f"{url} is {has[0]} in version {has[1]}, not {uri.name}@{uri.version}",
            "tell the operator of that registry",
        )
    return lock.Entry(text, url, lock.digest(content), content)


def change_error(old: lock.Entry, new: lock.Entry, hint: str) -> ClawError:
    """Return the error that shows how *new* differs from the pinned *old*."""
    from difflib import unified_diff

    lines = list(
        unified_diff(old.text.splitlines(), new.text.splitlines(), "pinned", "fetched", lineterm="")
    )
    return QuotingError(
        f"{old.uri} has changed at {new.url}: SHA-256 "
        f"{old.sha256[:16]}... is pinned, {new.sha256[:16]}... came",
        hint,
        [*lines[:_SHOWN], *(["..."] if len(lines) > _SHOWN else [])],
    )


def fetch(url: str) -> bytes:
    """Return the document at *url*.  Raises ``ClawError``."""
    from clawlite.host.base import fetching

    return fetching.fetch(url, MAX_DOCUMENT, f"what {lock.FILE} has builds without a network")
