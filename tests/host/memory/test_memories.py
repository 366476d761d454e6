"""The Memory of a manifest: what becomes of it in an image, and what is refused by name."""

import json
from pathlib import Path

import pytest
from agents import clawlite
from cddl_verifier import validate

from clawlite.core.base.errors import ImageError
from clawlite.core.image import memories
from clawlite.core.image.image import CONTEXT, MEMORY, Image
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.compiler import compiler
from clawlite.host.fit import board_fit
from clawlite.host.manifest import manifest

EMBEDDING = {"provider_ref": "provider-0", "model": "embed", "dimensions": 3}
ROOT = Path(__file__).resolve().parents[3]
GRAMMAR = (ROOT / "clawlite" / "host" / "image" / "image.cddl").read_text()


def write(folder, *stores, settings: str = "", **more):
    folder.mkdir(exist_ok=True)
    spec = {
        "identity": {"inline": {"name": "gardener", "personality": "x"}},
        "providers": [
            {
                "inline": {
                    "protocol": "openai-compatible",
                    "endpoint": "http://localhost:1/v1",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "memory": {"inline": {"stores": list(stores)}},
    }
    spec.update(more)
    (folder / "claw.yaml").write_text(
        json.dumps(
            {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec}, indent=1
        )
    )
    if settings:
        (folder / "clawlite.toml").write_text(settings)
    return folder


def image(folder, *stores, settings: str = "", **more) -> Image:
    data = compiler.build(manifest.load(write(folder, *stores, settings=settings, **more))).data
    return Image(lambda offset, length: data[offset : offset + length], len(data))


def refused(folder, *stores, settings: str = "", **more) -> list:
    with pytest.raises(ManifestErrors) as raised:
        image(folder, *stores, settings=settings, **more)
    return [
        line.split(": ", 1)[1].removeprefix("spec.memory.inline.")
        for line in str(raised.value).splitlines()
    ]


def test_a_store_is_a_record_of_the_image(tmp_path):
    found = image(
        tmp_path,
        {"name": "talk", "type": "conversation"},
        {
            "name": "facts",
            "type": "semantic",
            "backend": "sqlite-vec",
            "scope": "per-channel",
            "retention": {"max_age": "30d", "max_entries": 10000},
            "compaction": {"enabled": True, "strategy": "truncate"},
            "search": {"strategy": "vector-only", "fusion": "linear-combination", "top_k": 5},
        },
        {"name": "prefs", "type": "key-value", "isolation": "per-identity"},
        {
            "name": "files",
            "type": "workspace",
            "path": "~/w/{identity_name}/{tenant_id}",
            "max_size_mb": 3,
        },
        {
            "name": "tasks",
            "type": "checkpoint",
            "checkpoint": {"max_snapshots": 3, "ttl": "2h"},
            "retention": {"max_age": "1d"},
        },
        settings='tenant_id = "acme"\n[memory]\npower_safe = ["prefs"]\nwear_saving = '
        '["facts", "prefs"]\n',
    )
    assert found.section(MEMORY) == [
        [
            "talk",
            0,
            0,
            None,
            None,
            memories.NEVER,
            False,
            memories.HYBRID,
            memories.RECIPROCAL,
            10,
            False,
            None,
            None,
            None,
            False,
            None,
            None,
        ],
        [
            "facts",
            1,
            2,
            2592000,
            10000,
            memories.TRUNCATE,
            True,
            memories.VECTOR,
            memories.LINEAR,
            5,
            False,
            None,
            None,
            None,
            True,
            None,
            None,
        ],
        [
            "prefs",
            2,
            1,
            None,
            None,
            memories.NEVER,
            False,
            memories.HYBRID,
            memories.RECIPROCAL,
            10,
            True,
            None,
            None,
            None,
            True,
            None,
            None,
        ],
        [
            "files",
            3,
            0,
            None,
            None,
            memories.NEVER,
            False,
            memories.HYBRID,
            memories.RECIPROCAL,
            10,
            False,
            "~/w/gardener/acme",
            3 << 20,
            None,
            False,
            None,
            None,
        ],
        [
            "tasks",
            4,
            0,
            7200,
            None,
            memories.NEVER,
            False,
            memories.HYBRID,
            memories.RECIPROCAL,
            10,
            False,
            None,
            None,
            3,
            False,
            None,
            None,
        ],
    ]
    assert "memory" in found.requires and found.agent.level == 1
    assert validate(GRAMMAR, found.part(MEMORY, 0, found.size_of(MEMORY)), root_type="memory").valid
    assert [store.name for store in memories.stores(found)] == [
        "talk",
        "facts",
        "prefs",
        "files",
        "tasks",
    ]


NEXT = len(memories.TYPES)


@pytest.mark.parametrize(
    "record",
    [
        [],
        ["s"],
        ["s", NEXT, 0, None, None, 0, False, 0, 0, 1, False, None, None, None, False, None, None],
        ["s", 0, 0, 0, None, 0, False, 0, 0, 1, False, None, None, None, False, None, None],
    ],
)
def test_another_shape_is_no_memory(record):
    with pytest.raises(ImageError, match="the memory has another shape"):
        memories.stores(type("Image", (), {"section": lambda self, number: [record]})())


@pytest.mark.parametrize(
    "compaction, lifecycle, forgetting, found",
    [
        ({"strategy": "summarize"}, None, None, (memories.SUMMARIZE, True)),
        ({"enabled": False, "strategy": "summarize"}, None, None, (memories.SUMMARIZE, False)),
        ({}, None, None, (memories.WINDOW, True)),
        (None, {"consolidation": "summarize"}, None, (memories.SUMMARIZE, True)),
        (None, None, {"strategy": "summarize"}, (memories.SUMMARIZE, True)),
        (None, {"consolidation": "merge"}, {"strategy": "decay"}, (memories.NEVER, False)),
        ({"enabled": False}, {"consolidation": "summarize"}, None, (memories.NEVER, False)),
    ],
)
def test_which_compaction_is_meant(tmp_path, compaction, lifecycle, forgetting, found):
    store = {
        "name": "s",
        "type": "conversation",
        "compaction": compaction,
        "lifecycle": lifecycle,
        "forgetting": forgetting,
        "role": "episodic",
        "salience": {"enabled": True},
        "confidence": {"source_tracking": True},
    }
    (record,) = image(
        tmp_path, {key: value for key, value in store.items() if value is not None}
    ).section(MEMORY)
    assert tuple(record[5:7]) == found


def test_numbers_beyond_what_an_image_counts_are_its_greatest(tmp_path):
    (record,) = image(
        tmp_path,
        {
            "name": "s",
            "type": "conversation",
            "retention": {"max_age": "99999999d", "max_entries": 1 << 40},
        },
    ).section(MEMORY)
    assert record[3:5] == [(1 << 32) - 1] * 2
    (record,) = image(
        tmp_path,
        {
            "name": "s",
            "type": "conversation",
            "retention": {"max_age": "0s"},
            "search": {"top_k": 5000},
        },
    ).section(MEMORY)
    assert record[3] == 1 and record[9] == 1000


@pytest.mark.parametrize(
    "store, said",
    [
        (
            {"type": "conversation", "backend": "postgresql"},
            'stores[0].backend: backend "postgresql" '
            "of a conversation store is not supported "
            "by this version of clawlite, expected "
            '"sqlite" or "filesystem"',
        ),
        (
            {"type": "semantic", "backend": "pgvector"},
            'stores[0].backend: backend "pgvector" of a semantic store is not supported',
        ),
        (
            {"type": "semantic", "backend": "qdrant"},
            'stores[0].backend: backend "qdrant" of a semantic store is not supported',
        ),
        (
            {"type": "key-value", "backend": "custom"},
            'stores[0].backend: backend "custom" of a key-value store is not supported',
        ),
        (
            {"type": "semantic", "backend": "filesystem"},
            'stores[0].backend: backend "filesystem" of a semantic store is not supported',
        ),
        (
            {"type": "conversation", "backend": "filesystem", "encryption": True},
            "stores[0].encryption: a conversation in files is not encrypted",
        ),
        (
            {"type": "conversation", "path": "/x"},
            "stores[0].path: a path of a conversation store is not supported",
        ),
        (
            {"type": "workspace", "backend": "sqlite"},
            'stores[0].backend: backend "sqlite" of a workspace store is not supported',
        ),
        (
            {"type": "key-value", "encryption": True},
            "stores[0].encryption: it needs a key - name a "
            "secret in clawlite.toml: [memory] encryption = "
            '"NAME"',
        ),
        (
            {"type": "workspace", "encryption": True},
            "stores[0].encryption: files of a workspace are not encrypted",
        ),
        (
            {"type": "conversation", "embedding": EMBEDDING},
            "stores[0].embedding: a conversation store has no embeddings - use type: semantic",
        ),
        (
            {"type": "semantic", "embedding": dict(EMBEDDING, dimensions=4097)},
            "stores[0].embedding.dimensions: expected at most 4096, found 4097",
        ),
        (
            {"type": "key-value", "search": {}},
            "stores[0].search: a key-value store is not searched",
        ),
        (
            {"type": "checkpoint", "compaction": {"enabled": True}},
            "stores[0].compaction: a checkpoint store has nothing to compact",
        ),
        (
            {"type": "key-value", "scope": "global", "isolation": "per-channel"},
            "stores[0].isolation: it contradicts scope: global",
        ),
        (
            {"type": "key-value", "checkpoint": {}},
            "stores[0].checkpoint: a key-value store has no checkpoints",
        ),
        (
            {"type": "workspace", "retention": {"max_age": "1d"}},
            "stores[0].retention: files of a workspace are not forgotten by themselves",
        ),
        (
            {"type": "semantic", "max_size_mb": 1},
            "stores[0].max_size_mb: the size of a semantic store is not supported",
        ),
        (
            {"type": "semantic", "path": "/x"},
            "stores[0].path: a path of a semantic store is not supported",
        ),
        (
            {"type": "workspace", "path": "x"},
            'stores[0].path: expected a path that begins with "/" or "~/"',
        ),
        ({"type": "workspace", "path": "/a/../b"}, "stores[0].path: expected a path"),
        (
            {"type": "workspace", "path": "/a/{name}"},
            'stores[0].path: there is no variable "{name}"',
        ),
        (
            {"type": "workspace", "path": "/a/{tenant_id}"},
            "stores[0].path: {tenant_id} has no value",
        ),
        (
            {"type": "workspace", "path": "/a/{identity_name"},
            'stores[0].path: there is no variable "{identity_name"',
        ),
    ],
)
def test_what_is_not_kept_is_refused_by_name(tmp_path, store, said):
    found = refused(tmp_path, dict(store, name="s"))
    assert len(found) == 1 and found[0].startswith(said), found


@pytest.mark.parametrize(
    "path, permissions, is_taken",
    [
        ("/srv/notes/talk", "rw", False),
        ("/srv/notes", "rw", False),
        ("/srv//notes/{identity_name}", "rw", False),
        ("/srv/notes/talk", "ro", True),
        ("/srv/notes-of-mine", "rw", True),
        ("/srv", "rw", True),
        ("~/notes", "rw", True),
    ],
)
def test_tools_do_not_write_where_a_conversation_is_kept(tmp_path, path, permissions, is_taken):
    mounts = [{"path": "/srv/notes", "permissions": permissions}]
    sandbox = {
        "inline": {
            "level": "process",
            "capabilities": {"filesystem": {"mode": "scoped", "mount_paths": mounts}},
        }
    }
    store = {"name": "s", "type": "conversation", "backend": "filesystem", "path": path}
    if is_taken:
        assert image(tmp_path, store, sandbox=sandbox).section(MEMORY)
    else:
        assert refused(tmp_path, store, sandbox=sandbox)[0].startswith(
            "stores[0].path: tools may write there (mount_paths)"
        )
    assert image(
        tmp_path, {"name": "s", "type": "workspace", "path": path}, sandbox=sandbox
    ).section(MEMORY), "they are to write there"


@pytest.mark.parametrize(
    "path, permissions, more, is_taken",
    [
        ("/srv/notes", "rw", {}, True),
        ("/srv/notes", "rw", {"isolation": "per-identity"}, False),
        ("/srv/notes/talk", "rw", {}, False),
        ("/srv/notes/{identity_name}", "rw", {}, False),
        ("/srv", "rw", {}, False),
        ("/srv/notes/talk", "ro", {}, True),
        ("/srv/other", "rw", {}, True),
    ],
)
def test_a_limit_of_a_workspace_counts_all_that_is_written_there(
    tmp_path, path, permissions, more, is_taken
):
    mounts = [{"path": "/srv/notes", "permissions": permissions}]
    sandbox = {
        "inline": {
            "level": "process",
            "capabilities": {"filesystem": {"mode": "scoped", "mount_paths": mounts}},
        }
    }
    store = dict({"name": "s", "type": "workspace", "path": path, "max_size_mb": 5}, **more)
    if is_taken:
        assert image(tmp_path, store, sandbox=sandbox).section(MEMORY)
    else:
        assert refused(tmp_path, store, sandbox=sandbox)[0].startswith(
            "stores[0].max_size_mb: tools write there too (mount_paths), and nothing counts"
        )


def test_a_promise_needs_its_store(tmp_path):
    assert refused(
        tmp_path,
        {"name": "notes", "type": "semantic"},
        settings='[memory]\npower_safe = ["note"]\n',
    ) == ['memory.power_safe[0]: there is no store "note" - did you mean "notes"?']
    assert refused(
        tmp_path,
        {"name": "files", "type": "workspace"},
        settings='[memory]\nwear_saving = ["files"]\n',
    ) == ["memory.wear_saving[0]: what lies in files has no journal - remove it"]


@pytest.mark.parametrize(
    "more, said",
    [
        ({"type": "semantic"}, None),
        ({"type": "conversation", "retention": {"max_entries": 501}}, None),
        ({"type": "checkpoint"}, None),
        (
            {
                "type": "key-value",
                "scope": "per-identity",
                "retention": {"max_age": "1d", "max_entries": 833},
            },
            None,
        ),
        (
            {"type": "key-value", "retention": {"max_entries": 834}},
            "stores[1].retention.max_entries: pico keeps at most 933 entries, all stores "
            "together, found "
            "934 - set it to less, or",
        ),
        (
            {
                "type": "semantic",
                "search": {"strategy": "fts-only", "top_k": 5},
                "compaction": {"strategy": "truncate"},
            },
            None,
        ),
        ({"type": "workspace"}, "stores[1].type: pico keeps no workspace store - leave it out, or"),
        (
            {"type": "semantic", "search": {"strategy": "vector-only"}},
            "stores[1].search.strategy: pico keeps no vectors - strategy fts-only, or",
        ),
        (
            {"type": "semantic", "search": {"strategy": "hybrid"}},
            "stores[1].search.strategy: pico keeps no vectors - strategy fts-only, or",
        ),
        (
            {"type": "semantic", "search": {"fusion": "reciprocal-rank"}},
            "stores[1].search.fusion: pico keeps no vectors, and there is nothing to join - leave "
            "it "
            "out, or",
        ),
        (
            {"type": "semantic", "encryption": True},
            "stores[1].encryption: pico encrypts no store - leave it out, or",
        ),
        (
            {
                "type": "semantic",
                "embedding": {"provider_ref": "provider-0", "model": "m", "dimensions": 3},
            },
            "stores[1].embedding: pico keeps no vectors - leave it out, or",
        ),
        (
            {"type": "conversation", "backend": "filesystem"},
            "stores[1].backend: pico has no files for "
            "a store: all of them lie in one log - "
            "leave it out, or",
        ),
        (
            {"type": "conversation", "backend": "filesystem", "path": "/talks", "max_size_mb": 1},
            "stores[1].backend: pico has no files for a store: all of them lie in one log - leave "
            "it "
            "out, and path and max_size_mb too, or",
        ),
        (
            {"type": "semantic", "backend": "sqlite-vec"},
            "stores[1].backend: pico has no sqlite-vec: "
            "its stores lie in a log of their own - leave "
            "it out, or",
        ),
    ],
)
def test_stores_of_a_board(tmp_path, more, said):
    assert on_pico(
        tmp_path,
        {"name": "talk", "type": "conversation", "retention": {"max_entries": 100}},
        dict(more, name="s"),
    ) == ([said] if said else [])


def test_a_limit_that_all_stores_share_is_said_once(tmp_path):
    stores = [
        {"name": name, "type": "key-value", "retention": {"max_entries": 500}} for name in "abc"
    ]
    assert on_pico(tmp_path, *stores) == [
        "stores[1].retention.max_entries: pico keeps at most "
        "933 entries, all stores together, found 1,000 - set it "
        "to less, or"
    ]


@pytest.mark.parametrize(
    "store, said",
    [
        ({}, None),
        (
            {
                "scope": "per-channel",
                "retention": {"max_age": "30d", "max_entries": 500},
                "compaction": {"strategy": "truncate"},
            },
            None,
        ),
        ({"compaction": {"enabled": False}, "lifecycle": {"consolidation": "merge"}}, None),
        (
            {"backend": "sqlite"},
            "stores[0].backend: pico has no sqlite: its stores lie in a log of "
            "their own - leave it out, or",
        ),
        ({"search": {"strategy": "fts-only"}}, None),
        (
            {"compaction": {"strategy": "summarize"}},
            "stores[0].compaction: pico does not summarize - "
            "strategy truncate or sliding-window, or",
        ),
        (
            {"lifecycle": {"consolidation": "summarize"}},
            "stores[0].lifecycle: pico does not summarize "
            "- strategy truncate or sliding-window, or",
        ),
        (
            {"forgetting": {"strategy": "summarize"}},
            "stores[0].forgetting: pico does not summarize - "
            "strategy truncate or sliding-window, or",
        ),
    ],
)
def test_what_a_board_does_not_do_with_a_conversation(tmp_path, store, said):
    assert on_pico(tmp_path, dict(store, name="talk", type="conversation")) == (
        [said] if said else []
    )


def on_pico(folder, *stores, **more) -> list:
    """Return the problems of these stores there, to the words that begin a list of boards."""
    write(folder, *stores, settings="[gateway]\n", **more)
    try:
        board_fit.refuse(manifest.load(folder), boards.profile("pico"))
    except ManifestErrors as e:
        return [
            line.split(": ", 1)[1]
            .removeprefix("spec.memory.inline.")
            .partition(" another board: ")[0]
            for line in str(e).splitlines()
        ]
    return []


def test_what_is_another_thing_on_a_board_is_a_warning_of_build(tmp_path):
    """What is no problem there: a conversation without a number, wear saving."""
    stores = [{"name": "talk", "type": "conversation"}, {"name": "old", "type": "conversation"}]
    folder = write(tmp_path / "a", *stores, settings='[gateway]\n[memory]\nwear_saving = ["old"]\n')
    found = board_fit.notes(manifest.load(folder), boards.profile("pico"))
    assert [note["message"] for note in found] == [
        "pico keeps the newest 256 messages of talk: it names no retention.max_entries",
        "wear_saving changes nothing on pico: each request is one append to a log there",
    ]
    assert [(note["file"].rpartition("/")[2], note["line"] > 0) for note in found] == [
        ("claw.yaml", True),
        ("clawlite.toml", True),
    ]
    stores[0]["retention"] = {"max_entries": 300}
    folder = write(tmp_path / "b", *stores, settings="[gateway]\n")
    assert (
        board_fit.notes(manifest.load(folder), boards.profile("pico"))
        == []
        == board_fit.notes(manifest.load(folder), None)
    )


def test_a_board_reads_no_context_files(tmp_path):
    found = on_pico(
        tmp_path,
        {"name": "talk", "type": "conversation"},
        identity={"inline": {"personality": "x", "context_files": {"user": "USER.md"}}},
    )
    assert found == [
        "spec.identity.inline.context_files: pico reads no context files - put the "
        "text into the personality, or"
    ]


def test_an_embedding_has_a_row_of_its_own(tmp_path):
    model = {
        "protocol": "openai-compatible",
        "endpoint": "http://localhost:1/v1",
        "model": "m",
        "auth": {"type": "bearer", "secret_ref": "KEY"},
    }
    made = [
        {"inline": dict(model, name="chat")},
        {"inline": dict(model, name="vectors", endpoint="https://example.com/api/")},
    ]
    stores = [
        {"name": "a", "type": "semantic", "embedding": dict(EMBEDDING, provider_ref="chat")},
        {"name": "b", "type": "semantic"},
        {
            "name": "c",
            "type": "semantic",
            "embedding": dict(EMBEDDING, provider_ref="vectors", dimensions=384),
        },
        {"name": "d", "type": "semantic", "embedding": dict(EMBEDDING, provider_ref="chat")},
    ]
    found = image(tmp_path, *stores, providers=made)
    assert [record[-1] for record in found.section(MEMORY)] == [[1, 3], None, [2, 384], [1, 3]]
    assert found.agent.providers == [2], "those who make embeddings are not asked in a conversation"
    assert found.provider(1)[:7] == [
        "chat",
        2,
        False,
        "localhost",
        1,
        "/v1/embeddings",
        "embed",
    ] and found.provider(1)[-3:] == [[0, 0, 0], [0, 0, 0], []]
    assert found.provider(2)[:7] == [
        "vectors",
        2,
        True,
        "example.com",
        443,
        "/api/embeddings",
        "embed",
    ]
    assert {"http", "https"} <= set(found.requires) and validate(
        GRAMMAR, found.part(MEMORY, 0, found.size_of(MEMORY)), root_type="memory"
    ).valid


def test_who_makes_no_embeddings_is_refused(tmp_path):
    other = {
        "protocol": "anthropic-native",
        "endpoint": "http://localhost:1/v1",
        "model": "m",
        "auth": {"type": "none"},
    }
    store = {"name": "a", "type": "semantic", "embedding": EMBEDDING}
    assert refused(tmp_path, store, providers=[{"inline": other}])[0].startswith(
        'stores[0].embedding.provider_ref: protocol "anthropic-native" makes no embeddings, '
        'expected a provider with protocol "openai-compatible", found "provider-0"'
    )
    assert (
        "through a gateway are not supported" in refused(tmp_path, store, settings="[gateway]\n")[0]
    )


@pytest.mark.parametrize(
    "retrieval, search, embedding, found",
    [
        ("exact", None, None, memories.FTS),
        ("exact", "hybrid", None, memories.HYBRID),
        ("semantic", None, EMBEDDING, memories.VECTOR),
        ("semantic", None, None, memories.HYBRID),
        ("contextual", None, EMBEDDING, memories.HYBRID),
        ("hybrid", None, None, memories.HYBRID),
    ],
)
def test_retrieval_says_how_a_store_is_searched_where_search_does_not(
    tmp_path, retrieval, search, embedding, found
):
    store = {
        "name": "s",
        "type": "semantic",
        "lifecycle": {"retrieval": retrieval, "acquisition": "event-driven"},
        "role": "episodic",
    }
    store.update(
        search={"strategy": search, "top_k": 3} if search else {"top_k": 3},
        **({"embedding": embedding} if embedding else {}),
    )
    assert image(tmp_path, store).section(MEMORY)[0][7] == found


def test_an_encrypted_store_names_its_key(tmp_path):
    store = {"name": "s", "type": "key-value", "encryption": True}
    found = image(tmp_path, store, settings='[memory]\nencryption = "notebook-key"\n')
    assert found.section(MEMORY)[0][-2] == "notebook-key"
    assert validate(GRAMMAR, found.part(MEMORY, 0, found.size_of(MEMORY)), root_type="memory").valid
    assert refused(
        tmp_path, dict(store, encryption=False), settings='[memory]\nencryption = "k"\n'
    ) == ["memory.encryption: no store says encryption: true - remove it, or encrypt one"]
    assert refused(tmp_path, store, settings='[memory]\nencryption = "a key"\n')[0].startswith(
        "memory.encryption: expected the name of a secret"
    )


def test_inspect_shows_the_stores(tmp_path):
    folder = write(
        tmp_path / "a",
        {
            "name": "facts",
            "type": "key-value",
            "scope": "per-identity",
            "retention": {"max_age": "1h"},
        },
        settings='[memory]\npower_safe = ["facts"]\nwear_saving = ["facts"]\n',
    )
    assert clawlite("build", folder, cwd=tmp_path).returncode == 0
    assert (
        "\nstores\n  facts                key-value, per-identity, power-safe, wear-saving\n"
        in clawlite("inspect", folder / "claw.cbor", cwd=tmp_path).stdout
    )
    assert json.loads(clawlite("inspect", folder / "claw.cbor", "--json", cwd=tmp_path).stdout)[
        "stores"
    ] == [
        {
            "name": "facts",
            "type": "key-value",
            "scope": "per-identity",
            "max_age_s": 3600,
            "max_entries": None,
            "compaction": "none",
            "promise": "power-safe",
            "wear_saving": True,
            "encrypted": False,
        }
    ]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../USER.md", "a/../../b", "a//b", "", "./", "a/."]
)
def test_no_context_file_lies_outside(tmp_path, path):
    with pytest.raises(
        ManifestErrors, match="context_files.user: expected a path from the manifest's folder"
    ):
        image(
            tmp_path,
            {"name": "s", "type": "semantic"},
            identity={"inline": {"personality": "x", "context_files": {"user": path}}},
        )


def test_context_files_are_in_the_image(tmp_path):
    found = image(
        tmp_path,
        {"name": "s", "type": "semantic"},
        identity={
            "inline": {"personality": "x", "context_files": {"user": "./USER.md", "m": "d/M.md"}}
        },
    )
    assert found.section(CONTEXT) == [["user", "USER.md"], ["m", "d/M.md"]]
    assert validate(
        GRAMMAR, found.part(CONTEXT, 0, found.size_of(CONTEXT)), root_type="context"
    ).valid
