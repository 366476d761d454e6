"""The Memory of a manifest (CKP 0.2.0, 5.6) to the section of the image that core/image/memories.py
reads.

1. What this version keeps: conversation, semantic, key-value and checkpoint stores in SQLite,
   workspaces as files.  Anything else is refused by name.
2. The fields of 0.3.0 that speak of cognition (role, lifecycle, forgetting, salience, confidence)
   are accepted; they choose a compaction and a search where none is declared, and nothing else
   here.
"""

from clawlite.core.image import memories
from clawlite.core.memory.memory_methods import MAX_NUMBERS
from clawlite.core.policy.policy import is_within, normalise
from clawlite.host.base.problems import LATER, did_you_mean, enquote, value_text
from clawlite.host.memory.store_type import TYPES
from clawlite.host.models.common import seconds_of
from clawlite.host.providers import local_model, provider_order, remotes
from clawlite.host.sandbox import sandboxes

SCOPES = {
    None: memories.GLOBAL,
    "global": memories.GLOBAL,
    "shared": memories.GLOBAL,
    "per-identity": memories.PER_IDENTITY,
    "per-channel": memories.PER_CHANNEL,
}
SEARCHES = {
    None: memories.HYBRID,
    "fts-only": memories.FTS,
    "vector-only": memories.VECTOR,
    "hybrid": memories.HYBRID,
}
FUSIONS = {
    None: memories.RECIPROCAL,
    "reciprocal-rank": memories.RECIPROCAL,
    "linear-combination": memories.LINEAR,
}
TOP_K = 10
_VARIABLES = ("identity_name", "tenant_id")


def check(manifest, at_use: bool) -> None:
    """Add a problem for every part of the Memory of *manifest* that this version does not keep,
    and every setting that fits no store.
    """
    for name, path in (manifest.identity.spec.context_files or {}).items():
        steps = path.removeprefix("./").split("/")
        if "\0" in path or any(step in ("", ".", "..") for step in steps):
            manifest.problem(
                manifest.identity,
                ("context_files", name),
                "",
                'a path from the manifest\'s folder, without ".."',
                enquote(path),
            )
    stores = manifest.memory.spec.stores if manifest.memory else []
    for index, store in enumerate(stores):

        def problem(field, *args, **named):
            manifest.problem(manifest.memory, ("stores", index, *field), *args, **named)

        _store(store, manifest.settings.memory.encryption, problem)
        _path(manifest, store, problem)
        for path, why in _without_effect(store):
            said = f"{'.'.join(path)} of {store.name} has no effect: {why}"
            manifest.note(manifest.memory, ("stores", index, *path), said)
        if store.embedding is not None and not provider_order.embeds(store):
            manifest.note(
                manifest.memory,
                ("stores", index, "embedding"),
                f"embedding has no effect: search.strategy of {store.name} is fts-only, which "
                "looks at no vector (hybrid and vector-only do)",
            )
        elif store.embedding is not None:
            _embedding(manifest, store, problem)
    if manifest.settings.memory.encryption and not any(store.encryption for store in stores):
        manifest.problems.add(
            manifest.settings.place,
            ("memory", "encryption"),
            "no store says encryption: true",
            hint="remove it, or encrypt one",
            key=True,
        )
    names = [store.name for store in stores]
    files = [store.name for store in stores if lies_in_files(store)]
    for promise in ("power_safe", "wear_saving"):
        for number, name in enumerate(getattr(manifest.settings.memory, promise) or ()):
            if name not in names:
                manifest.problems.add(
                    manifest.settings.place,
                    ("memory", promise, number),
                    f"there is no store {enquote(name)}",
                    hint=did_you_mean(name, names),
                )
            elif promise == "wear_saving" and name in files:
                manifest.problems.add(
                    manifest.settings.place,
                    ("memory", promise, number),
                    "what lies in files has no journal",
                    hint="remove it",
                )


def in_files(store) -> bool:
    """Return whether *store* is a conversation in files."""
    return store.type == "conversation" and store.backend == "filesystem"


def lies_in_files(store) -> bool:
    """Return whether what *store* keeps are files: a path and a size are its own."""
    return TYPES[store.type].does(memories.FILES) or in_files(store)


