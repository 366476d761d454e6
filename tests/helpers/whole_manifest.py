"""One whole manifest, in which a piece of text is replaced, and what a check says of it."""

from clawlite.host.builder import check

MANIFEST = """claw: "0.3.0"
kind: Claw
metadata:
  name: garden
  version: "1.0.0"
spec:
  identity:
    inline:
      personality: "You keep a garden."
      autonomy: autonomous
  providers:
    - inline: { name: rules, protocol: custom, endpoint: "builtin:reflex", model: reflex, auth: { type: none } }
  channels:
    - inline: { name: console, type: cli, transport: stdio, auth: { secret_ref: CONSOLE } }
  tools:
    - "claw://registry/clawlite/read-file@1.0.0"
    - "claw://registry/clawlite/exec-shell@1.0.0"
    - "claw://registry/clawlite/web-fetch@1.0.0"
    - inline:
        name: look
        description: "Look."
        input_schema: { type: object, properties: { where: { type: string } }, required: [where] }
  sandbox:
    inline:
      level: process
      capabilities:
        network: { mode: allowlist, allowed_hosts: ["api.example.com"] }
        filesystem:
          mode: scoped
          mount_paths:
            - { path: "/workspace", permissions: rw }
            - { path: "/var/data", permissions: ro }
          denied_paths: ["/workspace/private"]
        shell: { mode: restricted, blocked_commands: ["rm"], blocked_patterns: ["\\\\beval"] }
      resource_limits: { timeout_ms: 30000, memory_mb: 256 }
  policies:
    - inline:
        rules:
          - { id: look, action: allow, scope: tool, match: { name: look } }
          - { id: rest, action: allow, scope: all }
"""  # noqa: E501


def checked(folder, old: str, new: str):
    assert MANIFEST.count(old) >= 1, old
    (folder / "claw.yaml").write_text(MANIFEST.replace(old, new, 1))
    (folder / "tools.py").write_text(
        'def look(where: str) -> str:\n    """Look."""\n    return where\n'
    )
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "hello"\nsay = "Hi."\n')
    return check.check(str(folder))


def line_of(text: str) -> int:
    return MANIFEST[: MANIFEST.index(text)].count("\n") + 1
