"""The entries of the root's spec, followed: files, globs, inline primitives, claw:// URIs.

1. Every entry becomes zero or more ``RawPrimitive``; what cannot be followed becomes a problem at
   the entry.
2. A local URI in a slot declares nothing: it must name a primitive that another entry declares.
3. Nothing of a primitive's spec is checked here; ``primitives`` does that.
"""

import dataclasses

from clawlite.core.base import uri as claw_uri
from clawlite.core.base.errors import InvalidParams
from clawlite.host.base.document import Place
from clawlite.host.base.kinds import KINDS
from clawlite.host.base.problems import Problems, did_you_mean, enquote, value_text
from clawlite.host.documents import registries, registry
from clawlite.host.documents.sources import Refused, Sources, is_glob

INLINE_ONLY = ("name", "metadata")  # what an inline primitive has beside the fields of its spec
REQUIRED = ("identity", "providers")
# the other slots hold one entry
LISTS = ("providers", "channels", "tools", "skills", "policies", "world_models")


@dataclasses.dataclass
class RawPrimitive:
    """One primitive before its checks.

    fields    the document, or what stands below ``inline:``
    place     where *fields* stand; entry: where the root names it
    origin    "file", "inline", "registry" (the package's) or "remote" (another one); uri: for
              registries the URI, else ""
    index     position in its slot, for a generated name
    """

    kind: str
    fields: object
    place: Place
    entry: Place
    origin: str
    index: int
    uri: str = ""


class References:
    """raws: what was found, in manifest order; broken: kinds of which some entry could not be
    followed.
    """

    def __init__(self, sources: Sources, problems: Problems):
        self.sources = sources
        self.problems = problems
        self.raws = []
        self.broken = set()
        self.local = []  # (kind, URI, Place) of local URIs in slots

    def follow(self, spec: dict, place: Place) -> None:
        """Follow every slot of the root's *spec*, a mapping whose slots may still be of a wrong
        type.
        """
        slots = [slot for slot, _ in KINDS.values()]
        is_misspelt = any(key not in slots for key in spec)  # whose place might be another's
        for kind, (slot, _) in KINDS.items():
            if slot not in spec:
                if is_misspelt or slot in REQUIRED:
                    self.broken.add(kind)
                continue
            value = spec[slot]
            if slot not in LISTS:
                self._entry(kind, value, place.below(slot), 0)
            elif isinstance(value, list):
                for index, entry in enumerate(value):
                    self._entry(kind, entry, place.below(slot, index), index)
            else:
                self.broken.add(kind)

    def _entry(self, kind: str, entry, place: Place, index: int) -> None:
        try:
            if isinstance(entry, str) and entry.startswith("claw://"):
                self._uri(kind, entry, place, index)
            elif isinstance(entry, str) and entry:
                self._files(kind, entry, place, index)
            elif isinstance(entry, dict):
                self._inline(kind, entry, place, index)
            else:
                hint = (
                    f"there is exactly one {kind}"
                    if isinstance(entry, list) and KINDS[kind][0] not in LISTS
                    else ""
                )
                self._refuse(
                    kind,
                    place,
                    "",
                    "a file name, a claw:// URI or inline: {...}",
                    value_text(entry),
                    hint,
                )
        except Refused as e:
            self._refuse(kind, place, e.message, hint=e.hint)

    def _refuse(
        self,
        kind: str,
        place: Place,
        message: str,
        expected: str = "",
        found: str = "",
        hint: str = "",
    ) -> None:
        self.broken.add(kind)
        self.problems.add(place, (), message, expected, found, hint)

    def _files(self, kind: str, reference: str, place: Place, index: int) -> None:
        if reference.startswith("mcp://"):
            raise Refused(
                "the mcp:// scheme is reserved and must not be used",
                "name a file, or write the tool in tools.py",
            )
        if (
            is_glob(reference)
            and KINDS[kind][0] not in LISTS
            and not self.sources.exists(reference)
        ):
            raise Refused(f"one {kind} stands here, not a glob", "name one file")
        for name in self.sources.expand(reference):
            document = self.sources.document(name, self.problems)
            if document is None:
                self.broken.add(kind)
            else:
                self._found(
                    kind, RawPrimitive(kind, document.data, Place(document), place, "file", index)
                )

    def _uri(self, kind: str, text: str, place: Place, index: int) -> None:
        try:
            uri = claw_uri.parse(text, alias=True)
        except InvalidParams as e:
            raise Refused(e.message, _with_version(text)) from None
        if uri.authority == "registry":
            own = uri.namespace == registry.NAMESPACE
            document = (
                registry.document(uri.name, uri.version)
                if own
                else registries.document(self.sources, uri)
            )
            self.sources.files[text] = document.source
            self._found(
                kind,
                RawPrimitive(
                    kind,
                    document.data,
                    Place(document),
                    place,
                    "registry" if own else "remote",
                    index,
                    claw_uri.canonical(uri),
                ),
            )
        elif uri.kind != KINDS[kind][1]:
            raise Refused(
                f"{enquote(text)} is no {kind}", f"name a {kind} here, or the file that holds one"
            )
        else:
            self.local.append((kind, uri, place))

    def _found(self, kind: str, raw: RawPrimitive) -> None:
        """Keep *raw* when its kind fits the slot; else say so, at its ``kind`` line or where the
        root names it.
        """
        if not isinstance(raw.fields, dict):
            self.problems.add(
                raw.place,
                (),
                f"expected a {kind} document, found {value_text(raw.fields)}",
                hint="the file is empty" if raw.fields is None else "",
            )
            self.broken.add(kind)
            return
        found = raw.fields.get("kind")
        if "kind" in raw.fields and found != kind:
            if raw.uri:
                raise Refused(f"{raw.uri} is a {found}, not a {kind}", f"name a {kind} here")
            slot = f"the manifest lists this file under spec.{KINDS[kind][0]}"
            near = did_you_mean(found, [kind]) if found not in list(KINDS) else ""
            self._refuse(
                kind, raw.place.below("kind"), "", enquote(kind), value_text(found), near or slot
            )
            return
        self.raws.append(raw)

    def _inline(self, kind: str, entry: dict, place: Place, index: int) -> None:
        for key in entry:
            if key != "inline":
                self.broken.add(kind)
                self.problems.add(
                    place,
                    (key,),
                    "unknown field",
                    key=True,
                    hint=did_you_mean(key, ["inline"])
                    or "an entry is a file name, a claw:// URI or a mapping with the "
                    "one key inline",
                )
        if "inline" not in entry:
            if not entry:
                raise Refused("an empty entry", "write a file name, a claw:// URI or inline: {...}")
            return
        fields = entry["inline"]
        below = place.below("inline")
        if not isinstance(fields, dict):
            self._refuse(kind, below, "", "a mapping", value_text(fields))
        else:
            self.raws.append(RawPrimitive(kind, fields, below, place, "inline", index))


def _with_version(text: str) -> str:
    """Return a hint with the version that a URI of the package's own registry lacks, or "" for
    any other.
    """
    own = f"claw://registry/{registry.NAMESPACE}/"
    name = text.removeprefix(own).partition("@")[0]
    if not text.startswith(own) or name not in registry.names():
        return ""
    return f"write {enquote(own + name + '@' + registry.version(name))}"
