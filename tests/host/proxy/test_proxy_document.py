"""docs/proxy.md, followed word by word: its commands, its program, and what it says of errors."""

import json
import re
import shlex
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import trading_desk
from agents import Agent, clawlite, eventually, linux
from gateways import KEY
from llm_server import MODEL, Server, calls, say
from trading_desk import TOKEN, Desk

TEXT = (Path(__file__).resolve().parents[3] / "docs/proxy.md").read_text()
ADDRESS = "127.0.0.1:8080"


def blocks(kind: str) -> list:
    """Return the blocks of the document in the language *kind*, "sh" for commands."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def commands() -> list:
    """Return the words of each command of the first block, without comments."""
    return [shlex.split(line, comments=True) for line in blocks("sh")[0].splitlines()]


def answered(address: str, method: str, path: str, token: str = "") -> tuple:
    """Return (status, message) of a request whose body is no JSON."""
    data = b"{" if method == "POST" else None
    request = urllib.request.Request(f"http://{address}{path}", data, method=method)
    if token:
        request.add_header("Authorization", "Bearer " + token)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)["error"]["message"]


def test_the_document_word_by_word(tmp_path):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % one.getsockname()[1]
    make_token, start = commands()
    secret, *start = start
    assert secret.startswith("DESK_TOKEN=") and start[:1] == make_token[:1] == ["clawlite"]
    descriptor = json.loads(json.dumps(trading_desk.DESCRIPTOR))
    descriptor["auth"]["env"] = "DESK_TOKEN"
    state = tmp_path / "state"
    script = [calls(("desk__get_market_context", {})), say("You have 50,000.")]
    with Server(script) as server, Desk() as desk:
        provider = (
            f'{{ name: remote, protocol: openai-compatible, endpoint: "{server.endpoint}", '
            f"model: {MODEL}, auth: {{ type: bearer, secret_ref: GARDEN_KEY }} }}"
        )
        folder = trading_desk.write(
            tmp_path / "analyst",
            desk.url,
            descriptor=descriptor,
            service='mode = "mediated"\n',
            more="[gateway]\n",
            provider=provider,
        )
        for name in ("clawlite.toml", "reflex.toml"):
            path = folder / name
            path.write_text(
                path.read_text()
                .replace('"trading-api.', '"desk.')
                .replace("[services.trading-api]", "[services.desk]")
                .replace("service://trading-api", "service://desk")
                .replace('service = "trading-api"', 'service = "desk"')
            )
        made = clawlite(*make_token[1:], cwd=tmp_path, CLAWLITE_STATE=state)
        token = made.stdout.strip()
        assert token.startswith("analyst:") and made.stdout.count("\n") == 1, "printed, once"
        words = [word.replace(ADDRESS, address) for word in start[1:]]
        env = {"CLAWLITE_STATE": state, "GARDEN_KEY": KEY, "DESK_TOKEN": TOKEN}
        with Agent(linux(*words), tmp_path / "home", cwd=tmp_path, env=env) as gateway:
            eventually(lambda: "proxy for runners on" in gateway.errors(), 30)
            (program,) = blocks("python")
            program = program.replace(ADDRESS, address).replace("analyst:TOKEN", token)
            program = program.replace("the-model-of-the-agent", MODEL)
            program += "print(answer.choices[0].message.content)\n"
            done = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
            )
            assert done.stdout == "You have 50,000.\n", done.stderr
            status, said = answered(address, "POST", "/v1/responses", token)
            assert status == 404 and "/v1/chat/completions" in said
            assert answered(address, "POST", "/v1/chat/completions")[0] == 401
            assert answered(address, "POST", "/v1/chat/completions", token)[0] == 400
            status, models = answered(address, "GET", "/v1/models", token)
            assert status == 200 and [one["id"] for one in models["data"]] == [MODEL]
        history = clawlite("gateway", "history", "--json", cwd=tmp_path, CLAWLITE_STATE=state)
    (row,) = json.loads(history.stdout)
    (call,) = row["tool_trace"][0]["tool_calls"]
    assert call["name"] == "desk.get_market_context" and row["status"] == "ok"
    assert desk.requests[0][1] == "/api/v1/market_context/analyst"
    assert desk.requests[0][2]["Authorization"] == "Bearer " + TOKEN
    words = " ".join(TEXT.split())
    assert "desk__get_market_context" in words and "8 rounds, 30 s a call, 120 s" in words
