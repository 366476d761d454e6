"""Agents with providers, built from a few words."""

import json

from clawlite.core.image.image import Image
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest

RULES = [{"id": "all", "action": "allow", "scope": "all"}]


def provider(name, fallback=(), **more):
    return {
        "inline": dict(
            {
                "name": name,
                "protocol": "openai-compatible",
                "endpoint": "http://%s/v1" % name,
                "model": "model-" + name,
                "auth": {"type": "none"},
                "fallback": [{"provider_ref": other} for other in fallback],
            },
            **more,
        )
    }


def build(folder, *providers, settings="", limits=(), tools=""):
    """Return the compiler's result; *limits*: the rate_limits of a policy each."""
    policies = [
        {"inline": {"name": "p%d" % n, "rules": RULES, "rate_limits": limit}}
        for n, limit in enumerate(limits)
    ]
    spec = {
        "identity": {"inline": {"name": "a", "personality": "You are."}},
        "providers": list(providers),
        "sandbox": {"inline": {"name": "s", "level": "none"}},
        "policies": policies or [{"inline": {"name": "p", "rules": RULES}}],
    }
    (folder / "claw.yaml").write_text(
        json.dumps(
            {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec}, indent=1
        )
    )
    (folder / "clawlite.toml").write_text(settings)
    (folder / "tools.py").write_text(tools)
    return compiler.build(manifest.load(folder))


def opened(built):
    return Image(lambda at, size: built.data[at : at + size], len(built.data))