def _store(store, key: str | None, problem) -> None:
    declared = TYPES[store.type]
    taken = declared.backends
    if store.backend is not None and store.backend not in taken:
        problem(
            ("backend",),
            f'backend "{store.backend}" of a {store.type} store is {LATER}',
            " or ".join(map(enquote, taken)),
        )
    if store.encryption and declared.does(memories.FILES):
        problem(
            ("encryption",),
            f"files of a {store.type} are not encrypted",
            hint=f"remove it, and keep the {store.type} on an encrypted disk",
        )
    elif store.encryption and in_files(store):
        problem(
            ("encryption",),
            "a conversation in files is not encrypted",
            hint="remove it, or use backend: sqlite",
        )
    elif store.encryption and not key:
        problem(
            ("encryption",),
            "it needs a key",
            hint='name a secret in clawlite.toml: [memory] encryption = "NAME"',
        )
    if store.search is not None and not declared.does(memories.SEARCHED):
        problem(
            ("search",),
            f"a {store.type} store is not searched",
            key=True,
            hint="remove it, or use type: semantic",
        )
    if (
        store.compaction is not None
        and not declared.does(memories.SEARCHED)
        and store.compaction.enabled is not False
    ):
        problem(
            ("compaction",),
            f"a {store.type} store has nothing to compact: a new entry replaces the old one",
            key=True,
            hint="remove it",
        )
    if (
        store.scope is not None
        and store.isolation is not None
        and SCOPES[store.scope] != SCOPES[store.isolation]
    ):
        problem(
            ("isolation",),
            f"it contradicts scope: {store.scope}",
            hint="leave one of them out",
            key=True,
        )
    if store.checkpoint is not None and not declared.does(memories.SNAPSHOTS):
        problem(
            ("checkpoint",),
            f"a {store.type} store has no checkpoints",
            hint="use type: checkpoint, or remove it",
            key=True,
        )
    if store.retention is not None and declared.does(memories.FILES):
        problem(
            ("retention",),
            f"files of a {store.type} are not forgotten by themselves",
            hint="use max_size_mb, or remove it",
            key=True,
        )
    if store.max_size_mb is not None and not lies_in_files(store):
        problem(
            ("max_size_mb",),
            f"the size of a {store.type} store is {LATER}",
            hint="use retention.max_entries",
            key=True,
        )


def _without_effect(store) -> list[tuple]:
    """Return [(path, why)] of the valid fields of *store* that nothing here acts by."""
    life, forgets = store.lifecycle, store.forgetting
    found = [
        ((name,), why)
        for name, why in (
            ("role", "stores are told apart by type"),
            ("salience", "entries are not weighed"),
            ("confidence", "entries carry no source and no certainty"),
        )
        if getattr(store, name) is not None
    ]
    if life and life.acquisition:
        why = (
            "conversations are kept by themselves, other stores are written by tools and operators"
        )
        found.append((("lifecycle", "acquisition"), why))
    if life and life.consolidation in ("merge", "adaptive"):
        why = f"{life.consolidation} is not done (summarize is)"
        found.append((("lifecycle", "consolidation"), why))
    if life and life.retrieval == "contextual":
        why = "contextual is searched as if nothing was said (exact and semantic are known)"
        found.append((("lifecycle", "retrieval"), why))
    if forgets and forgets.strategy in ("decay", "adaptive"):
        why = f"{forgets.strategy} is not done (retention.max_age and max_entries are)"
        found.append((("forgetting", "strategy"), why))
    if forgets and forgets.signals:
        found.append((("forgetting", "signals"), "nothing is measured for it"))
    return found


def _embedding(manifest, store, problem) -> None:
    """Check ``embedding``: of a semantic store, by a provider whose API makes some."""
    provider = manifest.resolve("Provider", store.embedding.provider_ref)
    if not TYPES[store.type].embeds:
        problem(
            ("embedding",),
            f"a {store.type} store has no embeddings",
            hint="use type: semantic, or remove it",
            key=True,
        )
    if local_model.is_local(provider):
        for field, only in (("model", local_model.MODEL), ("dimensions", local_model.DIMENSIONS)):
            found = getattr(store.embedding, field)
            if found != only:
                problem(("embedding", field), "", value_text(only), value_text(found))
    elif provider.spec.endpoint in provider_order.ENDPOINTS:
        problem(
            ("embedding", "provider_ref"),
            f"{provider.spec.endpoint} makes no embeddings for stores",
            hint='name a provider with protocol "openai-compatible" or the local model '
            '("builtin:local"), or remove embedding: the store is searched by words then',
        )
    elif provider.spec.protocol != "openai-compatible":
        problem(
            ("embedding", "provider_ref"),
            f"protocol {enquote(provider.spec.protocol)} makes no embeddings",
            'a provider with protocol "openai-compatible"',
            enquote(provider.name),
        )
    elif remotes.endpoint_problem(provider.spec.endpoint, True):
        problem(
            ("embedding", "provider_ref"),
            f"the endpoint of {enquote(provider.name)}: "
            f"{remotes.endpoint_problem(provider.spec.endpoint, True)}",
            hint=remotes.ENDPOINT,
        )
    if store.embedding.dimensions > MAX_NUMBERS:
        problem(
            ("embedding", "dimensions"),
            "",
            f"at most {MAX_NUMBERS}",
            str(store.embedding.dimensions),
        )
    if manifest.settings.gateway:
        problem(
            ("embedding",),
            f"embeddings through a gateway are {LATER}",
            hint="remove [gateway] from clawlite.toml, or the embedding",
            key=True,
        )


