"""web-fetch and web-search through the whole pipeline of an operator's agent."""

import itertools
import json

from agents import Agent, clawlite, linux, tool_call
from fetching import page, site
from net_servers import serving

NUMBERS = itertools.count(1)


def project(folder, network: dict, settings: str = ""):
    spec = {
        "identity": {"inline": {"name": "a", "personality": "You are.", "autonomy": "autonomous"}},
        "providers": [
            {
                "inline": {
                    "name": "p",
                    "protocol": "openai-compatible",
                    "endpoint": "http://h/v1",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "tools": [
            "claw://registry/clawlite/%s@1.0.0" % name
            for name in ["web-fetch"] + ["web-search"] * bool(settings)
        ],
        "sandbox": {
            "inline": {"name": "net", "level": "none", "capabilities": {"network": network}}
        },
        "policies": [
            {"inline": {"name": "p", "rules": [{"id": "all", "action": "allow", "scope": "all"}]}}
        ],
    }
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    (folder / "clawlite.toml").write_text(settings)
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr
    return Agent(linux("serve", folder / "claw.cbor", "--stdio"), folder / "home")


def call(agent, name, **arguments):
    """Return the text of the result, or the error."""
    request = tool_call(name, number=next(NUMBERS))
    request["params"]["arguments"] = arguments
    agent.line(json.dumps(request))
    answer = agent.message()
    if "error" in answer:
        return answer["error"]
    return ("failed: " if answer["result"]["isError"] else "") + answer["result"]["content"][0][
        "text"
    ]


def test_the_protected_agent(tmp_path):
    seen = []
    with serving(site(page(), seen)) as port, project(tmp_path, {"mode": "allow-all"}) as agent:
        agent.initialize()
        error = call(agent, "web_fetch", url="http://127.0.0.1:%d/" % port)
        assert (
            error["code"] == -32010
            and error["data"]["sandbox"] == "net"
            and error["data"]["reason"] == "private address"
            and error["data"]["hint"]
        )
        assert call(agent, "web-fetch", url="http://a@b/")["code"] == -32010
        for headers in ({"X": "a\r\nHost: b"}, {"Host": "b"}, {"X": 1}):
            assert (
                call(agent, "web-fetch", url="http://127.0.0.1:%d/" % port, headers=headers)["code"]
                == -32602
            )
        assert call(agent, "web-fetch", url="http://127.0.0.1/", method="TRACE")["code"] == -32602
    assert seen == []


def test_the_open_agent(tmp_path):
    answer = page(
        b'{"results": [{"title": "T", "url": "https://a.example/", "content": "c"}]}',
        "application/json",
    )
    with serving(site({"/": page(b"hello"), "/s?q=x%20y": answer})) as port:
        settings = '[search]\nendpoint = "http://127.0.0.1:%d/s?q={query}"\n' % port
        with project(
            tmp_path,
            {
                "mode": "allowlist",
                "allowed_hosts": ["127.0.0.1"],
                "ssrf_protection": {"enabled": False},
            },
            settings,
        ) as agent:
            agent.initialize()
            assert call(agent, "web-fetch", url="http://127.0.0.1:%d/" % port).endswith("\n\nhello")
            assert call(agent, "web-fetch", url="http://127.0.0.2:%d/" % port)["code"] == -32010
            assert json.loads(call(agent, "web-search", query="x y")) == {
                "results": [{"title": "T", "url": "https://a.example/", "snippet": "c"}]
            }
            assert "connection refused" in call(agent, "web-fetch", url="http://127.0.0.1:1/")
