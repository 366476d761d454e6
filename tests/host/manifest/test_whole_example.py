"""A manifest with every field that the specification's full example has (CKP 0.2.0, Appendix A),
in words of our own, is built when what this runtime lacks has been taken out of it.
"""

import json

import pytest

from clawlite.host.builder.build import build
from clawlite.host.builder.check import check

AUDIT = {"log_inputs": True, "log_outputs": True, "retention": "90d", "destination": "sqlite"}
LIMITS = {"tokens_per_day": 500000, "requests_per_minute": 60}


def provider(name, protocol, endpoint, auth, cost, **more) -> dict:
    hints = {"cost_priority": cost, "speed_priority": 0.6, "intelligence_priority": 0.7}
    spec = {"protocol": protocol, "endpoint": endpoint, "model": name, "streaming": True}
    return {"inline": {"name": name, **spec, "auth": auth, "hints": hints, **more}}


PROVIDERS = [
    provider(
        "first",
        "anthropic-native",
        "https://api.anthropic.com/v1",
        {"type": "bearer", "secret_ref": "FIRST_KEY"},
        0.4,
        fallback=[{"provider_ref": "fast"}, {"provider_ref": "near"}],
        limits=LIMITS,
    ),
    provider(
        "fast",
        "openai-compatible",
        "https://api.example.com/v1",
        {"type": "bearer", "secret_ref": "FAST_KEY"},
        0.9,
    ),
    provider("near", "openai-compatible", "http://localhost:11434/v1", {"type": "none"}, 1.0),
]
# of the example's two channels the one that this runtime has
CHANNEL = {
    "name": "chat",
    "type": "telegram",
    "transport": "polling",
    "auth": {"secret_ref": "BOT_TOKEN"},
    "access_control": {
        "mode": "role-based",
        "roles": [{"id": "1001", "role": "admin"}, {"id": "1002", "role": "user"}],
    },
    "processing": {
        "max_message_length": 4096,
        "rate_limit": {"messages_per_minute": 30, "burst": 5},
    },
}
STORES = [
    {
        "name": "talks",
        "type": "conversation",
        "backend": "sqlite",
        "retention": {"max_age": "90d", "max_entries": 50000},
        "compaction": {"enabled": True, "strategy": "summarize"},
    },
    {
        "name": "knowledge",
        "type": "semantic",
        "backend": "sqlite-vec",
        "embedding": {"provider_ref": "fast", "model": "embed-small", "dimensions": 1536},
        "search": {"strategy": "hybrid", "fusion": "reciprocal-rank", "top_k": 10},
    },
    {"name": "likes", "type": "key-value", "backend": "sqlite", "scope": "per-identity"},
]
# level container is process here
SANDBOX = {
    "name": "box",
    "level": "process",
    "capabilities": {
        "network": {
            "mode": "allowlist",
            "allowed_hosts": ["api.anthropic.com", "*.example.com"],
            "ssrf_protection": {"enabled": True, "block_private_ips": True, "dns_pinning": True},
        },
        "filesystem": {
            "mode": "scoped",
            "mount_paths": [
                {"path": "/workspace", "permissions": "rw"},
                {"path": "/tmp", "permissions": "rw"},
            ],
        },
        "secrets": {
            "injection": "host-boundary",
            "encryption": "aes-256-gcm",
            "leak_detection": {"enabled": True, "patterns": 22},
        },
        "shell": {"mode": "restricted", "blocked_patterns": ["\\|\\s*bash", "rm\\s+-rf\\s+/"]},
    },
    "resource_limits": {"memory_mb": 1024, "cpu_shares": 512, "timeout_ms": 300000},
}
RULES = [
    {
        "id": "no-destruction",
        "action": "deny",
        "scope": "tool",
        "match": {"annotations": {"destructiveHint": True}},
    },
    {
        "id": "ask-for-the-network",
        "action": "require-approval",
        "scope": "category",
        "match": {"category": "network"},
        "approval": {"timeout_seconds": 300, "default_if_timeout": "deny"},
    },
    {
        "id": "read",
        "action": "allow",
        "scope": "tool",
        "match": {"annotations": {"readOnlyHint": True}},
    },
    {
        "id": "files",
        "action": "allow",
        "scope": "category",
        "match": {"category": "filesystem"},
        "conditions": {"path_within": "/workspace"},
    },
    {"id": "rest", "action": "deny", "scope": "all"},
]
POLICIES = [
    {
        "name": "safety",
        "rules": RULES,
        "prompt_injection": {"detection": "pattern", "action": "block-and-log"},
        "secret_scanning": {"enabled": True, "scope": "both", "action": "redact"},
        "rate_limits": {"tool_calls_per_minute": 30, "tokens_per_hour": 100000},
        "audit": AUDIT,
    },
    {
        "name": "spending",
        "rules": [
            {
                "id": "spent",
                "action": "deny",
                "scope": "tool",
                "rate_limit": {"cost_per_day_usd": 25.0, "tokens_per_day": 1000000},
            }
        ],
        "audit": {**AUDIT, "log_inputs": False, "log_outputs": False, "retention": "365d"},
    },
]
SKILL = {
    "name": "look-up",
    "description": "Look something up.",
    "instruction": "Search, read, and say where it was found.",
    "tools_required": ["read-file"],
}


