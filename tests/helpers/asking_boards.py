"""An agent for boards that asks a remote provider itself, with one tool, and rules where that
fails.
"""

from clawlite.host.builder.build import build_beside

CLAW = """claw: "0.3.0"
kind: Claw
metadata: {{ name: board, version: "1.0.0" }}
spec:
  identity: {{ inline: {{ personality: "You keep a garden.", autonomy: autonomous }} }}
  providers:
    - inline: {{ name: remote, protocol: openai-compatible, endpoint: "{endpoint}", model: test-model,
                auth: {{ type: bearer, secret_ref: BOARD_KEY }}, retry: {{ max_attempts: 2, initial_delay_ms: 1 }},
                fallback: [{{ provider_ref: rules }}] }}
    - inline: {{ name: rules, protocol: custom, endpoint: "builtin:reflex", model: reflex, auth: {{ type: none }} }}
  sandbox: {{ inline: {{ level: none }} }}
  policies: [{{ inline: {{ rules: [{{ id: all, action: allow, scope: all }}] }} }}]
"""  # noqa: E501


def made(folder, endpoint: str, ca: bytes = b"") -> str:
    """Build the project; return its image."""
    (folder / "claw.yaml").write_text(CLAW.format(endpoint=endpoint))
    (folder / "tools.py").write_text(
        'def look(where: str) -> dict:\n    """Look somewhere."""\n  '
        '  return {"where": where, "seen": 3}\n'
    )
    (folder / "clawlite.toml").write_text(
        'reflex = "reflex.toml"\n' + ('[tls]\nca = ["ca.pem"]\n' if ca else "")
    )
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "By rule."\n')
    if ca:
        (folder / "ca.pem").write_bytes(ca)
    return build_beside(str(folder))
