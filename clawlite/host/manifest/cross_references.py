"""Check the references between primitives: every name that is referred to must exist, and no chain
of references may be a circle.

1. A reference is a bare name, a claw:// URI of the right kind, or the registry URI that a slot
   lists.
2. Tools may be named in snake case: ``read_file`` and ``read-file`` are one tool.
3. A swarm also names agents of other manifests, so its names need not be declared here.
4. A skill may name its tools by a pattern: ``*`` stands for any characters, ``?`` for one.
5. When an entry of a kind could not be read, missing names of that kind are not reported.  Each
   missing name is reported once.
"""

import fnmatch

from clawlite.core.base import uri as claw_uri
from clawlite.core.base.errors import InvalidParams
from clawlite.host.base.kinds import KINDS
from clawlite.host.base.problems import Problems, did_you_mean, enquote, one_of
from clawlite.host.documents.primitives import DeclaredNames

EACH = "*"
# (kind, path in its spec, kind that is named)
REFERENCES = (
    ("Tool", ("sandbox_ref",), "Sandbox"),
    ("Tool", ("policy_ref",), "Policy"),
    ("Tool", ("skill_ref",), "Skill"),
    ("Skill", ("tools_required", EACH), "Tool"),
    ("Skill", ("world_model_ref",), "WorldModel"),
    ("Provider", ("fallback", EACH, "provider_ref"), "Provider"),
    ("Memory", ("stores", EACH, "embedding", "provider_ref"), "Provider"),
    ("WorldModel", ("memory_ref",), "Memory"),
    ("WorldModel", ("constraints", "policy_ref"), "Policy"),
    ("Swarm", ("agents", EACH, "identity_ref"), "Identity"),
    ("Swarm", ("agents", EACH, "provider_ref"), "Provider"),
)
# chains that must end: fallback to fallback, composite tool to its skill to the tools that it needs
CHAINS = {("Provider", "Provider"), ("Tool", "Skill"), ("Skill", "Tool")}


def resolve(kind: str, reference: str, versions: dict, uris: dict) -> str:
    """Return the name that *reference* means.

    versions  {(kind, name): version}; uris {registry URI: (kind, name)}
    Raises InvalidParams (message, hint) when it is no name and no URI of a declared *kind*.
    """
    names = [name for known, name in versions if known == kind]
    if reference.startswith("claw://"):
        return _resolve_uri(kind, reference, versions, uris, names)
    if kind == "Tool" and reference not in names:
        reference = reference.replace("_", "-")
    if reference not in names:
        raise InvalidParams(
            f"there is no {kind} {enquote(reference)}", _offer(reference, kind, names)
        )
    return reference


def resolve_all(kind: str, reference: str, versions: dict, uris: dict) -> list:
    """Return the names that *reference* means: several where it is a pattern of tools, in their
    order.  Raises InvalidParams as ``resolve`` does.
    """
    # no name of a tool has the characters of a pattern
    if kind != "Tool" or reference.startswith("claw://") or not {*reference} & {*"*?"}:
        return [resolve(kind, reference, versions, uris)]
    names = [name for known, name in versions if known == kind]
    found = fnmatch.filter(names, reference)
    if not found:
        raise InvalidParams(
            f"no {kind} has a name like {enquote(reference)}", _offer(reference, kind, names)
        )
    return found


def _resolve_uri(kind: str, reference: str, versions: dict, uris: dict, names: list) -> str:
    uri = claw_uri.parse(reference, alias=True)
    if uri.authority == "registry":
        if reference not in uris:
            raise InvalidParams(
                f"{enquote(reference)} is not in the manifest",
                f"list it under spec.{KINDS[kind][0]} too",
            )
        found, name = uris[reference]
        if found != kind:
            raise InvalidParams(
                f"{enquote(reference)} is a {found}, not a {kind}", _offer(name, kind, names)
            )
        return name
    if uri.kind != KINDS[kind][1]:
        raise InvalidParams(
            f"{enquote(reference)} is no {kind}", f"write claw://local/{KINDS[kind][1]}/NAME"
        )
    if uri.name not in names:
        raise InvalidParams(
            f"{claw_uri.canonical(uri)} does not exist in this manifest",
            _offer(uri.name, kind, names),
        )
    has = versions[kind, uri.name]
    if uri.version is not None and uri.version != has:
        raise InvalidParams(
            f"{claw_uri.canonical(uri)}: the {kind} here has "
            + (f"version {has}" if has else "no version"),
            "name that version, or leave the @ part out",
        )
    return uri.name


