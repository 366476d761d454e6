"""Attacks on the doors of the page, none of which gets through."""

import asyncio
import json
import os
import re
import socket
import ssl

import pytest
import trustme
from agents import clawlite, eventually
from pages import AGENT, RunningPage, initialize

from clawlite.core.base.errors import ClawError
from clawlite.host.page.page import Place
from clawlite.host.proxy.acceptor import MAX_BESIDE

CKP = "/ckp/" + AGENT
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def cookie(page, tokens):
    def of(name: str) -> dict:
        _, headers, _ = page.log_in(tokens[name])
        return {"Cookie": headers["Set-Cookie"].partition(";")[0]}

    return of


def _bearer(token: str) -> dict:
    return {"Authorization": "Bearer " + token}


def _open(page, headers: dict) -> dict:
    """Begin a session; return *headers* with its id."""
    status, said, body = page.ask("POST", CKP, json=initialize(), headers=headers)
    assert status == 200 and "result" in json.loads(body), body
    return {**headers, "Claw-Session-Id": said["Claw-Session-Id"]}


def _status(page, headers: dict) -> int:
    message = {"jsonrpc": "2.0", "id": 2, "method": "claw.status", "params": {}}
    return page.ask("POST", CKP, json=message, headers=headers)[0]


def test_every_answer_says_that_it_may_not_be_framed_sniffed_or_kept(page, greenhouse, tokens):
    """Clickjacking, and scripts of others: the policy allows nothing but files of the page."""
    for method, path, headers in (
        ("GET", "/", {}),
        ("GET", "/login", {}),
        ("GET", "/static/page.css", {}),
        ("GET", "/nothing", {}),
        ("GET", "/login", {"Host": "evil.example"}),
        ("POST", "/login", {"Origin": page.url}),
        ("POST", CKP, {}),
        ("POST", CKP, {**_bearer(tokens["ada"]), **JSON}),
    ):
        _, said, _ = page.ask(method, path, headers=headers)
        policy = said["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy, path
        assert "unsafe" not in policy and "*" not in policy
        assert said["X-Frame-Options"] == "DENY" and said["X-Content-Type-Options"] == "nosniff"
        assert said["Cache-Control"] == "no-store" and said["Referrer-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in said


def test_a_form_of_another_page_changes_nothing(page, greenhouse, cookie):
    """CSRF, even by a browser that would send the cookie."""
    ada = _open(page, {**cookie("ada"), "X-Claw": "1"})
    without = {name: value for name, value in ada.items() if name != "X-Claw"}
    shutdown = {"jsonrpc": "2.0", "id": 3, "method": "claw.shutdown", "params": {}}
    for headers in (
        without,
        {**without, "Content-Type": "text/plain"},
        {**without, "Content-Type": "application/x-www-form-urlencoded"},
        {**ada, "Origin": "https://evil.example"},
        {**ada, "Origin": "null"},
        {**ada, "Content-Type": "text/plain"},
    ):
        status, *_ = page.ask("POST", CKP, data=json.dumps(shutdown), headers=headers)
        assert status in (403, 415), headers
    assert page.ask("DELETE", CKP, headers=without)[0] == 403
    assert _status(page, ada) == 200


def test_a_login_or_logout_by_a_form_of_another_page_is_refused(page, tokens, cookie):
    ada = cookie("ada")
    for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        for path, data in (("/login", {"token": tokens["vic"]}), ("/logout", {})):
            status, said, _ = page.ask("POST", path, data=data, headers={**ada, **origin})
            assert status == 403 and "Set-Cookie" not in said, (origin, path)
    assert page.ask("GET", "/", headers=ada)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost:1", "10.0.0.1", "", "[::1", "a b"]
)
def test_a_name_that_leads_here_from_elsewhere_is_refused(page, tokens, host):
    """DNS rebinding: the browser believes that the page is of that name's origin."""
    for headers in ({}, _bearer(tokens["ada"])):
        status, _, body = page.ask("GET", "/", headers={**headers, "Host": host})
        assert status in (400, 403), body
        assert b"ada" not in body


def test_names_of_this_page_are_taken(page, state):
    port = page.url.rpartition(":")[2]
    for host in ("127.0.0.1:" + port, "localhost:" + port, "LOCALHOST:" + port, "127.0.0.1"):
        assert page.ask("GET", "/login", headers={"Host": host})[0] == 200, host
    with RunningPage(state, names=("claw.lan", "claw.lan:8443")) as named:
        for host, status in (("claw.lan", 200), ("claw.lan:8443", 200), ("claw.lan:1", 403)):
            assert named.ask("GET", "/login", headers={"Host": host})[0] == status, host


def test_a_websocket_with_a_cookie_takes_the_origin_of_the_page(page, greenhouse, cookie):
    """Cross-site WebSocket hijacking: browsers send the cookie along, and Origin."""
    ada = cookie("ada")

    async def connect(headers):
        import aiohttp

        try:
            async with page.http.ws_connect(page.url + CKP, headers=headers) as opened:
                await opened.send_str(json.dumps(initialize()))
                return json.loads((await opened.receive()).data)["result"]["agentInfo"]["name"]
        except aiohttp.WSServerHandshakeError as e:
            return e.status

    assert page.do(connect({**ada, "Origin": page.url})) == AGENT
    for origin in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert page.do(connect({**ada, **origin})) == 403, origin
    assert page.do(connect({"Origin": page.url})) == 401


def test_nobody_gets_at_the_session_of_another_person(page, greenhouse, tokens, cookie):
    """Hijack of a stream: the id of a session is good for its person's login alone."""
    ada = _open(page, _bearer(tokens["ada"]))
    id = {"Claw-Session-Id": ada["Claw-Session-Id"]}
    stream = {"Accept": "text/event-stream"}
    for other in (
        _bearer(tokens["bea"]),
        {**cookie("bea"), "X-Claw": "1"},
        {**cookie("vic"), "X-Claw": "1", "Origin": page.url},
    ):
        assert _status(page, {**other, **id}) == 404
        assert page.ask("GET", CKP, headers={**other, **id, **stream})[0] == 404
        assert page.ask("DELETE", CKP, headers={**other, **id})[0] == 404
    assert page.ask("GET", CKP, headers={**id, **stream})[0] == 401
    assert _status(page, ada) == 200


def test_nobody_has_the_role_of_another_person(page, greenhouse, tokens):
    sessions = {name: _open(page, _bearer(tokens[name])) for name in tokens}

    def ask(who: str, method: str, /, **params) -> dict:
        message = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params}
        return json.loads(page.ask("POST", CKP, json=message, headers=sessions[who])[2])

    call = dict(
        name="read-soil",
        arguments={},
        context={"request_id": "00000000-0000-4000-8000-000000000001", "identity": AGENT},
    )
    assert ask("vic", "claw.tool.call", **call)["error"]["code"] == -32011
    assert ask("bea", "claw.tool.call", actor="ada", **call)["error"]["code"] == -32011
    assert "result" in ask("bea", "claw.tool.call", **call)
    for name in ("vic", "bea"):
        assert ask(name, "claw.shutdown", role="admin")["error"]["code"] == -32011
        # a greeting as the page sends it is just a message that is no request
        greeting = {"person": "ada", "role": "admin", "login_ms": 1}
        _, _, body = page.ask("POST", CKP, json=greeting, headers=sessions[name])
        assert json.loads(body)["error"]["code"] == -32600
        # and one that is smuggled into a line of its own stays in the message
        text = '{"jsonrpc":"2.0","id":6,\n"method":"claw.status","params":{}}\n'
        more = json.dumps(greeting) + '\n{"jsonrpc":"2.0","id":7,"method":"claw.shutdown"}'
        headers = {**sessions[name], **JSON}
        assert "result" in json.loads(page.ask("POST", CKP, data=text, headers=headers)[2])
        said = json.loads(page.ask("POST", CKP, data=text + more, headers=headers)[2])
        assert said["error"]["code"] == -32700
    assert ask("ada", "claw.status")["result"]["state"] == "READY"


def test_a_token_in_a_url_opens_nothing_and_is_said_nowhere(page, greenhouse, tokens, capfd):
    token = tokens["ada"]
    for path in ("/?token=", "/login?token=", CKP + "?access_token=", "/static/page.css?"):
        status, headers, body = page.ask("GET", path + token)
        assert status == 400 and token.encode() not in body + str(headers).encode(), path
    page.log_in(token)
    page.ask("POST", CKP, json={}, headers=_bearer(token))
    page.ask("GET", "/" + token)
    secret = token.partition(":")[2]
    said = capfd.readouterr()
    assert secret not in said.out + said.err
    folder = os.path.dirname(page.page.people.root)
    for path, _, files in os.walk(folder):
        for name in files:
            if os.path.isfile(os.path.join(path, name)):
                with open(os.path.join(path, name), "rb") as file:
                    assert secret.encode() not in file.read(), (path, name)


def test_paths_lead_to_nothing_else(page, tokens):
    ada = _bearer(tokens["ada"])
    for path in (
        "/static/../page.py",
        "/static/%2e%2e/page.py",
        "/static/..%2fpage.py",
        "/ckp/.gateway",
        "/ckp/..%2f" + AGENT,
        "/ckp/" + AGENT + "/",
        "/ckp/%00",
        "/.git/config",
    ):
        assert page.ask("GET", path, headers=ada)[0] in (400, 404), path


def test_what_is_too_long_or_too_slow_is_cut_off(page, greenhouse, tokens):
    ada = _open(page, _bearer(tokens["ada"]))
    status, _, body = page.ask("POST", CKP, data=b" " * 1048577, headers={**ada, **JSON})
    assert status == 413 and json.loads(body)["error"]["code"] == -32600
    assert page.ask("POST", CKP, data=b" " * 1048576, headers={**ada, **JSON})[0] == 202

    async def pieces():
        for _ in range(40):
            yield b" " * 65536

    status, *_ = page.ask("POST", CKP, data=pieces(), headers={**ada, **JSON})
    assert status == 413
    assert _status(page, ada) == 200
    # who says nothing more is dropped, and nobody waits for them
    host, port = re.fullmatch(r"http://(.*):(\d+)", page.url).groups()
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(b"POST /login HTTP/1.1\r\nHost: ")
        assert _status(page, ada) == 200
        slow.settimeout(60)
        assert slow.recv(100) == b""


def test_a_thousand_connections_shut_nobody_out(page, greenhouse, tokens):
    host, port = re.fullmatch(r"http://(.*):(\d+)", page.url).groups()
    ada = _open(page, _bearer(tokens["ada"]))
    opened = []
    try:
        for _ in range(1000):
            opened.append(socket.create_connection((host, int(port)), 60))
        assert _status(page, ada) == 200
        assert page.ask("GET", "/login")[0] == 200
        assert _status(page, _open(page, _bearer(tokens["bea"]))) == 200

        def count_dropped():
            dropped = 0
            for one in opened:
                one.setblocking(False)
                try:
                    dropped += one.recv(1) == b""
                except BlockingIOError:
                    pass
                except ConnectionError:
                    dropped += 1
            return dropped

        eventually(lambda: count_dropped() >= 1000 - MAX_BESIDE)
    finally:
        for one in opened:
            one.close()


def test_beyond_this_machine_it_takes_tls_or_a_proxy_that_speaks_it(tmp_path):
    for place in (
        Place("0.0.0.0:0", proxied=None),
        Place("192.0.2.1:80"),
        Place("[::]:0", names=("claw.lan",)),
    ):
        with pytest.raises(ClawError, match="unencrypted"):
            place.check()
    for place in (
        Place(),
        Place("[::1]:0"),
        Place("localhost:0"),
        Place("0.0.0.0:0", certificate="x"),
        Place("0.0.0.0:0", proxied="claw.example"),
    ):
        place.check()
    done = clawlite("page", "--listen", "0.0.0.0:0", cwd=tmp_path)
    assert done.returncode == 2 and "--tls-cert" in done.stderr


def test_by_tls_the_cookie_is_for_tls_alone(state, tokens, tmp_path):
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "c")
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    with RunningPage(state, certificate=str(tmp_path / "c")) as page:
        assert page.url.startswith("https://")
        _, headers, _ = page.log_in(tokens["ada"], ssl=tls)
        cookie = headers["Set-Cookie"]
        assert cookie.startswith("__Host-claw=") and "; Secure" in cookie
        got = {"Cookie": cookie.partition(";")[0]}
        assert page.ask("GET", "/", headers=got, ssl=tls)[0] == 200
        plain = "http://" + page.url.partition("//")[2]
        status, *_ = page.ask("POST", "/logout", headers={**got, "Origin": plain}, ssl=tls)
        assert status == 403


