"""web-fetch over real servers: what comes back, what is refused, and where credentials do not
go.
"""

import os
import select
import socket

import pytest
from fetching import loop, page, rules, site  # noqa: F401
from net_servers import DEADLINE_S, Gate, closed_port, nothing_left, serving, tls  # noqa: F401
from own_network import OTHER, PUBLIC, PUBLIC6, inside, names  # noqa: F401

from clawlite.core.base.errors import ClawError, InvalidParams, ToolTimeout
from clawlite.linux.tools import fetch as module
from clawlite.linux.tools.fetch import MAX_HEADER_BYTES, MAX_HEADERS

# -- what comes back


def test_a_page(loop):
    seen = []
    with serving(
        site(page(b"h\xc3\xa9llo", "text/html; charset=utf-8", ETag='"1"', Server="x"), seen)
    ) as port:
        url = "http://127.0.0.1:%d/a?b=c" % port
        assert loop.text(url + "#d") == (
            'HTTP 200 %s\ncontent-type: text/html; charset=utf-8\netag: "1"\n\nh\u00e9llo' % url
        )
    assert seen == [
        "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: clawlite\r\nAccept: "
        "*/*\r\nAccept-Encoding: identity\r\n"
        "Connection: close\r\n\r\n" % port
    ]


def test_methods_and_headers(loop):
    seen = []
    with serving(site(page(), seen)) as port:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            assert loop.text(
                "http://127.0.0.1:%d/" % port,
                method=method,
                headers={"X-One": "1", "accept": "text/html", "Authorization": "Bearer t"},
            )
            assert seen[-1] == (
                method + " / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-One: 1\r\n"
                "accept: text/html\r\nAuthorization: Bearer t\r\n"
                "User-Agent: clawlite\r\nAccept-Encoding: identity\r\nConnection: "
                "close\r\n\r\n" % port
            )
        for method in ("get", "CONNECT", "TRACE", "GET /x HTTP/1.1\r\nX:", ""):
            loop.error("http://127.0.0.1:%d/" % port, method=method, kind=InvalidParams)
    assert len(seen) == 6


