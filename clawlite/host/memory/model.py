"""Memory (CKP 5.6): what the agent keeps between sessions."""

from typing import Annotated, Literal

from msgspec import Meta

from clawlite.core.image.memories import TYPES
from clawlite.host.base.problems import enquote
from clawlite.host.models.common import Count, Duration, Strict, Text


class Retention(Strict):
    max_age: Duration | None = None
    max_entries: Count | None = None


class Compaction(Strict):
    enabled: bool | None = None
    strategy: Literal["summarize", "truncate", "sliding-window"] | None = None


class Embedding(Strict):
    provider_ref: str
    model: str
    dimensions: Count


class Search(Strict):
    strategy: Literal["vector-only", "fts-only", "hybrid"] | None = None
    fusion: Literal["reciprocal-rank", "linear-combination"] | None = None
    top_k: Count | None = None


class Checkpoint(Strict):
    max_snapshots: Count | None = None
    ttl: Duration | None = None


class Lifecycle(Strict):
    acquisition: Literal["event-driven", "continuous", "manual"] | None = None
    consolidation: Literal["none", "summarize", "merge", "adaptive"] | None = None
    retrieval: Literal["exact", "semantic", "contextual", "hybrid"] | None = None


class Forgetting(Strict):
    strategy: Literal["none", "decay", "summarize", "adaptive"] | None = None
    signals: list[str] | None = None


class Salience(Strict):
    enabled: bool | None = None
    signals: list[str] | None = None


class Confidence(Strict):
    source_tracking: bool | None = None
    decay: Literal["optional", "none", "adaptive"] | None = None


class Store(Strict):
    name: Text
    type: Literal[TYPES]  # type: ignore[valid-type]
    backend: (
        Literal["sqlite", "postgresql", "filesystem", "sqlite-vec", "pgvector", "qdrant", "custom"]
        | None
    ) = None
    retention: Retention | None = None
    compaction: Compaction | None = None
    embedding: Embedding | None = None
    search: Search | None = None
    scope: Literal["global", "per-identity", "per-channel"] | None = None
    encryption: bool | None = None
    path: str | None = None
    isolation: Literal["shared", "per-identity", "per-channel"] | None = None
    max_size_mb: Count | None = None
    checkpoint: Checkpoint | None = None
    role: Literal["sensory", "working", "episodic", "semantic", "procedural"] | None = None
    lifecycle: Lifecycle | None = None
    forgetting: Forgetting | None = None
    salience: Salience | None = None
    confidence: Confidence | None = None


class MemorySpec(Strict):
    stores: Annotated[list[Store], Meta(min_length=1)]

    @staticmethod
    def check_rules(value: dict, report) -> None:
        """A store is addressed by its name (9.3.4), so two of one name cannot both be meant."""
        seen = set()
        stores = value.get("stores")
        for index, store in enumerate(stores if isinstance(stores, list) else ()):
            name = store.get("name") if isinstance(store, dict) else None
            if isinstance(name, str) and name in seen:
                report(
                    ("stores", index, "name"),
                    f"a store {enquote(name)} is already there",
                    hint="give this store another name",
                )
            elif isinstance(name, str):
                seen.add(name)
