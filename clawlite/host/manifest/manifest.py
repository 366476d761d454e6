"""claw.yaml to a Manifest: every file read, every reference followed, every rule of CKP checked.

1. ``load`` returns a Manifest without a problem, or raises ManifestErrors with all of them.
2. Nothing is run, imported or fetched.  The same folder gives the same Manifest on every machine.
3. What is valid CKP is accepted, whether a device can do it or not: that is for the back end to
   say, with ``manifest.problem`` and ``manifest.problems.raise_all``.
"""

import dataclasses
import os

from clawlite.core.base.errors import InvalidParams
from clawlite.host.base.document import Document, LinePlace, Place, refuse
from clawlite.host.base.kinds import KINDS
from clawlite.host.base.problems import (
    ManifestErrors,
    Problem,
    Problems,
    did_you_mean,
    enquote,
    value_text,
)
from clawlite.host.documents import lock, registries
from clawlite.host.documents.primitives import DeclaredNames, Primitive
from clawlite.host.documents.references import LISTS, References
from clawlite.host.documents.sources import Refused, Sources
from clawlite.host.drivers import pinned_drivers
from clawlite.host.hardware import pin_uses
from clawlite.host.manifest import cross_references, settings
from clawlite.host.manifest.features import MODELS
from clawlite.host.mcp import pinned, whole_servers
from clawlite.host.models.claw import ClawSpec, Envelope
from clawlite.host.models.common import Metadata
from clawlite.host.models.walk import convert
from clawlite.host.services import grants as services
from clawlite.host.tools import handlers, imports, signature, tool_providers

NAMES = ("claw.yaml", "claw.yml", "claw.json")  # looked for in a folder, in this order
HEARTBEAT_MS = 30_000  # CKP 9.3.1


@dataclasses.dataclass
class Manifest:
    """A whole agent, resolved.

    name, version (None when absent), description ("" when absent), labels, annotations   of the
    root
    heartbeat_interval_ms   >= 1
    identity                Primitive
    providers, channels, tools, skills, policies, world_models   lists of Primitive, in manifest
                                                                 order;
                            after the manifest's tools come the functions of tools.py without a Tool
                            of their own, and those of services
    memory, sandbox, swarm, telemetry   Primitive or None
    services                [``services.grants.Service``] that the agent may reach
    lacks_providers         clawlite.lock does not have what the tool providers of tools.py list
    settings                ``settings.Settings`` of clawlite.toml, defaults when there is none
    functions               [``signature.Function``] of tools.py, in file order
    imports                 ``imports.Imports`` of tools.py, None without one
    drivers                 the files of the drivers (``Pinned``) that the project has added
    sources                 [(name relative to the folder, bytes)] of every file read, sorted
    facts                   [(kind, path, what was found there)] of all that was looked at: "file"
                            its bytes, "folder" its entries, "present" and "plain" (a plain file) a
                            bool
    notes                   [((file, line), message)] of what has no effect, and of what MCP servers
                            lack or do wrong
    file                    the root document, as the user would open it; folder: where it lies
    """

    name: str
    version: str
    description: str
    labels: dict
    annotations: dict
    heartbeat_interval_ms: int
    identity: Primitive
    providers: list
    channels: list
    tools: list
    skills: list
    memory: Primitive
    sandbox: Primitive
    policies: list
    swarm: Primitive
    telemetry: Primitive
    world_models: list
    services: list
    lacks_providers: bool
    settings: settings.Settings
    functions: list
    imports: imports.Imports | None
    drivers: list
    sources: list
    facts: list
    notes: list
    file: str
    folder: str
    problems: Problems = dataclasses.field(repr=False)
    _versions: dict = dataclasses.field(repr=False)
    _uris: dict = dataclasses.field(repr=False)

    def driver_rows(self) -> list[dict]:
        """Return what is shown of the drivers (``pinned_drivers.list_rows``)."""
        return pinned_drivers.list_rows(self.drivers, self.imports.modules if self.imports else [])

    def primitives(self) -> list:
        """Return every primitive, in the order of the kinds in the root's spec."""
        found = [self.identity]
        for group in (
            self.providers,
            self.channels,
            self.tools,
            self.skills,
            self.memory,
            self.sandbox,
            self.policies,
            self.swarm,
            self.telemetry,
            self.world_models,
        ):
            found += group if isinstance(group, list) else [group] if group else []
        return found

    def resolve(self, kind: str, reference: str) -> Primitive:
        """Return the primitive that a checked *reference* (name or claw:// URI) of another one
        means.
        """
        name = cross_references.resolve(kind, reference, self._versions, self._uris)
        return [p for p in self.primitives() if p.kind == kind and p.name == name][0]

    def resolve_all(self, kind: str, reference: str) -> list[Primitive]:
        """Return the primitives that a checked *reference* of a skill means: a pattern means
        several.
        """
        try:
            names = cross_references.resolve_all(kind, reference, self._versions, self._uris)
        except InvalidParams:  # of an MCP server whose tools are not known yet
            return []
        found = {p.name: p for p in self.primitives() if p.kind == kind}
        return [found[name] for name in names]

    def problem(
        self,
        primitive: Primitive,
        path: tuple,
        message: str,
        expected: str = "",
        found: str = "",
        hint: str = "",
        key: bool = False,
    ) -> None:
        """Add a problem of a later stage at *path* in the spec of *primitive*;
        ``problems.raise_all`` raises them together.
        """
        own = primitive.entry is None
        self.problems.add(
            primitive.report_place, path if own else (), message, expected, found, hint, key and own
        )

    def note(self, primitive: Primitive, path: tuple, message: str) -> None:
        """Add a warning at *path* in the spec of *primitive*: what is valid, and has no effect."""
        noted = (primitive.where(*path), message)
        if noted not in self.notes:  # a build compiles twice
            self.notes.append(noted)