def test_head_has_no_body(loop):
    with serving(
        site(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nLast-Modified: today\r\n\r\n")
    ) as port:
        assert (
            loop.text("http://127.0.0.1:%d/" % port, method="HEAD").split("\n", 1)[1]
            == "last-modified: today\ncontent-length: 99\n\n"
        )


def test_a_status_is_a_result(loop):
    with serving(site(page(b"gone", status=410))) as port:
        assert loop.text("http://127.0.0.1:%d/" % port).startswith("HTTP 410 ")


@pytest.mark.parametrize(
    "name, value",
    [
        ("Host", "evil"),
        ("content-length", "3"),
        ("Content_Length", "3"),
        ("TRANSFER-ENCODING", "chunked"),
        ("Connection", "keep-alive"),
        ("Proxy-Authorization", "x"),
        ("Accept-Encoding", "gzip"),
        ("Upgrade", "h2c"),
        ("Expect", "100-continue"),
        ("TE", "x"),
        ("X: y", "z"),
        ("X\r\nY", "z"),
        ("", "z"),
        ("X Y", "z"),
        ("X\u00e9", "z"),
        ("X(", "z"),
        ("X", "a\r\nHost: evil"),
        ("X", "a\nb"),
        ("X", "a\0b"),
        ("X", "\u00e9"),
        ("X", " a"),
        ("X", "a\t"),
        ("X", "a\x7f"),
        ("X", 1),
        ("X", None),
        ("X", "\u560d\u560aHost: evil"),
    ],
)
def test_headers_that_are_refused(loop, name, value):
    message = loop.error("http://127.0.0.1:1/", headers={name: value}, kind=InvalidParams)
    assert "evil" not in message


def test_headers_bounds(loop):
    loop.error("http://127.0.0.1:1/", headers={"x-a": "1", "X-A": "2"}, kind=InvalidParams)
    many = {"x%d" % i: "" for i in range(MAX_HEADERS)}
    long = {"x": "a" * (MAX_HEADER_BYTES - 1)}
    with serving(site(page())) as port:
        url = "http://127.0.0.1:%d/" % port
        for good in (many, long):
            assert loop.text(url, headers=good)
        for bad in (dict(many, y=""), {"x": "a" * MAX_HEADER_BYTES}):
            loop.error(url, headers=bad, kind=InvalidParams)


def test_body_is_cut_at_the_limit(loop, monkeypatch):
    monkeypatch.setattr(module, "MAX_BODY", 100000)
    for size, cut in ((99999, False), (100000, False), (100001, True), (3000000, True)):
        with serving(site(page(b"x" * size))) as port:
            start, _, body = loop.text("http://127.0.0.1:%d/" % port).partition("\n\n")
        assert len(body) == min(size, 100000)
        assert ("truncated: the first 100000 bytes of %d" % size in start) == cut and (
            "truncated" in start
        ) == cut
    with serving(site(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 100001)) as port:
        assert "truncated: the first 100000 bytes\n\n" in loop.text("http://127.0.0.1:%d/" % port)
    with serving(site(page("\u20ac".encode() * 10))) as port:  # never half a character
        assert loop.text("http://127.0.0.1:%d/" % port, rules(most=7)).endswith(
            "truncated: the first 7 bytes of 30\n\n\u20ac\u20ac"
        )


def test_charsets(loop):
    for body, kind, text in (
        (b"caf\xe9", "text/html; charset=ISO-8859-1", "caf\u00e9"),
        (b"caf\xe9", "text/html", "caf\u00e9"),
        (b"\xef\xbb\xbfx", "application/json", "x"),
        (b"a\xffb", "text/plain; charset=utf-8", "a\ufffdb"),
        ("\u0434".encode(), "text/html; charset=utf8mb4", "\u0434"),
        (b"<meta charset=koi8-r>\xc4", "text/html; charset=none", "<meta charset=koi8-r>\u0434"),
        (b"\xa4", "text/plain; charset=iso8859-15", "\u20ac"),
        ("\u20ac".encode("utf-16"), 'text/plain; charset="UTF-16"', "\u20ac"),
        (b"<svg/>", "image/svg+xml", "<svg/>"),
        ("\u20ac".encode(), "", "\u20ac"),
        (b"", "application/octet-stream", ""),
        (b"\x82\xa0", "text/html;charset=Shift_JIS", "\u3042"),
    ):
        with serving(site(page(body, kind))) as port:
            assert loop.text("http://127.0.0.1:%d/" % port).partition("\n\n")[2] == text


@pytest.mark.parametrize(
    "body, kind, text",
    [
        ('<meta charset="Shift_JIS"><p>\u6674\u308c', "text/html", "shift_jis"),
        ("<META CharSet=windows-1251><p>\u0434", "text/html", "cp1251"),
        (
            "<meta content='text/html; charset=\"koi8-r\"' http-equiv=content-type>\u0434",
            "text/html",
            "koi8-r",
        ),
        ("<meta\nname=x><meta charset = 'gb2312' /><p>\u6674", "text/html", "gb18030"),
        ("<meta charset=iso-2022-jp><p>\u6674", "", "iso-2022-jp"),
        ('<?xml version="1.0" encoding="ISO-8859-5"?><a>\u0434</a>', "text/xml", "iso8859-5"),
        ("<?xml version='1.0' encoding='koi8-r'?><a>\u0434</a>", "application/rss+xml", "koi8-r"),
        ("<?xml version='1.0' encoding='UTF-16'?><a>\u0434</a>", "application/xml", "utf-16-le"),
        ("\ufeff<p>\u0434", "text/html; charset=windows-1251", "utf-8"),
        ("\ufeff{}\u0434", "text/plain", "utf-16-le"),
        ("\ufeff{}\u0434", "text/plain", "utf-16-be"),
        # where nothing of it counts
        ("<meta charset=koi8-r><p>\u0434", "text/html; charset=utf-8", "utf-8"),
        ("<!-- <meta charset=koi8-r> --><p>\u0434", "text/html", "utf-8"),
        ("<meta name=d content='charset=koi8-r'><p>\u0434", "text/html", "utf-8"),
        ("<meta charset=utf-16><p>\u0434", "text/html", "utf-8"),
        ("<meta charset=klingon><p>\u0434", "text/html", "utf-8"),
        ("<meta charset=rot13><p>\u0434", "text/html", "utf-8"),
        ("<meta charset=koi8-r>\u0434", "text/plain", "utf-8"),
        ("<meta charset=koi8-r>\u0434", "application/json", "utf-8"),
    ],
)
def test_what_a_page_says_of_its_own_charset(loop, body, kind, text):
    with serving(site(page(body.encode(text), kind))) as port:
        found = loop.text("http://127.0.0.1:%d/" % port).partition("\n\n")[2]
    assert found == body.removeprefix("\ufeff")


def test_a_body_is_sent(loop):
    seen = []
    with serving(site(page(b"told"), seen)) as port:
        url = "http://127.0.0.1:%d/hook" % port
        for method, headers, body, kind in (
            ("POST", {}, "Dinner is ready \u2615", "text/plain; charset=utf-8"),
            ("POST", {}, '{"content": "x"}', "application/json"),
            ("PUT", {}, " [1]", "application/json"),
            ("PATCH", {}, "{no json", "text/plain; charset=utf-8"),
            ("POST", {"content-type": "text/markdown"}, "{}", "text/markdown"),
            ("DELETE", {}, "", "text/plain; charset=utf-8"),
        ):
            assert loop.text(url, method=method, headers=headers, body=body).endswith("told")
            lines = seen[-1].split("\r\n")
            assert lines[0] == method + " /hook HTTP/1.1"
            assert "content-length: %d" % len(body.encode()) in [one.lower() for one in lines]
            assert [one for one in lines if one.lower() == "content-type: " + kind], lines
        sent = len(seen)
        for method in ("GET", "HEAD", "OPTIONS"):
            assert "body: expected a text" in loop.error(
                url, method=method, body="x", kind=InvalidParams
            )
        loop.error(url, method="POST", body="x" * (module.MAX_SENT + 1), kind=InvalidParams)
        assert loop.text(url, method="POST", body="x" * module.MAX_SENT)
    assert len(seen) == sent + 1


@pytest.mark.parametrize("status, goes", [(301, False), (303, False), (307, True), (308, True)])
def test_a_body_after_a_redirect(loop, status, goes):
    seen = []
    with serving(site({"/": moved(status, "/b"), "/b": page(b"")}, seen)) as port:
        loop.text("http://127.0.0.1:%d/" % port, method="POST", body="word")
    first, second = (request.lower() for request in seen)
    assert "content-length: 4\r\n" in first and "content-type: text/plain" in first
    assert ("content-length: 4\r\n" in second, "content-type:" in second) == (goes, goes)


def test_what_is_no_text(loop):
    for body, kind, words in (
        (b"\x89PNG\r\n\x1a\n", "image/png", "the answer is no text (image/png, 8 bytes)"),
        (b"a\0b", "text/plain", "(text/plain, 3 bytes)"),
        (b"\xff\xfe\xfd", "application/pdf", "(application/pdf, 3 bytes)"),
        (b"\xff", "", "(of no stated type, 1 bytes)"),
        (b"\xe9", "text/plain; charset=idna", "in 'idna', which is not supported"),
        (b"\xe9", "text/plain; charset=gbx", "not supported"),
    ):
        with serving(site(page(body, kind))) as port:
            assert words in loop.error("http://127.0.0.1:%d/" % port)
    with serving(site(page(b"\x1f\x8b", "text/html", Content_Encoding="gzip"))) as port:
        assert "encoded (gzip), which was not asked for" in loop.error(
            "http://127.0.0.1:%d/" % port
        )


def test_what_fails_is_a_failed_tool(loop):
    assert loop.error("http://127.0.0.1:%d/" % closed_port()) == "127.0.0.1: connection refused"
    with serving(site(b"SSH-2.0-x\r\n")) as port:
        assert "expected an answer of HTTP/1.1" in loop.error("http://127.0.0.1:%d/" % port)
    with serving(site(page(b"hello")[:-1])) as port:
        assert "closed in the middle" in loop.error("http://127.0.0.1:%d/" % port)


def test_time_is_up(loop):
    gate = Gate(b"HTTP/1.1 200 OK\r\n\r\nx")
    with serving(gate) as port:
        assert (
            loop.it.start(1, rules(), "web-fetch", {"url": "http://127.0.0.1:%d/" % port}, 5000)
            is None
        )
        assert gate.reached.wait(DEADLINE_S) and loop.it.deadline() == 5000
        loop.ms = 4999
        assert loop.it.poll() == []
        loop.ms = 5000
        ((number, (done, error)),) = loop.it.poll()
        assert number == 1 and not done and type(error) is ToolTimeout and error.code == -32014
        assert gate.gone.wait(DEADLINE_S) and loop.it.deadline() is None and loop.it.poll() == []


def test_cancel_hangs_up(loop):
    gate = Gate()
    with serving(gate) as port:
        loop.it.start(1, rules(), "web-fetch", {"url": "http://127.0.0.1:%d/" % port})
        assert gate.reached.wait(DEADLINE_S)
        loop.it.cancel(1)
        loop.it.cancel(1)
        assert gate.gone.wait(DEADLINE_S) and loop.it.poll() == []


def test_many_at_once(loop):
    with serving(site(page())) as port:
        for number in range(8):
            assert (
                loop.it.start(
                    number, rules(), "web-fetch", {"url": "http://127.0.0.1:%d/%d" % (port, number)}
                )
                is None
            )
        done, error = loop.it.start(8, rules(), "web-fetch", {"url": "http://127.0.0.1:%d/" % port})
        assert (
            not done
            and "8 requests are under way" in error.message
            and error.code == -32600
            and error.data["ran"] is False
        )
        ended = {}
        while len(ended) < 8:
            assert select.select([loop.reader], [], [], DEADLINE_S)[0]
            os.read(loop.reader, 512)
            ended.update(loop.it.poll())
    assert all(done and "/%d\n" % number in text for number, (done, text) in ended.items())


# -- rules


def test_private_addresses(loop):
    with serving(site(page())) as port:
        for host in ("127.0.0.1", "127.0.0.2", "localhost", "[::1]", "0.0.0.0", "10.0.0.1"):
            assert "an address that is not public" in loop.denied(
                "http://%s:%d/" % (host, port), rules(block_private=True)
            )
        assert (
            loop.denied("http://127.0.0.1:%d/" % port, rules(0))
            == "network refused: the sandbox allows no network"
        )
        assert "allowed_hosts" in loop.denied("http://127.0.0.1:%d/" % port, rules(1, ["*.0.0.1"]))
        assert loop.text("http://127.0.0.1:%d/" % port, rules(1, ["127.0.0.1"]))


def test_proxies_are_refused_by_name(loop):
    loop.it._connections._environ = {
        "http_proxy": "http://127.0.0.1:1/",
        "no_proxy": "named.example",
    }
    assert "the environment names a proxy for api.example.com" in loop.error(
        "http://api.example.com/"
    )


def test_every_address_of_a_name(loop, names):
    def body():
        names.of = {
            "www.example.com": [[PUBLIC]],
            "six.example.com": [[PUBLIC6]],
            "db.example.com": [["10.20.30.40"]],
            "both.example.com": [[PUBLIC, "10.20.30.40"]],
            "mapped.example.com": [["::ffff:10.20.30.40"]],
        }
        taken = []
        with (
            serving(site(page()), place=(PUBLIC, 80)),
            serving(site(page(), taken), place=("10.20.30.40", 80)),
            serving(site(page()), socket.AF_INET6, (PUBLIC6, 80)),
        ):
            protected = rules(block_private=True)
            assert loop.text("http://www.example.com/", protected) and loop.text(
                "http://six.example.com/", protected
            )
            assert loop.text("http://%s/" % PUBLIC, protected) and loop.text(
                "http://[%s]/" % PUBLIC6, protected
            )
            for host in ("db", "both", "mapped"):
                message = loop.denied("http://%s.example.com/" % host, protected)
                assert (
                    "%s.example.com is, or leads to, an address that is not public" % host
                    in message
                )
            assert taken == []
            assert loop.text("http://db.example.com/", rules()) and len(taken) == 1

    inside(body)


def test_rebinding_finds_nothing_to_rebind(loop, names):
    def body():
        names.of = {"re.example.com": [[PUBLIC], ["10.20.30.40"]]}
        taken = []
        with (
            serving(site(page(status=302, Location="/next")), place=(PUBLIC, 80)),
            serving(site(page(), taken), place=("10.20.30.40", 80)),
        ):
            # One look-up, and its address is connected to; the redirect asks anew, and is refused
            # by what is said then.
            assert loop.denied("http://re.example.com/", rules(block_private=True)).endswith(
                "(a redirect led there)"
            )
        assert names.asked == ["re.example.com"] * 2 and taken == []

    inside(body)


def test_names_that_are_not_allowed_are_not_looked_up(loop, names):
    loop.denied("http://secret-data.evil.example/", rules(1, ["*.example.com"]))
    loop.denied("http://x.example.com@evil.example/", rules(1, ["*.example.com"]))
    assert names.asked == []


# -- redirects


def moved(status, to):
    return page(b"", status=status, Location=to)


def test_redirects(loop):
    seen = []
    pages = {
        "/a/b?x=1": moved(301, "c?d=1"),
        "/a/c?d=1": moved(302, "../e"),
        "/e": moved(303, "?q=1"),
        "/e?q=1": moved(307, "/f#frag"),
        "/f": moved(308, "/end"),
        "/end": page(b"there"),
    }
    with serving(site(pages, seen)) as port:
        assert (
            loop.text("http://127.0.0.1:%d/a/b?x=1" % port)
            == "HTTP 200 http://127.0.0.1:%d/end\ncontent-type: text/plain\n\nthere" % port
        )
        assert len(seen) == 6
        pages["/end"] = moved(302, "/one-more")
        assert "more than 5 redirects" in loop.error("http://127.0.0.1:%d/a/b?x=1" % port)
        assert len(seen) == 12


@pytest.mark.parametrize(
    "status, method, after",
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (301, "PUT", "PUT"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (302, "HEAD", "HEAD"),
        (303, "DELETE", "GET"),
    ],
)
def test_method_after_a_redirect(loop, status, method, after):
    seen = []
    with serving(site({"/": moved(status, "/b"), "/b": page(b"")}, seen)) as port:
        loop.text("http://127.0.0.1:%d/" % port, method=method)
    assert [request.split(" ")[0] for request in seen] == [method, after]


@pytest.mark.parametrize(
    "location",
    [
        "http://10.0.0.1/",
        "//10.0.0.1/",
        "http://[::1]/",
        "http://127.1/",
        "http://localhost/",
        "file:///etc/passwd",
        "http://a@b/",
        "\\\\evil",
        "/\\evil",
        "javascript:1",
        "HTTP://2130706433/",
        "http:evil",
        "http://[::ffff:10.0.0.1]/",
    ],
)
def test_redirects_are_decided_from_the_start(loop, names, location):
    def body():
        names.of = {"www.example.com": [[PUBLIC]], "localhost": [["127.0.0.1"]]}
        with serving(site(moved(302, location)), place=(PUBLIC, 80)):
            assert loop.denied("http://www.example.com/", rules(block_private=True)).endswith(
                "(a redirect led there)"
            )

    inside(body)


def test_a_redirect_out_of_the_list(loop, names):
    def body():
        names.of = {"a.example.com": [[PUBLIC]], "evil.example": [[OTHER]]}
        taken = []
        with (
            serving(site(moved(302, "http://evil.example/")), place=(PUBLIC, 80)),
            serving(site(page(), taken), place=(OTHER, 80)),
        ):
            loop.denied("http://a.example.com/", rules(1, ["*.example.com"], True))
        assert taken == [] and names.asked == ["a.example.com"]

    inside(body)


SECRETS = {"Authorization": "Bearer t", "Cookie": "a=b", "X-Api-Key": "k", "Accept-Language": "fr"}


def test_credentials_stay_with_their_server(loop):
    for other in ("127.0.0.1", "127.0.0.2"):  # another port, another host
        seen, far = [], []
        with (
            serving(site(page(), far), place=(other, 0)) as away,
            serving(site({"/": moved(302, "http://%s:%d/" % (other, away))}, seen)) as port,
        ):
            assert loop.text("http://127.0.0.1:%d/" % port, headers=SECRETS)
        assert all(name in seen[0] for name in SECRETS)
        assert "Accept-Language: fr" in far[0] and not any(
            name in far[0] for name in ("Authorization", "Cookie", "X-Api-Key")
        )
    seen = []
    with serving(site({"/": moved(302, "/b"), "/b": page()}, seen)) as port:
        loop.text("http://127.0.0.1:%d/" % port, headers=SECRETS)
    assert all(name in seen[1] for name in SECRETS)


def test_from_https_to_http(loop, tls):
    seen = []
    with (
        serving(site(page(b"plain"), seen)) as plain,
        tls.serving(site(moved(302, "http://127.0.0.1:%d/" % plain)), "localhost") as port,
    ):
        assert loop.text("https://localhost:%d/" % port).endswith("plain")
        message = loop.denied("https://localhost:%d/" % port, headers={"X-Key": "k"})
        assert "from https to http" in message and len(seen) == 1
        message = loop.denied(
            "https://localhost:%d/" % port,
            injections=[("localhost", "Authorization", lambda: "Bearer s")],
        )
        assert "from https to http" in message and len(seen) == 1


def test_a_body_does_not_go_from_https_to_http(loop, tls):
    seen = []
    with (
        serving(site(page(b"plain"), seen)) as plain,
        tls.serving(site(moved(307, "http://127.0.0.1:%d/" % plain)), "localhost") as port,
    ):
        message = loop.denied("https://localhost:%d/" % port, method="POST", body="word")
        assert "the request has a body" in message and not seen


# -- credentials of the runtime


def test_injections_only_over_https_or_loopback(loop, tls, names):
    def body():
        names.of = {"api.example.com": [[PUBLIC]], "other.example.com": [[PUBLIC]]}
        keys = [("api.example.com", "X-Key", lambda: "s3cret")]
        seen = []
        with (
            tls.serving(
                site(page(), seen), "api.example.com", "other.example.com", place=(PUBLIC, 443)
            ),
            serving(site(page(), seen), place=(PUBLIC, 80)),
        ):
            for url, told in (
                ("https://api.example.com/", True),
                ("http://api.example.com/", False),
                ("https://other.example.com/", False),
            ):
                loop.text(url, rules(block_private=True), keys, headers={"x-key": "guess"})
                assert ("X-Key: s3cret" in seen[-1]) == told and (
                    "x-key: guess" in seen[-1]
                ) != told
        assert tls.names == ["api.example.com", "other.example.com"]
        with serving(site(page(), seen)) as port:
            loop.text(
                "http://127.0.0.1:%d/" % port, injections=[("127.0.0.1", "X-Key", lambda: "s3cret")]
            )
        assert "X-Key: s3cret" in seen[-1]

    inside(body)


def test_injections_do_not_follow_redirects(loop, names):
    """Neither to another host, nor by way of it home again, nor to a host that has one of its
    own.
    """
    seen, far = [], []
    keys = [("127.0.0.1", "X-Key", lambda: "s3cret"), ("127.0.0.2", "X-Key", lambda: "s4cret")]
    pages = {"/home": page()}
    with serving(site(pages, seen)) as port:
        away = {"/": moved(302, "http://127.0.0.1:%d/home" % port)}
        with serving(site(away, far), place=("127.0.0.2", 0)) as other:
            pages["/"] = moved(302, "http://127.0.0.2:%d/" % other)
            loop.text("http://127.0.0.1:%d/" % port, injections=keys)
    assert "s3cret" in seen[0] and "X-Key" not in far[0] and "X-Key" not in seen[1]


def test_a_secret_that_is_missing(loop):
    def missing():
        raise ClawError("the secret KEY is nowhere")

    assert (
        loop.error("http://127.0.0.1:1/", injections=[("127.0.0.1", "X-Key", missing)])
        == "the secret KEY is nowhere"
    )