def test_behind_a_proxy_its_host_counts_and_wrong_tokens_are_their_clients(state, tokens):
    with RunningPage(state, proxied="claw.example") as page:
        own = {"Host": "claw.example", "Origin": "https://claw.example"}
        status, headers, _ = page.log_in(tokens["ada"], headers=own)
        assert status == 303 and "; Secure" in headers["Set-Cookie"]
        assert page.log_in(tokens["ada"], headers={**own, "Host": "evil.example"})[0] == 403
        for _ in range(11):
            page.log_in("ada:wrong", headers={**own, "X-Forwarded-For": "1.1.1.1, 203.0.113.7"})
        late = {**own, "X-Forwarded-For": "203.0.113.7"}
        assert page.log_in(tokens["ada"], headers=late)[0] == 429
        other = {**own, "X-Forwarded-For": "203.0.113.7, 203.0.113.8"}
        assert page.log_in(tokens["ada"], headers=other)[0] == 303


def test_a_client_that_reads_nothing_delays_nobody_and_is_cut_off(
    page, greenhouse, tokens, monkeypatch
):
    from clawlite.host.page import sessions

    monkeypatch.setattr(sessions, "TAKES_S", 1)

    async def flood():
        """Ask and ask, and read nothing of the answers, until the page takes no more."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(page.url.rpartition(":")[2])
        )
        writer.write(
            b"GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n"
            b"Authorization: Bearer %s\r\n\r\n"
            % (CKP.encode(), b"A" * 22 + b"==", tokens["bea"].encode())
        )
        assert b" 101 " in await reader.readline()
        message = json.dumps(initialize()).encode()
        while True:
            frame = bytes([0x81, 0xFE]) + len(message).to_bytes(2, "big") + b"\0\0\0\0" + message
            writer.write(frame)
            await writer.drain()
            message = b'{"jsonrpc":"2.0","id":2,"method":"claw.status","params":{}}' + b" " * 400

    flooding = page.start(flood())
    ada = _open(page, _bearer(tokens["ada"]))
    assert _status(page, ada) == 200
    assert isinstance(eventually(lambda: flooding.done() and flooding.exception()), OSError)
    assert _status(page, ada) == 200
    eventually(lambda: not page.page._site.sessions._senders)