def pin(path, refresh: bool = False, allowed=()) -> list[str]:
    """Fetch what the manifest at *path* needs of other registries, into clawlite.lock
    (``registries.pin``); return its URIs.
    """
    file = locate(os.fspath(path))
    return registries.pin(Sources(os.path.dirname(file), allowed), os.path.basename(file), refresh)


def load_pinned(path, refresh: bool = False, allowed=(), accepted=()) -> tuple[Manifest, list[str]]:
    """Return (the Manifest at *path*, the URIs of what was pinned now), after everything that it
    needs from others has been pinned: documents of other registries are fetched, and tool providers
    of tools.py and MCP servers are started and asked for their tools.

    refresh  fetch and ask again, and refuse what has changed
    accepted names of MCP servers whose changes are taken
    Raises ManifestErrors, ``ClawError``.
    """
    documents = pin(path, refresh, allowed)
    loaded = load(path, allowed)
    asked = tool_providers.pin(loaded, allowed, refresh)
    servers, taken = pinned.pin(loaded, allowed, refresh, accepted)
    if asked or servers:
        loaded = load(path, allowed)
    loaded.notes += [((os.path.join(loaded.folder, lock.FILE), 0), text) for text in taken]
    return loaded, documents + asked + servers


def load(path, allowed=()) -> Manifest:
    """Return the Manifest at *path*: claw.yaml, a JSON file, or a folder with one of NAMES in it.

    allowed  folders outside of the manifest's that its files may lie in (host/documents/sources.py)
    Raises ManifestErrors with all problems of all files.
    """
    return _Loader(locate(os.fspath(path)), allowed).load()


def _list_earlier(file: str) -> list:
    """Return the names that ``locate`` prefers to *file* in its folder: none of them was there."""
    name = os.path.basename(file)
    earlier = NAMES[: NAMES.index(name)] if name in NAMES else ()
    return [os.path.join(os.path.dirname(file), one) for one in earlier]


