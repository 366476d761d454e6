"""The AgentCard of a manifest: what an A2A client may know of an agent before it asks.

Nothing of the prompt is in it: neither the personality, nor instructions of skills, nor context
files.  The summary is what the maker wrote for others, ``metadata.description``.
"""

VERSIONS = ("1.0", "0.3.0")
TEXT = "text/plain"
INPUT_SCHEMA = "urn:clawlite:a2a:input-schema"  # the extension whose params hold schemas of skills
_BEARER = "NAME:TOKEN, as clawlite gateway token NAME --for a2a prints it"


def card_of(manifest, url: str) -> dict:
    """Return the AgentCard of *manifest*, whose door is at *url*, readable as 0.3.0 and 1.0.

    A field that only one of the two versions has is ignored by clients of the other.
    """
    identity = manifest.identity
    skills = [_skill(skill) for skill in manifest.skills]
    names = ", ".join(skill["name"] for skill in skills)
    summary = manifest.description or "An agent%s." % (names and " with the skills " + names)
    interfaces = [
        {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version}
        for version in VERSIONS
    ]
    schemas = {
        skill.name: skill.spec.input_schema
        for skill in manifest.skills
        if skill.spec.input_schema is not None
    }
    extension = {
        "uri": INPUT_SCHEMA,
        "description": "The JSON Schema of each skill's input.",
        "required": False,
        "params": schemas,
    }
    bearer = {"scheme": "bearer", "bearerFormat": _BEARER}
    return {
        "protocolVersion": "0.3.0",
        "name": identity.name,
        "description": summary,
        "version": identity.version or manifest.version or "0.0.0",
        "url": url,
        "preferredTransport": "JSONRPC",
        "supportedInterfaces": interfaces,
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extensions": [extension] if schemas else [],
        },
        "securitySchemes": {
            "bearer": {"type": "http", **bearer, "httpAuthSecurityScheme": bearer},
        },
        "security": [{"bearer": []}],
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "defaultInputModes": [TEXT],
        "defaultOutputModes": [TEXT],
        "skills": skills,
    }


def _skill(skill) -> dict:
    labels = [
        f"{name}:{value}" if value else name for name, value in sorted((skill.labels or {}).items())
    ]
    return {
        "id": skill.name,
        "name": skill.name,
        "description": skill.spec.description,
        "tags": [*labels, *skill.spec.tools_required],
    }