def _offer(name: str, kind: str, names: list) -> str:
    near = did_you_mean(name, names)
    if near or not names:
        return near or f"declare it under spec.{KINDS[kind][0]}"
    return "there is " + one_of(names) if len(names) <= 6 else ""


class References:
    """Checks every reference once all names are known."""

    def __init__(self, raws: DeclaredNames, uris: dict, broken: set, problems: Problems):
        self.raws, self.uris, self.broken, self.problems = raws, uris, broken, problems
        self.missing = set()  # (kind, name) of those already reported
        self.edges = {}  # (kind, name) -> [((kind, name), place, path)] of CHAINS

    def check(self) -> None:
        for kind, name, spec, place in self.raws.specs:
            for source, pattern, target in REFERENCES:
                if source == kind:
                    for path, value in _values(spec, pattern):
                        self._one(kind, name, target, value, place, path)
            if kind == "WorldModel":
                self._backend(name, spec, place)
        self._loops()

    def slot(self, kind: str, uri, place) -> None:
        """Check a local URI that stands in a slot of the root."""
        self._one("Claw", "", kind, claw_uri.canonical(uri), place, ())

    def _one(self, kind: str, name: str, target: str, value: str, place, path: tuple) -> None:
        if kind == "Swarm" and _may_be_elsewhere(target, value):
            return
        try:
            meant = (
                resolve_all(target, value, self.raws.versions, self.uris)
                if kind == "Skill"
                else [resolve(target, value, self.raws.versions, self.uris)]
            )
        except InvalidParams as e:
            wanted = target, value.removeprefix(f"claw://local/{KINDS[target][1]}/")
            if target in self.broken or target == "Memory" and value in self._stores():
                return
            if wanted not in self.missing:
                self.problems.add(place, path, e.message, hint=e.hint)
            self.missing.add(wanted)
            return
        if (kind, target) in CHAINS:
            edges = self.edges.setdefault((kind, name), [])
            edges.extend(((target, one), place, path) for one in meant)

    def _stores(self) -> list:
        """Return the names of all stores: a world model may name the one store that it reads."""
        return [
            value
            for kind, _, spec, _ in self.raws.specs
            if kind == "Memory"
            for _, value in _values(spec, ("stores", EACH, "name"))
        ]

    def _backend(self, name: str, spec, place) -> None:
        backend = spec.get("backend") if isinstance(spec, dict) else None
        if not isinstance(backend, dict) or not isinstance(backend.get("ref"), str):
            return
        target = {"tool": "Tool", "provider": "Provider"}.get(str(backend.get("type")))
        if target:
            self._one("WorldModel", name, target, backend["ref"], place, ("backend", "ref"))

    def _loops(self) -> None:
        """Report each chain that comes back, once, at the reference that closes it."""
        done = set()
        for start in list(self.edges):
            chain = []  # iterative depth first: a chain may be as long as the manifest
            todo = [(start, None, iter(self.edges.get(start, ())))]
            while todo:
                node, _, edges = todo[-1]
                edge = next(edges, None)
                if edge is None:
                    done.add(node)
                    todo.pop()
                    continue
                target, place, path = edge
                chain = [entry[0] for entry in todo]
                if target in chain:
                    names = [name for _, name in chain[chain.index(target) :]] + [target[1]]
                    self.problems.add(
                        place,
                        path,
                        "this chain comes back to its start: " + " -> ".join(names),
                        hint="leave one of them out",
                    )
                elif target not in done:
                    todo.append((target, edge, iter(self.edges.get(target, ()))))


def _may_be_elsewhere(target: str, value: str) -> bool:
    """Return whether *value* names a *target* that another manifest may declare: a swarm has
    agents of several (5.9, its example).
    """
    if not value.startswith("claw://"):
        return value != ""
    try:
        uri = claw_uri.parse(value, alias=True)
    except InvalidParams:
        return False
    return uri.authority == "registry" or uri.kind == KINDS[target][1]


def _values(spec, pattern: tuple, path: tuple = ()):
    """Yield (path, text) of every string that *pattern* reaches in *spec*, whatever else stands
    there.
    """
    if not pattern:
        if isinstance(spec, str):
            yield path, spec
    elif pattern[0] is EACH:
        for index, item in enumerate(spec if isinstance(spec, list) else ()):
            yield from _values(item, pattern[1:], path + (index,))
    elif isinstance(spec, dict) and pattern[0] in spec:
        yield from _values(spec[pattern[0]], pattern[1:], path + (pattern[0],))