def locate(path: str) -> str:
    """Return the file of the manifest at *path*, a file or a folder.  Raises ManifestErrors."""
    if path.endswith(".py"):
        refuse(
            path,
            0,
            "expected a manifest, found Python",
            hint="name claw.yaml or its folder: tools.py beside it is read by itself",
        )
    if not os.path.isdir(path):
        return path
    for name in NAMES:
        if os.path.isfile(os.path.join(path, name)):
            return os.path.join(path, name)
    others = sorted(set(os.listdir(path)) - set(NAMES))  # one that is no file has such a name
    near = did_you_mean("claw.yaml", others[:1000])
    refuse(
        path,
        0,
        "there is no claw.yaml in this folder",
        hint=near or "name the manifest, or make one with: clawlite new NAME",
    )


class _Loader:
    def __init__(self, file: str, allowed=()):
        self.file = file
        self.problems = Problems()
        self.sources = Sources(os.path.dirname(file), allowed)
        self.raws = DeclaredNames(MODELS, self.problems)
        self.readable = False  # tools.py is Python
        self.services = []
        self.notes = []
        self.lacks_providers = False  # the lock has not what tool providers list

    def load(self) -> Manifest:
        root = Place(self._root())
        if any(root.document.data.get("kind") == kind for kind in KINDS):
            self._refuse_part(root)
        metadata = self._envelope(root)
        spec = root.document.data.get("spec")
        references = References(self.sources, self.problems)
        if isinstance(spec, dict):
            convert(spec, ClawSpec, self._report(root.below("spec")))
            references.follow(spec, root.below("spec"))
        found = [self.raws.check(raw, metadata) for raw in references.raws]
        uris = {
            raw.uri: (made.kind, made.name)
            for raw, made in zip(references.raws, found)
            if made and raw.uri
        }
        found = [primitive for primitive in found if primitive]
        version = metadata.version if metadata else None
        functions = self._functions(found, version)
        before = len(self.problems.found)
        extra = settings.load(self.sources, self.problems)
        is_set = len(self.problems.found) == before
        self._services(found, extra, version)
        if is_set:
            whole_servers.expand(found, extra, self.sources, self.raws, self.problems, self.notes)
        self._cross(references, uris)
        heartbeat = self._heartbeat(root)
        drivers = pinned_drivers.read(self.sources, self.problems)
        imported = None
        if is_set and self.readable:
            imported = imports.read_imports(self.sources, extra.packages, drivers, self.problems)
        if is_set:
            self._pins(extra)
            tools = [one for one in found if one.kind == "Tool"]
            pinned.bind(tools, extra, self.sources, self.problems, self.notes)
        self.problems.raise_all()
        return self._manifest(metadata, heartbeat, found, extra, functions, imported, drivers, uris)

    def _report(self, place):
        return lambda path, *args, **named: self.problems.add(place, path, *args, **named)

    def _root(self) -> Document:
        name = os.path.basename(self.file)
        try:
            document = self.sources.document(name, self.problems)
        except Refused as e:
            raise ManifestErrors([Problem((), e.message, self.file, hint=e.hint)]) from None
        self.problems.raise_all()
        if not isinstance(document.data, dict):
            found = "an empty file" if document.data is None else value_text(document.data)
            message = f"expected a Claw document, found {found}"
            refuse(document.file, 1, message, hint="name the file that has kind: Claw")
        return document

    def _refuse_part(self, root: Place):
        """Raise for a document that a manifest refers to: nothing else of it is wrong."""
        kind = root.document.data["kind"]
        slot = KINDS[kind][0]
        ref = f'"./{os.path.basename(self.file)}"'
        said = f"{slot}: {ref}" if slot not in LISTS else f"{slot}: [{ref}]"
        hint = f"a manifest begins with the root document; its spec names this file: {said}"
        self.problems.add(root, ("kind",), "", '"Claw"', value_text(kind), hint)
        self.problems.raise_all()

    def _envelope(self, root: Place):
        data = root.document.data
        convert(data, Envelope, self._report(root))
        if "kind" in data and data["kind"] != "Claw":
            self.problems.add(
                root,
                ("kind",),
                "",
                '"Claw"',
                value_text(data["kind"]),
                did_you_mean(data["kind"], ["Claw"]) or "a manifest begins with the root document",
            )
        return (
            convert(data["metadata"], Metadata, lambda *a, **k: None)
            if "metadata" in data
            else None
        )

    def _functions(self, found: list, version: str) -> list:
        """Read tools.py when there is one; bind its functions and append those that are tools of
        their own to *found*.
        """
        if not self.sources.exists(signature.FILE):
            return []
        file = self.sources.find_path(signature.FILE)
        try:
            functions, broken = signature.read(
                self.sources.read(signature.FILE), file, self.problems
            )
        except Refused as e:
            self.problems.add(LinePlace(file), (), e.message, hint=e.hint)
            return []
        tools = [primitive for primitive in found if primitive.kind == "Tool"]
        handlers.bind(tools, functions, self.problems)
        self.readable = broken is not None
        if self.readable:
            handlers.missing(
                [tool for tool in tools if tool.name not in broken], functions, self.problems
            )
        own = handlers.own_tools(functions, self.raws.names["Tool"], file, version)
        offered, self.lacks_providers = tool_providers.bind(self.sources, version, self.problems)
        if self.lacks_providers:
            self.raws.broken.add("Tool")
        own += offered
        for tool in own:
            self.raws.versions["Tool", tool.name] = version
        found += own
        return functions

    def _services(self, found: list, extra: settings.Settings, version: str) -> None:
        """Append the tools and skills that the agent has of services to *found*."""
        self.services, added = services.bind(extra, self.sources, self.problems, version)
        for one in added:
            if (one.kind, one.name) in self.raws.versions:
                self.problems.add(
                    one.place,
                    (),
                    f"a {one.kind} {enquote(one.name)} is already declared",
                    hint="give one of them another name",
                )
            self.raws.versions[one.kind, one.name] = version
        found += added

    def _pins(self, extra: settings.Settings) -> None:
        """Compare the pins and buses that tools.py names with those of clawlite.toml; what is no
        Python has its problem already.
        """
        source = self.sources.files.get(signature.FILE)
        if source and b"board" in source and self.readable:
            file = self.sources.find_path(signature.FILE)
            pin_uses.check(source, file, extra.pins, extra.buses, self.problems)

    def _cross(self, references: References, uris: dict) -> None:
        check = cross_references.References(
            self.raws, uris, references.broken | self.raws.broken, self.problems
        )
        for kind, uri, place in references.local:
            check.slot(kind, uri, place)
        check.check()

    def _heartbeat(self, root: Place) -> int:
        metadata = root.document.data.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        value = (
            annotations.get("heartbeat_interval_ms", HEARTBEAT_MS)
            if isinstance(annotations, dict)
            else HEARTBEAT_MS
        )
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.problems.add(
                root,
                ("metadata", "annotations", "heartbeat_interval_ms"),
                "",
                "a whole number, at least 1",
                value_text(value),
                "remove the quotes" if isinstance(value, str) and value.isdigit() else "",
            )
        return value

    def _facts(self) -> list:
        facts = [(kind, path, found) for (kind, path), found in self.sources.facts.items()]
        return facts + [("plain", path, os.path.isfile(path)) for path in _list_earlier(self.file)]

    def _manifest(
        self,
        metadata: Metadata,
        heartbeat: int,
        found: list,
        extra: settings.Settings,
        functions: list,
        imported: imports.Imports | None,
        drivers: list,
        uris: dict,
    ) -> Manifest:
        def of(kind):
            return [primitive for primitive in found if primitive.kind == kind]

        def one(kind):
            return (of(kind) or [None])[0]

        return Manifest(
            metadata.name,
            metadata.version,
            metadata.description or "",
            metadata.labels or {},
            metadata.annotations or {},
            heartbeat,
            one("Identity"),
            of("Provider"),
            of("Channel"),
            of("Tool"),
            of("Skill"),
            one("Memory"),
            one("Sandbox"),
            of("Policy"),
            one("Swarm"),
            one("Telemetry"),
            of("WorldModel"),
            self.services,
            self.lacks_providers,
            extra,
            functions,
            imported,
            drivers,
            sorted(self.sources.files.items()),
            self._facts(),
            self.notes,
            self.sources.find_path(os.path.basename(self.file)),
            self.sources.folder,
            self.problems,
            self.raws.versions,
            uris,
        )
