"""What the schemas say of primitives that stand inside a Claw manifest, for ``manifest_check``.

1. Data, with the standard library alone; it is loaded when a manifest in ``claw.initialize`` has an
   inline primitive.
2. It has the fields that must be there (CKP 0.2.0, 6.1, and what 5 says of the objects in them) and
   the words that a field may have.  Of an Identity and of Providers it has all fields of
   claw.schema.json.  Ranges, other optional fields and unknown ones are left to the compiler.
3. A test compares it with the compiler's models.  Source  the schemas of CKP 0.3.0.

A row is (name, whether the field must be there, what is expected).  The second is a bool, or a
function of the object, whose earlier rows are right by then.  The third is a key of ``IS``, a tuple
of words, a list of rows (an object that has them) or ``Several``.
"""

from clawlite.core.image.memories import TYPES
from clawlite.protocols.image.features import EXPORTERS, PROTOCOLS


class Several:
    """A list of at least *least* objects that have *rows*."""

    def __init__(self, least: int, rows: list):
        self.least, self.rows = least, rows


TEXT, FILLED, OBJECT, LIST = "text", "text that is not empty", "an object", "a list"
TRUTH, COUNT = "true or false", "a whole number of at least 1"
TEXTS, FILLED_TEXTS = "a list of texts", "a list of at least one text"
TEXT_OBJECT = "an object of texts"
_SEVERAL = "a list of at least one object"
IS: dict = {
    TEXT: lambda value: isinstance(value, str),
    FILLED: lambda value: isinstance(value, str) and value != "",
    OBJECT: lambda value: isinstance(value, dict),
    TRUTH: lambda value: isinstance(value, bool),
    COUNT: lambda value: type(value) is int and value > 0,
    TEXTS: lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    FILLED_TEXTS: lambda value: value != [] and IS[TEXTS](value),
    TEXT_OBJECT: lambda value: (
        isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    ),
}


def _where(field: str, *values):
    """Return a function that says whether *field* of an object has one of *values*."""
    return lambda found: found.get(field) in values


def _needing(field: str) -> tuple:
    """Return the types of exporters that need *field* (5.10)."""
    return tuple([kind.name for kind in EXPORTERS if kind.needs == field])


def _is_no_bridge(tool: dict) -> bool:
    return "mcp_source" not in tool


_AUTONOMY = ("observer", "supervised", "autonomous")
_AUTH = ("bearer", "api-key-header", "oauth2", "none")
_CHANNELS: tuple = (
    "telegram",
    "discord",
    "whatsapp",
    "slack",
    "email",
    "webhook",
    "cli",
    "voice",
    "web",
)
_CHANNELS += ("lark", "matrix", "line", "wechat", "qq", "dingtalk", "cron", "queue", "imap")
_CHANNELS += ("db-trigger", "custom")
_BACKENDS = ("sqlite", "postgresql", "filesystem", "sqlite-vec", "pgvector", "qdrant", "custom")
_RUNTIMES = ("docker", "apple-container", "wasmtime", "firecracker", "gvisor", "native")
_SWARMS = ("leader-worker", "peer-to-peer", "pipeline", "broadcast", "hierarchical")
_VOTES = ("leader-decides", "majority-vote", "merge", "chain", "best-of-n")
_FILES = ("none", "read-only", "write-workspace", "full")
_SCOPES = ("global", "per-identity", "per-channel")

_RETRY = [("backoff", False, ("exponential", "linear", "constant"))]
_PAIRING = [("code_expiry_minutes", True, COUNT), ("max_pending", True, COUNT)]
_ROLE = [("id", True, TEXT), ("role", True, ("admin", "user", "viewer"))]
_ACCESS = [
    ("mode", True, ("open", "allowlist", "pairing", "role-based")),
    ("allowed_ids", _where("mode", "allowlist"), TEXTS),
    ("pairing", _where("mode", "pairing"), _PAIRING),
    ("roles", _where("mode", "role-based"), Several(0, _ROLE)),
]
_EMBEDDING = [("provider_ref", True, TEXT), ("model", True, TEXT), ("dimensions", True, COUNT)]
_SEARCH = [
    ("strategy", False, ("vector-only", "fts-only", "hybrid")),
    ("fusion", False, ("reciprocal-rank", "linear-combination")),
]
_LIFECYCLE = [
    ("acquisition", False, ("event-driven", "continuous", "manual")),
    ("consolidation", False, ("none", "summarize", "merge", "adaptive")),
    ("retrieval", False, ("exact", "semantic", "contextual", "hybrid")),
]
_STORE = [
    ("name", True, FILLED),
    ("type", True, TYPES),
    ("backend", False, _BACKENDS),
    ("compaction", False, [("strategy", False, ("summarize", "truncate", "sliding-window"))]),
    ("embedding", False, _EMBEDDING),
    ("search", False, _SEARCH),
    ("scope", False, _SCOPES),
    ("isolation", False, ("shared",) + _SCOPES[1:]),
    ("role", False, ("sensory", "working", "episodic", "semantic", "procedural")),
    ("lifecycle", False, _LIFECYCLE),
    ("forgetting", False, [("strategy", False, ("none", "decay", "summarize", "adaptive"))]),
    ("confidence", False, [("decay", False, ("optional", "none", "adaptive"))]),
]
_MOUNT = [("path", True, TEXT), ("permissions", True, ("ro", "rw"))]
_FILESYSTEM = [
    ("mode", False, ("deny", "read-only", "scoped", "full")),
    ("mount_paths", False, Several(0, _MOUNT)),
]
_CAPABILITIES = [
    ("network", False, [("mode", False, ("deny", "allowlist", "allow-all"))]),
    ("filesystem", False, _FILESYSTEM),
    ("secrets", False, [("injection", False, ("host-boundary", "environment", "file-mount"))]),
    ("shell", False, [("mode", False, ("deny", "restricted", "full"))]),
]
_RULE = [
    ("id", True, FILLED),
    ("action", True, ("allow", "deny", "require-approval", "audit-only")),
    ("scope", True, ("tool", "category", "all", "skill")),
    ("approval", False, [("default_if_timeout", False, ("deny", "allow"))]),
]
_INJECTION = [
    ("detection", False, ("pattern", "llm-based", "hybrid", "none")),
    ("action", False, ("block-and-log", "warn", "log-only", "ignore")),
]
_SCANNING = [
    ("scope", False, ("input", "output", "both")),
    ("action", False, ("redact", "block", "warn")),
]
_COORDINATION = [
    ("message_passing", True, ("queue", "shared-memory", "event-bus", "direct")),
    ("backend", True, ("sqlite-wal", "redis", "nats", "in-process")),
    ("concurrency", True, OBJECT),
]
_EXPORTER = [
    ("type", True, tuple([kind.name for kind in EXPORTERS])),
    ("endpoint", _where("type", *_needing("endpoint")), TEXT),
    ("path", _where("type", *_needing("path")), TEXT),
]
_PLANNING = [
    ("horizon", False, ("adaptive", "bounded", "fixed")),
    ("uncertainty_mode", False, ("none", "bounded", "calibrated")),
    ("fallback", False, ("conservative", "retry", "escalate")),
]
_UPDATE = [
    ("mode", False, ("online", "batch", "hybrid")),
    ("evidence", False, ("observations", "observations+outcomes")),
]

