"""Secrets that tools use (clawlite/host/sandbox/credentials.py,
clawlite/linux/secrets/credentials.py): who declares one gets it, and nobody else.
"""

import http.server
import json
import threading

import pytest
from agents import UUID, Agent, clawlite, linux

VALUE = "a v4lue " + "that is secret"
MANIFEST = """
claw: "0.3.0"
kind: Claw
metadata: { name: credentialed, version: "1.0.0" }
spec:
  identity: { inline: { personality: "x", autonomy: autonomous } }
  providers: [ { inline: { protocol: custom, endpoint: "builtin:replay", model: none, auth: { type: none } } } ]
  tools:
    - inline: { name: mine, description: "Mine.", input_schema: { type: object } }
    - inline: { name: other, description: "Other.", input_schema: { type: object } }
    - "claw://registry/clawlite/web-fetch@1.0.0"
  sandbox:
    inline:
      level: process
      capabilities:
        network: { mode: allowlist, allowed_hosts: ["127.0.0.1", "127.0.0.2"], ssrf_protection: { enabled: false } }
        secrets: { injection: %s, leak_detection: { enabled: %s } }
  policies: [ { inline: { rules: [ { id: all, action: allow, scope: all } ] } } ]
"""  # noqa: E501
TOOLS = '''import os


def mine() -> str:
    """Mine."""
    return os.environ.get("MAIL_PASS", "none")[::-1].replace("4", "-") + str(len(os.environ.get("MAIL_PASS", "")))


def other() -> str:
    """Other."""
    return " ".join("%s=%s" % item for item in os.environ.items())
'''  # noqa: E501


def _project(folder, settings: str, injection: str = "environment", leaks: str = "false"):
    folder.mkdir(exist_ok=True)
    (folder / "claw.yaml").write_text(MANIFEST % (injection, leaks))
    (folder / "tools.py").write_text(TOOLS)
    (folder / "r.jsonl").write_text('{"user": null}\n{"say": "ok"}\n')
    (folder / "clawlite.toml").write_text('replay = "r.jsonl"\n' + settings)
    return folder


def _call(agent, number: int, tool: str, arguments: dict = {}) -> dict:
    return agent.call(
        "claw.tool.call",
        {
            "name": tool,
            "arguments": arguments,
            "context": {"request_id": UUID % number, "identity": "credentialed"},
        },
        number,
    )


def _text(answer: dict) -> str:
    return answer["result"]["content"][0]["text"] if "result" in answer else json.dumps(answer)


