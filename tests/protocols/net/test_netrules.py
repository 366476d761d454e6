"""protocols/netrules: one reading of a URL or none, the list of hosts without look-alikes, and what
is no public address.
"""

from clawlite.core.base.errors import SandboxDenied
from clawlite.protocols.net.netaddress import address_of, is_loopback, is_public, origin
from clawlite.protocols.net.netrules import (
    MAX_HOST,
    MAX_URL,
    authority,
    decide_addresses,
    decide_host,
    is_listed,
    parse_authority,
    parse_host,
    parse_url,
)


class Rules:
    name = "net"

    def __init__(self, network: int, hosts: list = (), block_private: bool = True):
        self.network, self.hosts, self.block_private = network, list(hosts), block_private


def refused(function, *arguments) -> SandboxDenied:
    try:
        found = function(*arguments)
    except SandboxDenied as e:
        assert e.code == -32010 and e.message and "\n" not in e.message
        return e
    raise AssertionError("%r was taken as %r" % (arguments, found))


# -- URLs


def test_what_is_read():
    for text, wanted in (
        ("http://example.com", ("http", "example.com", 80, "/")),
        ("HTTPS://Example.COM/A?b=C#d", ("https", "example.com", 443, "/A?b=C")),
        ("http://example.com?x=1", ("http", "example.com", 80, "/?x=1")),
        ("http://example.com#@evil.example", ("http", "example.com", 80, "/")),
        ("http://example.com/#@evil.example", ("http", "example.com", 80, "/")),
        (
            "http://example.com/@evil?u=http://10.0.0.1/",
            ("http", "example.com", 80, "/@evil?u=http://10.0.0.1/"),
        ),
        ("http://example.com?@evil.example/", ("http", "example.com", 80, "/?@evil.example/")),
        (
            "http://a-b.c_d.xn--bcher-kva.example:8443/x",
            ("http", "a-b.c_d.xn--bcher-kva.example", 8443, "/x"),
        ),
        ("http://localhost:1/", ("http", "localhost", 1, "/")),
        ("http://h:65535/", ("http", "h", 65535, "/")),
        ("http://172.33.0.1/", ("http", "172.33.0.1", 80, "/")),
        ("http://0.0.0.0/", ("http", "0.0.0.0", 80, "/")),
        ("http://[2606:2800::A]:81/x", ("http", "2606:2800::a", 81, "/x")),
        ("http://[::1]/", ("http", "::1", 80, "/")),
        ("http://1.example/", ("http", "1.example", 80, "/")),
        ("http://0x7f.example/", ("http", "0x7f.example", 80, "/")),
        ("http://example.com/a%2e%0Ab?%", ("http", "example.com", 80, "/a%2e%0Ab?%")),
        (
            "http://example.com/\u00fc\u20ac?\U0001f331",
            ("http", "example.com", 80, "/%C3%BC%E2%82%AC?%F0%9F%8C%B1"),
        ),
    ):
        assert parse_url(text) == wanted, text


def test_what_is_refused():
    for text in (
        "",
        "example.com",
        "//example.com/",
        "http:",
        "http:/",
        "http://",
        "http:///",
        "http:///example.com/",
        "http:example.com",
        "http:/example.com/",
        "http:\\\\example.com/",
        "http:/\\/example.com/",
        "http://example.com\\@evil.example/",
        "http://example.com/\\evil",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "javascript:alert(1)",
        "data:text/plain,x",
        "ws://example.com/",
        "http+unix://example.com/",
        "https ://example.com/",
        " http://example.com/",
        "http://example.com/ ",
        "http://example.com/a b",
        "http://exam ple.com/",
        "http://example.com\t/",
        "http://exam\nple.com/",
        "http://example.com/\r\nX: y",
        "http://example.com/\0",
        "http://example.com/\x7f",
        "\x00http://example.com/",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://example.com:80@evil.example/",
        "http://@example.com/",
        "http://example.com@/",
        "http://127.0.0.1%2f@example.com/",
        "http://%31%32%37.0.0.1/",
        "http://example.com%00.evil/",
        "http://example.com%23.evil/",
        "http://ex%61mple.com/",
        "http://example.com./",
        "http://example.com../",
        "http://.example.com/",
        "http://example..com/",
        "http://./",
        "http://../",
        "http://-example.com/",
        "http://example-.com/",
        "http://example.com-/",
        "http://*.example.com/",
        "http://exa!mple.com/",
        "http://\u0435xample.com/",
        "http://example\u3002com/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://\u2460.example/",
        "http://\u212aelvin.example/",
        "http://exam\u00adple.com/",
        "http://\u0130.example/",
        "http://caf\u00e9.example/",
    ):
        refused(parse_url, text)
    for text in (None, 1, b"http://example.com/", ["http://example.com/"]):
        refused(parse_url, text)


