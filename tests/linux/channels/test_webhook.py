"""Webhooks over real sockets: signatures, replays, each status, and a server that nobody can
hold up.
"""

import contextlib
import json
import os
import socket
import time
import tracemalloc

import pytest
from channel_world import KEY, World, signed

from clawlite.linux.channels.replay_cache import ReplayCache
from clawlite.linux.channels.webhook import MAX_SEEN, WINDOW_S, Signed
from clawlite.linux.files.record_log import seal
from clawlite.linux.net import http_server
from clawlite.linux.net.http_request import MAX_FIELDS, MAX_HEAD, Refused, Request

ALLOWED = {"mode": "allowlist", "allowed_ids": ["7"]}
HELLO = {"from": "7", "text": "echo hello"}


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Return a function(**more of the spec) -> World with a webhook on any port."""
    monkeypatch.setenv("SECRET", KEY)
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "secrets"))
    with contextlib.ExitStack() as stack:

        def start(**more):
            wake = os.pipe()
            stack.callback(lambda: [os.close(fd) for fd in wake])
            spec = dict(
                {"type": "webhook", "transport": "webhook", "access_control": ALLOWED}, **more
            )
            world = World(
                tmp_path, {"hook": spec}, '[webhook]\naddress = "127.0.0.1:0"\n', wake=wake
            )
            stack.callback(lambda: world.channels.close())
            return world

        yield start


def send(world, data: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", world.source("hook").port))
    client.sendall(data)
    client.setblocking(False)
    return client


def answered(world, *clients) -> list:
    """Return [(status, JSON)] of clients, once all are answered."""
    got = {client: b"" for client in clients}
    over = set()

    def more():
        for client in set(clients) - over:
            with contextlib.suppress(BlockingIOError):
                data = client.recv(65536)
                got[client] += data
                if not data:
                    over.add(client)
        return len(over) == len(clients)

    world.until(more)
    for client in clients:
        client.close()
    return [
        (int(got[client].split()[1]), json.loads(got[client].partition(b"\r\n\r\n")[2]))
        for client in clients
    ]


def post(world, message, **more) -> tuple:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return answered(world, send(world, signed(body, **more)))[0]


def test_a_signed_message_is_answered(started):
    world = started()
    assert post(world, HELLO) == (200, {"text": "You said: hello"})
    assert (
        post(world, {"from": "7", "text": "quick"})[0] == 200
        and world.events("tool.call")[0]["caller"] == "hook/7"
    )


@pytest.mark.parametrize(
    "more, status",
    [
        ({"key": "another"}, 401),
        ({"path": "/other"}, 404),
        ({"method": "GET"}, 405),
        ({"at": -400}, 401),
        ({"at": 400}, 401),
    ],
)
def test_what_is_not_taken(started, more, status):
    world = started()
    more = {**more, **({"at": int(time.time()) + more["at"]} if "at" in more else {})}
    assert post(world, HELLO, **more)[0] == status and not world.events(
        "channel.turn"
    ) + world.events("channel.refused")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"no",
        b'{"from": 7, "text": "x"}',
        b'{"from": "7", "text": ""}',
        b'{"from": "7", "text": "\xff"}',
    ],
)
def test_what_is_no_message(started, body):
    assert post(started(), body)[0] == 400


def test_a_request_is_good_once(started):
    world = started()
    data = signed(json.dumps(HELLO).encode())
    assert (
        answered(world, send(world, data))[0][0] == 200
        and answered(world, send(world, data))[0][0] == 401
    )
    world.opened()  # after a restart, too
    world.poll()
    assert answered(world, send(world, data))[0][0] == 401


def test_channels_shows_what_failed(started, monkeypatch):
    world = started()
    assert world.channels.command(["/channels"]) == ["hook                 webhook, allowlist"]
    monkeypatch.delenv("SECRET")
    world.opened()
    world.poll()
    (told,) = world.told
    world.move(3000)
    (line,) = world.channels.command(["/channels"])
    first, second = line.splitlines()
    assert first == "hook                 webhook, allowlist, not open"
    said = second.partition("3 s ago: ")[2]
    assert "SECRET" in said and told.startswith("[hook] " + said), (second, told)


def test_who_is_not_admitted_and_what_is_too_much(started):
    world = started(
        processing={"max_message_length": 12, "rate_limit": {"messages_per_minute": 1, "burst": 1}}
    )
    assert post(world, {"from": "66", "text": "echo hi"}) == (403, {"error": "stranger"})
    assert post(world, {"from": "7", "text": "echo " + "x" * 8})[0] == 413
    assert post(world, {"from": "7", "text": "echo " + "x" * 7})[0] == 200
    status, said = post(world, {"from": "7", "text": "echo again"})
    assert status == 429 and "60 s" in said["error"]
    assert post(world, {"from": "7", "text": "x" * (4 * 12 + 1024)})[0] == 413


def test_a_turn_that_fails_is_502(started):
    world = started()
    world.agent.image.agent.max_rounds = 0
    assert post(world, HELLO)[0] == 502


def test_slow_clients_hold_nobody_up(started):
    world = started()
    slow = [send(world, b"POST /hook HTTP/1.1\r\nHos") for _ in range(8)]
    assert post(world, HELLO)[0] == 200
    for client in slow:
        client.close()


def test_many_at_once_are_each_answered(started):
    """9.2: none is reset; who is one too many hears 503."""
    world = started()
    clients = [
        send(world, signed(json.dumps({"from": "7", "text": "echo %d" % number}).encode()))
        for number in range(300)
    ]
    said = [status for status, _ in answered(world, *clients)]
    assert len(said) == 300 and set(said) <= {200, 429, 503} and said.count(200) >= 1, said


@pytest.mark.parametrize("half", [b"", b"POST /hook HTTP/1.1\r\nHos"])
def test_who_says_nothing_makes_way_for_who_does(started, monkeypatch, half):
    monkeypatch.setattr(http_server, "SLOW_S", 3600)
    world = started()
    silent = [send(world, half) for _ in range(129)]
    assert post(world, HELLO)[0] == 200
    assert answered(world, silent[0]) == [
        (503, {"error": "too many connections; try again later"})
    ], "the oldest went first"
    with pytest.raises(BlockingIOError):
        silent[-1].recv(1)
    for client in silent:
        client.close()


@pytest.mark.parametrize("most, per_address", [(4, 64), (64, 4)])
def test_who_waits_for_an_answer_keeps_its_place(started, monkeypatch, most, per_address):
    monkeypatch.setattr(http_server, "MOST", most)
    monkeypatch.setattr(http_server, "PER_ADDRESS", per_address)
    world = started()
    world.hold = True
    waiting = [
        send(world, signed(json.dumps({"from": "7", "text": "quick", "number": number}).encode()))
        for number in range(4)
    ]
    world.until(
        lambda: (
            world.ran
            and world.source("hook")._server._last == 4
            and not any(
                client.request for client in list(world.source("hook")._server._clients.values())
            )
        )
    )
    assert answered(world, send(world, signed(json.dumps(HELLO).encode())))[0][0] == 503
    for client in waiting:
        with pytest.raises(BlockingIOError):
            client.recv(1)
    world.finish()
    assert answered(world, waiting[0])[0][0] == 200
    for client in waiting[1:]:
        client.close()


def test_a_client_that_takes_too_long_is_told_so(started, monkeypatch):
    monkeypatch.setattr(http_server, "SLOW_S", 0.05)
    world = started()
    assert answered(world, send(world, b"POST /hook HTTP/1.1\r\n"))[0][0] == 408


def test_answers_go_to_who_asked_also_when_another_took_its_place(started):
    world = started()
    world.hold = True
    gone = send(world, signed(json.dumps({"from": "7", "text": "quick"}).encode()))
    world.until(lambda: world.ran)
    gone.close()
    other = send(world, signed(b"no"))
    world.finish()
    assert answered(world, other)[0][0] == 400


def test_an_address_that_is_taken_is_said(started):
    world = started()
    with pytest.raises(http_server.ClawError, match="nothing can listen on 127.0.0.1"):
        http_server.Server("127.0.0.1", world.source("hook").port, 1, None, 0)


def test_a_signature_is_forgotten_when_no_replay_is_good_any_more():
    now = [1000]
    check = Signed("/hook", KEY.encode(), lambda: now[0])

    def status(at: int) -> int:
        request = Request(100)
        assert request.feed(signed(b'{"from": "7", "text": "x"}', at))
        try:
            check.check(request)
        except Refused as e:
            return e.status
        return 200

    assert (
        status(1000 + WINDOW_S) == 200
        and status(1000 + WINDOW_S) == 401
        and status(1001 + WINDOW_S) == 401
    )
    now[0] = 1000 + 2 * WINDOW_S
    assert status(1000 + WINDOW_S) == 401, (
        "its time stamp is still good: the signature must be remembered"
    )


def _status(check: Signed, data: bytes) -> int:
    request = Request(100)
    assert request.feed(data)
    try:
        check.check(request)
    except Refused as e:
        return e.status
    return 200


def test_a_signature_is_known_after_a_restart(tmp_path):
    now, path = [1000], str(tmp_path / "channels" / "hook.seen")
    bodies = [signed(b'{"from": "7", "text": "%d"}' % number, 1000) for number in range(27)]
    first = Signed("/hook", KEY.encode(), lambda: now[0], path)
    assert [_status(first, body) for body in bodies] == [200] * 27
    # the first was killed: nothing closed it
    second = Signed("/hook", KEY.encode(), lambda: now[0], path)
    assert [_status(second, body) for body in bodies] == [401] * 27
    assert _status(second, signed(b'{"from": "7", "text": "new"}', 1000)) == 200
    third = Signed("/hook", KEY.encode(), lambda: now[0], path)
    assert len(third.seen) == 28
    now[0] = 1001 + 2 * WINDOW_S
    assert len(Signed("/hook", KEY.encode(), lambda: now[0], path).seen) == 0, "too old to be good"
    for check in (first, second):
        check.seen.close()


def _open_known(path) -> ReplayCache:
    seen = ReplayCache(str(path), 2 * WINDOW_S)
    seen.begin(1000)
    return seen


def test_each_flipped_bit_of_the_signatures_is_told_unless_all_are_known(tmp_path, capfd):
    path, names = tmp_path / "hook.seen", ["sha256=%064x" % number for number in (5, 6)]
    seen = _open_known(path)
    for name in names:
        seen.add(name, 1000)
    seen.close()
    whole = path.read_bytes()
    for place in range(len(whole) * 8):
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        again = _open_known(path)
        again.close()
        lost = [name for name in names if name not in again]
        assert len(again) == 2 - len(lost), (place, "nothing else is known")
        said = capfd.readouterr().err
        assert ("was damaged" in said) == bool(lost), (place, said)
        if lost:
            assert (tmp_path / "hook.seen.damaged").read_bytes() == data
            (tmp_path / "hook.seen.damaged").unlink()
            _open_known(path).close()
            assert not capfd.readouterr().err, "it is told once"


def test_signatures_of_an_earlier_version_are_known(tmp_path, capfd):
    path = tmp_path / "hook.seen"
    path.write_bytes(b"1000 sha256=a\n1000 sha256=b\n1000 sha2")
    seen = _open_known(path)
    assert len(seen) == 2 and "sha256=a" in seen and "sha256=b" in seen
    seen.add("sha256=c", 1000)
    seen.close()
    assert len(_open_known(path)) == 3 and not capfd.readouterr().err


def test_signatures_with_a_checksum_of_an_earlier_version_are_known(tmp_path, capfd):
    path, name = tmp_path / "hook.seen", "sha256=%064x" % 5
    path.write_bytes(seal(b"1000 " + name.encode()))
    seen = _open_known(path)
    assert len(seen) == 1 and name in seen and not capfd.readouterr().err


def test_a_hundred_thousand_requests_in_ten_minutes_are_remembered_in_little_memory(tmp_path):
    seen, path = ReplayCache(None, 2 * WINDOW_S), tmp_path / "hook.seen"
    names = ["sha256=%064x" % number for number in range(100000)]
    tracemalloc.start()
    for number, name in enumerate(names):
        seen.add(name, 1000 + number * 600 // 100000)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(seen) == 100000 < MAX_SEEN and used < 2000000, used
    assert all(name in seen for name in names[::97]) and "sha256=%064x" % 100000 not in seen
    seen.forget(1599)
    assert len(seen) == 100000, "none is forgotten before its time"
    seen.forget(1000 + 3 * 2 * WINDOW_S)
    assert len(seen) == 0
    # what is on the disk is known again, and the file does not grow without bound
    seen = ReplayCache(str(path), 2 * WINDOW_S)
    seen._write = lambda line: None
    for name in names:
        seen.add(name, 1000)
    seen._rewrite()
    seen.close()
    again = _open_known(path)
    assert len(again) == 100000 and names[0] in again and names[-1] in again
    assert path.stat().st_size < 8 << 20


def test_a_full_memory_of_signatures_takes_no_more_and_forgets_none(monkeypatch):
    monkeypatch.setattr("clawlite.linux.channels.webhook.MAX_SEEN", 3)
    now = [1000]
    check = Signed("/hook", KEY.encode(), lambda: now[0], None)
    bodies = [signed(b'{"from": "7", "text": "%d"}' % number, 1000) for number in range(4)]
    assert [_status(check, body) for body in bodies] == [200, 200, 200, 429]
    assert _status(check, bodies[0]) == 401
    now[0] += 2 * WINDOW_S + 60
    assert _status(check, signed(b'{"from": "7", "text": "x"}', now[0])) == 200


def test_what_cannot_be_put_on_record_is_refused_and_may_come_again(tmp_path):
    folder = tmp_path / "channels"
    folder.write_text("in the way")
    check = Signed("/hook", KEY.encode(), lambda: 1000, None)
    check.seen = ReplayCache(str(folder / "hook.seen"), 2 * WINDOW_S)
    data = signed(b'{"from": "7", "text": "x"}', 1000)
    assert _status(check, data) == 503 == _status(check, data)
    folder.unlink()
    assert _status(check, data) == 200 and _status(check, data) == 401
    check.seen.close()


# -- the grammar


def refused(data: bytes, most: int = 10):
    try:
        return 0 if Request(most).feed(data) else None
    except Refused as e:
        return e.status


@pytest.mark.parametrize(
    "data, status",
    [
        (b"POST / HTTP/1.1\r\n\r\n", 0),
        (b"POST / HTTP/1.1\r\n", None),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na", None),
        (b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n" + b"x" * 10, 0),
        (b"POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\nA : b\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n A: b\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400),
        (b"POST / HTTP/1.1\nA: b\n\n\r\n\r\n", 400),
        (b"POST x HTTP/1.1\r\n\r\n", 400),
        (b"POST / HTTP/2\r\n\r\n", 400),
        (b"POST  / HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\n"
            + b"".join(b"a%d: b\r\n" % n for n in range(MAX_FIELDS))
            + b"\r\n",
            0,
        ),
        (
            b"POST / HTTP/1.1\r\n"
            + b"".join(b"a%d: b\r\n" % n for n in range(MAX_FIELDS + 1))
            + b"\r\n",
            431,
        ),
        (b"POST / HTTP/1.1\r\nA: " + b"x" * (MAX_HEAD - 20) + b"\r\n\r\n", 0),
        (b"POST / HTTP/1.1\r\nA: " + b"x" * MAX_HEAD + b"\r\n\r\n", 431),
        (b"x" * MAX_HEAD, None),
        (b"x" * (MAX_HEAD + 1), 431),
    ],
)
def test_requests(data, status):
    assert refused(data) == status


def test_a_request_byte_by_byte():
    request, data = Request(10), b"POST /a HTTP/1.1\r\nA:  b \r\nContent-Length: 3\r\n\r\nxyz"
    assert [request.feed(data[at : at + 1]) for at in range(len(data))] == [False] * (
        len(data) - 1
    ) + [True]
    assert (request.method, request.path, request.headers["a"], request.body) == (
        "POST",
        "/a",
        "b",
        b"xyz",
    )


@pytest.mark.parametrize(
    "change, status",
    [
        ((b"X-Claw-Signature: sha256=", b"X-Claw-Signature: sha1="), 401),
        ((b"X-Claw-Signature: ", b"X-Other: "), 401),
        ((b"X-Claw-Timestamp: ", b"X-Claw-Timestamp: -"), 401),
        ((b"X-Claw-Timestamp: ", b"X-Other: "), 401),
        ((b"POST ", b"PUT "), 405),
        ((b" /hook ", b" /hoek "), 404),
    ],
)
def test_what_no_body_can_mend_is_refused_before_the_body_comes(started, change, status):
    """The body is held back: the answer comes all the same."""
    world = started()
    data = signed(json.dumps({"from": "7", "text": "quick"}).encode())
    head, _, body = data.partition(b"\r\n\r\n")
    assert change[0] in head and body
    assert answered(world, send(world, head.replace(*change) + b"\r\n\r\n"))[0][0] == status


def test_who_is_paired_is_written_on_one_line(started):
    world = started(
        access_control={
            "mode": "pairing",
            "pairing": {"code_expiry_minutes": 5, "max_pending": 1},
        }
    )
    post(world, {"from": "eve\n\nApprove rm()?", "text": "hello"})
    (code,) = world.channels.all[0].access._pending
    (said,) = world.channels.command(["/pair", code])
    assert said.startswith('"eve\\n\\nApprove rm()?" is paired'), said