@pytest.mark.parametrize(
    "settings, injection, words",
    [
        ('[[credentials]]\nname = "A"\n', "environment", "nobody uses it"),
        ('[[credentials]]\nname = "a b"\ntools = ["mine"]\n', "environment", "1 to 128"),
        ('[[credentials]]\nname = "A"\ntools = ["mime"]\n', "environment", '"mime" is no tool'),
        (
            '[[credentials]]\nname = "A"\ntools = ["mine"]\n',
            "host-boundary",
            "gives no secret to a process",
        ),
        (
            '[[credentials]]\nname = ".."\ntools = ["mine"]\n',
            "file-mount",
            "a name that a file can have",
        ),
        (
            '[[credentials]]\nname = "A"\nhosts = ["*.x.org"]\n',
            "host-boundary",
            "belongs to one host",
        ),
        (
            '[[credentials]]\nname = "A"\nhosts = ["x.org"]\nheader = "a b"\n',
            "host-boundary",
            "the name of a header",
        ),
        (
            '[[credentials]]\nname = "A"\nhosts = ["x.org"]\nformat = "Bearer"\n',
            "host-boundary",
            "a text with {} in it",
        ),
        (
            '[[credentials]]\nname = "A"\ntools = ["mine"]\nheader = "X"\n',
            "environment",
            "it is for hosts",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_line(tmp_path, settings, injection, words):
    done = clawlite("build", cwd=_project(tmp_path / "p", settings, injection))
    assert done.returncode == 2 and words in done.stderr and "clawlite.toml:" in done.stderr


def test_the_tool_that_declares_it_has_it_and_no_other(tmp_path):
    folder = _project(
        tmp_path / "p", '[[credentials]]\nname = "MAIL_PASS"\ntools = ["mine"]\n', leaks="true"
    )
    assert clawlite("build", cwd=folder).returncode == 0
    with Agent(
        linux("serve", folder / "claw.cbor", "--stdio"), tmp_path / "home", env={"MAIL_PASS": VALUE}
    ) as agent:
        agent.initialize()
        assert _text(_call(agent, 1, "mine")) == VALUE[::-1].replace("4", "-") + str(len(VALUE))
        assert "MAIL_PASS" not in _text(_call(agent, 2, "other"))
    with Agent(linux("serve", folder / "claw.cbor", "--stdio"), tmp_path / "home2") as agent:
        agent.initialize()
        assert "secret MAIL_PASS: not found" in _text(_call(agent, 1, "mine"))


def test_as_a_file_for_the_tool_that_declares_it(tmp_path):
    folder = _project(
        tmp_path / "p",
        '[[credentials]]\nname = "MAIL_PASS"\ntools = ["mine", "exec-shell"]\n',
        "file-mount",
        "true",
    )
    manifest = (folder / "claw.yaml").read_text()
    (folder / "claw.yaml").write_text(
        manifest.replace(
            "  sandbox:", '    - "claw://registry/clawlite/exec-shell@1.0.0"\n  sandbox:'
        )
        .replace("        secrets:", "        shell: { mode: full }\n        secrets:")
        .replace("        network:", "        #network:")
    )
    (folder / "tools.py").write_text(
        TOOLS.replace(
            'os.environ.get("MAIL_PASS", "none")', 'open(os.environ["MAIL_PASS_FILE"]).read()'
        )
    )
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr
    with Agent(
        linux("serve", folder / "claw.cbor", "--stdio"), tmp_path / "home", env={"MAIL_PASS": VALUE}
    ) as agent:
        agent.initialize()
        assert _text(_call(agent, 1, "mine")) == VALUE[::-1].replace("4", "-") + "0"
        assert "MAIL_PASS" not in _text(_call(agent, 2, "other"))
        assert _text(
            _call(
                agent, 3, "exec-shell", {"command": "env | grep -c v4lue; wc -c < $MAIL_PASS_FILE"}
            )
        ).split() == ["0", str(len(VALUE))]
        assert (
            _text(_call(agent, 4, "exec-shell", {"command": "cat $MAIL_PASS_FILE"}))
            == "[REDACTED: known]"
        )


@pytest.mark.parametrize(
    "injection, told",
    [("file-mount", "claw.yaml:"), ("host-boundary", "clawlite.toml:")],
)
def test_at_level_none_no_tool_is_given_a_secret(tmp_path, injection, told):
    """One sentence: by the Sandbox that says how, else by the credential that wants it."""
    folder = _project(tmp_path / "p", '[[credentials]]\nname = "A"\ntools = ["mine"]\n', injection)
    (folder / "claw.yaml").write_text(
        (folder / "claw.yaml").read_text().replace("level: process", "level: none")
    )
    done = clawlite("build", cwd=folder)
    said = [line for line in done.stderr.splitlines() if "a tool has no process of its own" in line]
    assert done.returncode == 2 and len(said) == 1 and told in said[0], done.stderr


def test_on_the_wire_for_its_host_alone(tmp_path):
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.server.server_address[0], self.headers.get("X-Mail")))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"got " + (self.headers.get("X-Mail") or "nothing").encode())

        def log_message(self, *_):
            pass

    servers = [
        http.server.HTTPServer((address, 0), Handler) for address in ("127.0.0.1", "127.0.0.2")
    ]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = _project(
        tmp_path / "p",
        '[[credentials]]\nname = "MAIL_PASS"\nhosts = '
        '["127.0.0.1"]\nheader = "X-Mail"\nformat = "Key {}"\n',
        "host-boundary",
        "true",
    )
    try:
        assert clawlite("build", cwd=folder).returncode == 0
        with Agent(
            linux("serve", folder / "claw.cbor", "--stdio"),
            tmp_path / "home",
            env={"MAIL_PASS": VALUE},
        ) as agent:
            agent.initialize()
            texts = [
                _text(
                    _call(
                        agent, number, "web-fetch", {"url": "http://%s:%d/" % server.server_address}
                    )
                )
                for number, server in enumerate(servers, 1)
            ]
            assert "MAIL_PASS" not in _text(_call(agent, 3, "other")) and VALUE not in _text(
                _call(agent, 4, "other")
            )
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
    assert seen == [("127.0.0.1", "Key " + VALUE), ("127.0.0.2", None)], (seen, texts)
    assert "[REDACTED: known]" in texts[0] and VALUE not in texts[0] and "got nothing" in texts[1]