INLINE = {  # a field of the Claw's spec -> the rows of what stands inline there
    "identity": [
        ("personality", True, FILLED),
        ("context_files", False, TEXT_OBJECT),
        ("locale", False, TEXT),
        ("capabilities", False, TEXTS),
        ("autonomy", False, _AUTONOMY),
    ],
    "providers": [
        ("name", False, TEXT),
        ("protocol", True, PROTOCOLS),
        ("endpoint", True, FILLED),
        ("model", True, FILLED),
        ("auth", True, [("type", True, _AUTH), ("secret_ref", False, TEXT)]),
        ("streaming", False, TRUTH),
        ("hints", False, OBJECT),
        ("fallback", False, Several(0, [("provider_ref", True, TEXT)])),
        ("limits", False, OBJECT),
        ("retry", False, _RETRY),
        ("transport", False, ("http", "websocket", "webrtc", "grpc")),
    ],
    "channels": [
        ("type", True, _CHANNELS),
        ("transport", True, ("polling", "webhook", "websocket", "stdio")),
        ("auth", True, [("secret_ref", True, FILLED)]),
        ("access_control", False, _ACCESS),
        ("trigger", False, [("overlap_policy", False, ("skip", "queue", "allow"))]),
    ],
    "tools": [
        ("mcp_source", False, [("uri", True, FILLED)]),
        ("description", _is_no_bridge, FILLED),
        ("input_schema", _is_no_bridge, OBJECT),
        ("retry", False, _RETRY),
        ("skill_ref", _where("composite", True), FILLED),
    ],
    "skills": [
        ("description", True, FILLED),
        ("tools_required", True, FILLED_TEXTS),
        ("instruction", True, FILLED),
        ("permissions", False, [("filesystem", False, _FILES)]),
    ],
    "memory": [("stores", True, Several(1, _STORE))],
    "sandbox": [
        ("level", True, ("none", "process", "wasm", "container", "vm")),
        ("runtime", False, _RUNTIMES),
        ("capabilities", False, _CAPABILITIES),
    ],
    "policies": [
        ("rules", True, Several(1, _RULE)),
        ("prompt_injection", False, _INJECTION),
        ("secret_scanning", False, _SCANNING),
        ("audit", False, [("destination", False, ("file", "sqlite", "webhook", "syslog"))]),
    ],
    "swarm": [
        ("topology", True, _SWARMS),
        ("agents", True, Several(1, [("identity_ref", True, TEXT), ("role", True, TEXT)])),
        ("coordination", True, _COORDINATION),
        ("aggregation", True, [("strategy", True, _VOTES)]),
    ],
    "telemetry": [("exporters", True, Several(1, _EXPORTER))],
    "world_models": [
        ("paradigm", True, ("implicit", "explicit", "simulator", "hybrid")),
        ("scope", False, ("agent-wide", "task-scoped")),
        ("backend", True, [("type", True, ("tool", "provider", "custom")), ("ref", True, FILLED)]),
        ("planning", False, _PLANNING),
        ("update", False, _UPDATE),
    ],
}


def first_problem(path: str, expected, value, absent) -> tuple | None:
    """Return (path, what is expected, value) of the first problem in *value*, or None.

    expected  the third item of a row
    absent    stands for the value of a field that is missing
    """
    if isinstance(expected, list):
        if not isinstance(value, dict):
            return path, OBJECT, value
        for name, is_needed, inner in expected:
            field = value.get(name, absent)
            if field is not absent or (is_needed(value) if callable(is_needed) else is_needed):
                found = first_problem(path + "." + name, inner, field, absent)
                if found:
                    return found
    elif isinstance(expected, Several):
        if not isinstance(value, list) or len(value) < expected.least:
            return path, _SEVERAL if expected.least else LIST, value
        for at, one in enumerate(value):
            found = first_problem("%s[%d]" % (path, at), expected.rows, one, absent)
            if found:
                return found
    elif isinstance(expected, tuple):
        return None if value in expected else (path, "one of " + ", ".join(expected), value)
    elif not IS[expected](value):
        return path, expected, value
    return None
