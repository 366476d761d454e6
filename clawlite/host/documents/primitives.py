"""Raw documents to checked primitives: envelope, metadata, spec; names unique within a kind.

Every problem of a document is reported; a primitive is made only of a document that has none.
"""

import dataclasses

import msgspec

from clawlite.host.base.document import LinePlace, Place
from clawlite.host.base.kinds import KINDS
from clawlite.host.base.problems import Problems, enquote
from clawlite.host.documents.references import INLINE_ONLY, RawPrimitive
from clawlite.host.models.claw import Envelope
from clawlite.host.models.common import Metadata
from clawlite.host.models.walk import convert
from clawlite.host.schema import validity


@dataclasses.dataclass
class Primitive:
    """One checked primitive.

    kind      "Tool", ...; name: unique in its kind; version: text, or None when nothing gives one
    spec      the Struct of its kind (``Feature.model``)
    uri       canonical: claw://local/KIND/NAME, or the registry's URI with its version
    file      as the user would open it
    origin    "file", "inline", "registry", "remote" (another registry), "function" (tools.py
              alone) or "service" (its descriptor)
    place     where the fields of the spec stand
    function  for a tool: the ``signature.Function`` that handles it, or None
    service   for a tool: the ``host.services.grants.Tool`` of the service that answers it, or None
    served    for a tool: the ``host.mcp.pinned.Served`` of the MCP server that answers it, or None
    is_internal  for a tool: a model sees it only where a skill needs it
    told      where a maker is told of it: in a file of theirs, or where the manifest names a
              document of this package
    """

    kind: str
    name: str
    version: str
    labels: dict
    annotations: dict
    spec: msgspec.Struct
    uri: str
    origin: str
    place: Place | LinePlace
    function: object = None
    entry: Place = None  # where the manifest names a document of this package
    served: object = None
    service: object = None
    is_internal: bool = False

    @property
    def report_place(self) -> Place | LinePlace:
        return self.entry or self.place

    @property
    def file(self) -> str:
        return self.place.where()[0]

    def where(self, *path) -> tuple:
        """Return (file, line) of the field at *path* in the spec: ``where("rules", 2,
        "match")``.
        """
        return self.place.where(path)

    def line(self, *path) -> int:
        return self.place.where(path)[1]


class DeclaredNames:
    """Names of what the manifest declares, also of documents with mistakes, so that one mistake
    is not reported twice.

    models  kind -> the Struct of its spec (host/manifest/features.py)
    """

    def __init__(self, models: dict, problems: Problems):
        self.models, self.problems = models, problems
        self.names = {kind: {} for kind in KINDS}  # kind -> {name: (file, line)}
        self.versions = {}  # (kind, name) -> version
        # kinds with a document whose name is not known
        self.broken = set()
        # (kind, name or "", raw spec, its place), for the references in them
        self.specs = []

    def check(self, raw: RawPrimitive, root) -> Primitive:
        """Return the Primitive in *raw*, or None after its problems have been reported; *root*:
        ``Metadata`` of the Claw, or None.
        """
        before = len(self.problems.found)
        root_version = root.version if root else None
        if raw.origin == "inline":
            metadata, spec = self._inline(raw, root)
            place = raw.place
        else:
            metadata, spec = self._document(raw)
            place = raw.place.below("spec")
        version = metadata.version if metadata else None
        if version is None and raw.origin == "inline":
            version = root_version
        if metadata:
            self._name(raw, metadata.name, version)
        else:
            self.broken.add(raw.kind)
        fields = raw.fields if raw.origin == "inline" else raw.fields.get("spec")
        self.specs.append((raw.kind, metadata.name if metadata else "", fields, place))
        if len(self.problems.found) > before or metadata is None or spec is None:
            # perhaps it is the name that is misspelt
            # or that of a store, which a world model may name
            if raw.kind == "Memory" or raw.origin == "inline" and "name" not in raw.fields:
                self.broken.add(raw.kind)
            return None
        word = KINDS[raw.kind][1]
        return Primitive(
            raw.kind,
            metadata.name,
            version,
            metadata.labels or {},
            metadata.annotations or {},
            spec,
            raw.uri or f"claw://local/{word}/{metadata.name}",
            raw.origin,
            place,
            None,
            raw.entry if raw.origin == "registry" else None,
        )

    def _report(self, place):
        return lambda path, *args, **named: self.problems.add(place, path, *args, **named)

    def _document(self, raw: RawPrimitive) -> tuple:
        fields = raw.fields
        convert(fields, Envelope, self._report(raw.place))
        metadata = (
            convert(fields["metadata"], Metadata, lambda *a, **k: None)
            if "metadata" in fields
            else None
        )
        spec = fields.get("spec")
        if not isinstance(spec, dict):
            return metadata, None
        return metadata, self._spec(raw.kind, spec, raw.place.below("spec"))

    def _inline(self, raw: RawPrimitive, root) -> tuple:
        fields, word = raw.fields, KINDS[raw.kind][1]
        inner = fields.get("metadata", {})
        if not isinstance(inner, dict):
            inner = {}
            self.problems.add(
                raw.place,
                ("metadata",),
                "expected a mapping",
                hint="write metadata with a name below it",
            )
        if "name" in fields and "name" in inner:
            self.problems.add(
                raw.place,
                ("name",),
                "the name is here and in metadata",
                key=True,
                hint="remove one of them",
            )
        # Runtime Profile 0.2.0, 2: an Identity has the Claw's name, others their place in the list
        made = root.name if root and raw.kind == "Identity" else f"{word}-{raw.index}"
        name = fields.get("name", inner.get("name", made))

        def report(path, *args, **named):
            inside = () if path[:1] == ("name",) and "name" in fields else ("metadata",)
            self.problems.add(raw.place, inside + path, *args, **named)

        metadata = convert({**inner, "name": name}, Metadata, report)
        if "spec" in fields:
            self.problems.add(
                raw.place,
                ("spec",),
                "unknown field",
                key=True,
                hint="inline takes the fields of the spec themselves, without spec:",
            )
            return metadata, None
        spec = {key: value for key, value in fields.items() if key not in INLINE_ONLY}
        return metadata, self._spec(raw.kind, spec, raw.place)

    def _spec(self, kind: str, fields: dict, place: Place):
        spec = convert(fields, self.models[kind], self._report(place))
        if kind in ("Tool", "Skill"):
            for key in ("input_schema", "output_schema"):
                if isinstance(fields.get(key), dict):
                    check = validity.check_arguments if key == "input_schema" else validity.check
                    check(fields[key], self._report(place.below(key)))
        return spec

    def _name(self, raw: RawPrimitive, name: str, version: str) -> None:
        taken = self.names[raw.kind]
        place, path = (
            (raw.place, ("metadata", "name")) if raw.origin != "inline" else (raw.place, ("name",))
        )
        if raw.uri or raw.origin == "inline" and "name" not in raw.fields:
            place, path = raw.entry, ()  # a name that does not stand in the maker's files
        if name in taken:
            file, line = taken[name]
            self.problems.add(
                place,
                path,
                f"a {raw.kind} {enquote(name)} is already declared ({file}:{line})",
                hint="names are unique within a kind",
            )
            return
        taken[name] = place.where(path)
        self.versions[raw.kind, name] = version