def _path(manifest, store, problem) -> None:
    """Check ``path``: only stores in files have one; it is absolute, and its variables are known
    and have a value."""
    if store.path is None:
        return
    if not lies_in_files(store):
        problem(
            ("path",),
            f"a path of a {store.type} store is {LATER}",
            hint="remove it: it lies in the agent's state folder",
            key=True,
        )
        return
    for part in store.path.split("{")[1:]:
        name, closed, _ = part.partition("}")
        if not closed or name not in _VARIABLES:
            problem(
                ("path",),
                f"there is no variable {enquote('{' + name + closed)}",
                " or ".join("{%s}" % one for one in _VARIABLES),
            )
        elif name == "tenant_id" and not manifest.settings.tenant_id:
            problem(
                ("path",), "{tenant_id} has no value", hint='add tenant_id = "..." to clawlite.toml'
            )
    if (
        "\0" in store.path
        or not store.path.startswith(("/", "~/"))
        or ".." in store.path.split("/")
    ):
        problem(
            ("path",), "", 'a path that begins with "/" or "~/", without ".."', enquote(store.path)
        )
    elif store.max_size_mb is not None and _is_written_by_tools(manifest, store):
        problem(
            ("max_size_mb",),
            "tools write there too (mount_paths), and nothing counts what they write",
            key=True,
            hint="mount /workspace in place of it: the first workspace that all share is the "
            "tools' own; or remove the limit",
        )
    elif in_files(store) and any(
        writable and is_within(normalise(store.path.partition("{")[0]), mount)
        for mount, writable in _mounts(manifest)
    ):
        problem(
            ("path",),
            "tools may write there (mount_paths): they could change what is remembered",
            "a folder outside of the sandbox's mounts",
            enquote(store.path),
        )


def _is_written_by_tools(manifest, store) -> bool:
    """Return whether tools write into a workspace that is not their own
    (linux/files/workspace.py).
    """
    path = normalise(_fill_variables(manifest, store.path))
    taken = [
        mount
        for mount, writable in _mounts(manifest)
        if writable and mount != path and (is_within(path, mount) or is_within(mount, path))
    ]
    own = next(
        (
            one
            for one in manifest.memory.spec.stores
            if TYPES[one.type].does(memories.FILES)
            and not (SCOPES[one.scope] or SCOPES[one.isolation])
        ),
        None,
    )
    return (
        bool(taken)
        or own is not store
        and any(mount == path and writable for mount, writable in _mounts(manifest))
    )


def _fill_variables(manifest, path: str) -> str:
    """Return *path* with its variables replaced."""
    for name, value in zip(_VARIABLES, (manifest.identity.name, manifest.settings.tenant_id)):
        path = path.replace("{%s}" % name, value or "")
    return path


def _mounts(manifest) -> list:
    can = manifest.sandbox and manifest.sandbox.spec.capabilities
    return sandboxes.files_of(can and can.filesystem)[1]


def context(manifest) -> list | None:
    """Return [[name, path], ...] of the files whose text comes before a conversation; None
    without any.
    """
    return [
        [name, path.removeprefix("./")]
        for name, path in (manifest.identity.spec.context_files or {}).items()
    ] or None


def section(manifest) -> list | None:
    """Return the record of each store; None without a Memory."""
    if manifest.memory is None:
        return None
    return [_record(manifest, store) for store in manifest.memory.spec.stores]


def _record(manifest, store) -> list:
    keep, search, shots = store.retention, store.search, store.checkpoint
    compacts, strategy = compaction(store)
    path = store.path or "" if in_files(store) else store.path
    most = (1 << 32) - 1  # as the image counts
    ages = [
        min(most, seconds_of(text)) for text in (keep and keep.max_age, shots and shots.ttl) if text
    ]
    return [
        store.name,
        TYPES[store.type].number,
        SCOPES[store.scope] or SCOPES[store.isolation],
        min(ages, default=None),
        min(most, keep.max_entries) if keep and keep.max_entries else None,
        strategy,
        compacts,
        _search(store),
        FUSIONS[search and search.fusion],
        min(search and search.top_k or TOP_K, memories.MAX_TOP),
        store.name in (manifest.settings.memory.power_safe or ()),
        path and _fill_variables(manifest, path),
        store.max_size_mb and store.max_size_mb << 20,
        min(most, shots.max_snapshots) if shots and shots.max_snapshots else None,
        store.name in (manifest.settings.memory.wear_saving or ()),
        manifest.settings.memory.encryption if store.encryption else None,
        provider_order.embedding(manifest, store),
    ]


def _search(store) -> int:
    """Return how *store* is searched: as ``search`` says, else as ``lifecycle.retrieval`` does."""
    if store.search is None or store.search.strategy is None:
        retrieval = store.lifecycle and store.lifecycle.retrieval
        if retrieval == "exact":
            return memories.FTS
        if retrieval == "semantic" and store.embedding is not None:
            return memories.VECTOR
    return SEARCHES[store.search and store.search.strategy]


def compaction(store) -> tuple:
    """Return (whether it compacts itself, the strategy)."""
    declared = store.compaction
    if declared is not None and declared.enabled is not False:
        return True, memories.STRATEGIES.index(declared.strategy or "sliding-window")
    means = (
        store.lifecycle and store.lifecycle.consolidation,
        store.forgetting and store.forgetting.strategy,
    )
    searched = TYPES[store.type].does(memories.SEARCHED)
    if declared is None and searched and "summarize" in means:
        return True, memories.SUMMARIZE
    return False, memories.STRATEGIES.index(
        declared.strategy
    ) if declared and declared.strategy else memories.NEVER