def test_other_spellings_of_addresses():
    for host in (
        "0x7f.1",
        "0x7F000002",
        "0177.0.0.1",
        "2130706433",
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "1.2.3.4.5",
        "256.0.0.1",
        "0x7f.0.0.1",
        "127.0.0.0x1",
        "0x",
        "0",
        "00.0.0.0",
        "1.2.3.",
        "1.2..4",
        "1.2.3.+4",
        "1.2.3.1000",
        "example.1",
        "017700000001",
        "4294967296",
        "127.0.0.1.0x0",
    ):
        refused(parse_url, "http://%s/" % host)
    for host in (
        "[::ffff:192.168.1.1]",
        "[::ffff:c0a8:101]",
        "[0:0:0:0:0:FFFF:1:1]",
        "[::1.2.3.4]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[::1",
        "::1",
        "::1]",
        "[]",
        "[:]",
        "[:::]",
        "[1::2::3]",
        "[1:2:3:4:5:6:7]",
        "[1:2:3:4:5:6:7:8:9]",
        "[1:2:3:4:5:6:7:8::]",
        "[12345::]",
        "[g::]",
        "[+1::]",
        "[1_1::]",
        "[1::]x",
        "[1::]]",
        "[[1::]]",
        "[v1.a]",
        "x[::1]",
        "[ ::1]",
        "[::1]80",
    ):
        refused(parse_url, "http://%s/" % host)
    assert address_of("1:2:3:4:5:6:7::") == bytes((0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0))
    assert address_of("::") == bytes(16) and address_of("::102:304") == bytes(12) + b"\1\2\3\4"
    assert address_of("255.0.10.1") == b"\xff\0\x0a\1" and address_of("example.com") is None


def test_ports():
    for port in (
        "0",
        "65536",
        "99999",
        "100000",
        "+80",
        "-80",
        "080",
        "00080",
        "8 0",
        "80a",
        "0x50",
        "80:80",
        "",
        "\u0661",
    ):
        refused(parse_url, "http://example.com:%s/" % port)
        refused(parse_url, "http://[2606::1]:%s/" % port)
    refused(parse_authority, "example.com", None)
    assert parse_authority("example.com:22", None) == ("example.com", 22)
    assert parse_authority("[::1]:22", None) == ("::1", 22)


def test_bounds_of_lengths():
    label = "a" * 63
    host = ".".join([label, label, label, label])[:MAX_HOST]
    assert parse_host(host) == host
    refused(parse_host, host + "a")
    refused(parse_host, label + "a.example")
    start = "http://example.com/"
    url = start + "a" * (MAX_URL - len(start))
    assert parse_url(url[:-1])[3] == "/" + "a" * (MAX_URL - len(start) - 1)
    assert len(parse_url(url)[3]) == MAX_URL - len(start) + 1
    refused(parse_url, url + "a")


def test_header_host():
    assert (
        authority("http", "example.com", 80) == "example.com"
        and authority("https", "example.com", 80) == "example.com:80"
    )
    assert (
        authority("https", "2606::1", 443) == "[2606::1]"
        and authority("http", "2606::1", 443) == "[2606::1]:443"
    )


# -- the list of hosts


def test_modes():
    assert not is_listed(Rules(0, ["example.com"]), "example.com")
    assert is_listed(Rules(2), "example.com") and is_listed(Rules(2), "10.0.0.1")
    assert not is_listed(Rules(1), "example.com")
    assert is_listed(Rules(1, ["example.com"]), "example.com")


def test_look_alikes():
    rules = Rules(
        1, ["api.example.com", "*.googleapis.com", "93.184.216.34", "[2606:2800::1]", "*.0.0.1"]
    )
    for host in (
        "api.example.com",
        "maps.googleapis.com",
        "a.b.googleapis.com",
        "93.184.216.34",
        "2606:2800::1",
        "2606:2800:0::0:1",
    ):
        assert is_listed(rules, host), host
    for host in (
        "example.com",
        "x.api.example.com",
        "api.example.com.evil",
        "evil-api.example.com",
        "googleapis.com",
        "my-googleapis.com",
        "googleapis.com.evil.example",
        "maps.googleapis.co",
        "xn--googleapis.com",
        "93.184.216.35",
        "193.184.216.34",
        "127.0.0.1",
        "2606:2800::2",
        "api.example.co",
        "pi.example.com",
    ):
        assert not is_listed(rules, host), host