def manifest() -> dict:
    tools = ["read-file", "write-file", "web-fetch", "exec-shell"]
    spec = {
        "identity": {
            "inline": {
                "name": "helper",
                "personality": "You keep lists.",
                "context_files": {"user": "USER.md", "memory": "MEMORY.md"},
                "locale": "en-US",
                "capabilities": ["lists", "reports"],
                "autonomy": "supervised",
            }
        },
        "providers": PROVIDERS,
        "channels": [{"inline": CHANNEL}],
        "tools": [f"claw://registry/clawlite/{name}@1.0.0" for name in tools],
        "skills": [{"inline": SKILL}],
        "memory": {"inline": {"name": "all", "stores": STORES}},
        "sandbox": {"inline": SANDBOX},
        "policies": [{"inline": one} for one in POLICIES],
        "telemetry": {
            "inline": {
                "exporters": [{"type": "console"}],
                "events": {"tool_calls": True, "swarm_ops": True},
            }
        },
    }
    metadata = {"name": "helper", "version": "1.0.0", "description": "Keeps lists"}
    return {"claw": "0.2.0", "kind": "Claw", "metadata": metadata, "spec": spec}


def put(folder, made):
    (folder / "claw.yaml").write_text(json.dumps(made, indent=1))
    for name in ("USER.md", "MEMORY.md"):
        (folder / name).write_text("Nothing yet.\n")
    return str(folder)


def test_appendix_a_is_built_without_what_is_lacking(tmp_path):
    folder = put(tmp_path, manifest())
    assert "linux" in build(folder)["fits"]
    said = "\n".join(one["message"] for one in check(folder)["warnings"])
    for model in ("first", "fast", "near"):
        assert f'cost_per_day_usd does not count "{model}"' in said
    assert "swarm_ops tells nothing" in said


@pytest.mark.parametrize(
    "store, more, said",
    [
        (0, {"role": "episodic"}, "role of talks has no effect"),
        (1, {"salience": {"enabled": True}}, "salience of knowledge has no effect"),
        (1, {"confidence": {"source_tracking": True}}, "confidence of knowledge has no effect"),
        (1, {"forgetting": {"strategy": "decay"}}, "forgetting.strategy of knowledge has no effe"),
        (1, {"forgetting": {"signals": ["age"]}}, "forgetting.signals of knowledge has no effect"),
        (0, {"lifecycle": {"acquisition": "manual"}}, "lifecycle.acquisition of talks has no eff"),
        (0, {"lifecycle": {"consolidation": "merge"}}, "lifecycle.consolidation of talks has no"),
        (1, {"lifecycle": {"retrieval": "contextual"}}, "lifecycle.retrieval of knowledge has no"),
        (1, {"search": {"strategy": "fts-only"}}, "embedding has no effect"),
    ],
)
def test_a_field_without_effect_is_named(tmp_path, store, more, said):
    made = manifest()
    stores = [dict(one) for one in STORES]
    stores[store].update(more)
    made["spec"]["memory"]["inline"]["stores"] = stores
    found = check(put(tmp_path, made))["warnings"]
    named = [one for one in found if said in one["message"]]
    assert len(named) == 1 and named[0]["line"] > 0


def test_what_has_an_effect_is_not_named(tmp_path):
    made = manifest()
    stores = [dict(one) for one in STORES]
    stores[0]["lifecycle"] = {"consolidation": "summarize", "retrieval": "exact"}
    stores[1]["forgetting"] = {"strategy": "none"}
    made["spec"]["memory"]["inline"]["stores"] = stores
    said = [one["message"] for one in check(put(tmp_path, made))["warnings"]]
    assert not [one for one in said if "has no effect" in one]