def test_upper_case_of_a_url_is_the_same_host():
    decide_host(Rules(1, ["*.example.com"]), parse_url("http://API.Example.COM/")[1])


# -- addresses


def pack(text: str) -> bytes:
    address = address_of(text)
    assert address is not None, text
    return address


def test_addresses_that_are_not_public():
    for text in (
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.255.255",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::",
        "::1",
        "::7f00:1",
        "::808:808",
        "::ffff:0a00:1",
        "::ffff:7f00:1",
        "64:ff9b::0a00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "2002:0a00:1::1",
        "2002:7f00:1::",
        "2001:0:0a00:1::f7f7:f7f7",
        "2001:0:808:808::f5ff:fffe",
        "2001:db8::1",
        "2001:2::1",
        "2001:10::1",
        "2001:1ff::1",
        "3fff::1",
        "100::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
        "4000::1",
        "1fff::1",
        "5f00::1",
        "fe00::1",
    ):
        assert not is_public(pack(text)), text


def test_addresses_that_are():
    for text in (
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "172.33.0.1",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "168.63.129.15",
        "168.63.129.17",
        "93.184.216.34",
        "2606:2800::1",
        "2000::1",
        "3ffe::1",
        "2001:200::1",
        "2001:4860:4860::8888",
        "::ffff:808:808",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "2001:0:808:808::f7f7:f7f7",
    ):
        assert is_public(pack(text)), text
    assert (
        not is_public(b"")
        and not is_public(bytes((8, 8, 8)))
        and not is_public(bytes((8,)) * 15)
        and not is_public(bytes((0x26,)) * 17)
    )


def test_loopback():
    for text in ("127.0.0.1", "127.255.0.1", "::1"):
        assert is_loopback(pack(text))
    for text in ("128.0.0.1", "::", "::2", "10.0.0.1", "::ffff:7f00:1"):
        assert not is_loopback(pack(text))
    assert not is_loopback(None)


# -- decisions


def test_every_address_of_a_name_is_judged():
    good, bad = pack("93.184.216.34"), pack("10.20.30.40")
    for addresses in (
        [bad],
        [good, bad],
        [bad, good],
        [good, good, good, bad],
        [good, pack("::1")],
    ):
        e = refused(decide_addresses, Rules(2), "db.example.net", addresses)
        assert (
            "db.example.net" in e.message
            and "10.20" not in e.message
            and e.data["reason"] == "private address"
        )
    assert decide_addresses(Rules(2), "www.example.com", [good, good]) == [good, good]
    assert decide_addresses(Rules(2, [], False), "db.example.net", [bad]) == [bad]


def test_literal_addresses_are_judged_at_once():
    refused(decide_host, Rules(2), "127.0.0.2")
    refused(decide_host, Rules(2), "::1")
    # a list alone does not switch the protection off
    refused(decide_host, Rules(1, ["10.0.0.1"]), "10.0.0.1")
    decide_host(Rules(1, ["10.0.0.1"], False), "10.0.0.1")
    decide_host(Rules(2), "93.184.216.34")
    # whoever looks such a name up
    for host in ("localhost", "a.localhost", "nas.local", "metadata.google.internal"):
        assert refused(decide_host, Rules(2), host).data["reason"] == "private address"
        decide_host(Rules(2, [], False), host)
    decide_host(Rules(2), "localhost.example.com")  # a name: its addresses decide


def test_refusals_say_what_to_do():
    e = refused(decide_host, Rules(0), "example.com")
    assert e.to_json()["data"] == {
        "sandbox": "net",
        "reason": "network",
        "host": "example.com",
        "hint": "capabilities.network.mode of the sandbox can allow it",
    }
    e = refused(decide_host, Rules(1, ["a.example"]), "b.example")
    assert (
        e.message == "network refused: b.example is not among the sandbox's allowed_hosts"
        and e.data["reason"] == "host"
    )
    assert refused(parse_url, "http://a@b/").data == {"reason": "url"}


def test_whom_limits_count_an_address_as():
    """IPv6 by /64; an IPv4 address inside IPv6 as itself, in both spellings."""
    for host, counted in (
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::FFFF:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("2001:db8:1:2::1", "20010db800010002/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "20010db800010002/64"),
        ("2001:db8:1:3::1", "20010db800010003/64"),
        ("fe80::1%eth0", "fe80000000000000/64"),
        ("::1", "0000000000000000/64"),
        ("::ffff:192.0.2.256", "::ffff:192.0.2.256"),
        ("", ""),
    ):
        assert origin(host) == counted, host
