"""core/netrules and netaddress against ``ipaddress`` and ``urllib``: more addresses and hosts
than anybody writes down.
"""

import ipaddress
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clawlite.core.base.errors import SandboxDenied
from clawlite.protocols.net import netaddress, netrules

# What is stricter here than ``is_global``, whose lists change from one Python to the next.
STRICTER = [
    ipaddress.ip_network(text)
    for text in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "224.0.0.0/4",
        "168.63.129.16/32",
        "2001::/23",
        "3fff::/20",
    )
]
UNICAST = ipaddress.ip_network("2000::/3")


def oracle(address) -> bool:
    """Return whether *address*, and what is inside it, is global."""
    if address.version == 6:
        number = int(address)
        if address.ipv4_mapped is not None:
            return oracle(address.ipv4_mapped)
        if number >> 32 == 0x64FF9B << 64:
            return oracle(ipaddress.IPv4Address(number & 0xFFFFFFFF))
        if address.sixtofour is not None:
            return oracle(address.sixtofour)
        if address.teredo is not None:
            return all(map(oracle, address.teredo))
        if address not in UNICAST:
            return False
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in STRICTER)
    )


# Around the borders of all ranges, and anywhere.
BORDERS = sorted(
    {
        at + step
        for network in [
            ipaddress.ip_network((prefix + bytes(4 - len(prefix)), bits))
            for prefix, bits in netaddress._IPV4
        ]
        for at in (int(network.network_address), int(network.broadcast_address))
        for step in (-1, 0, 1)
        if 0 <= at + step < 1 << 32
    }
)
IPV4 = st.one_of(st.sampled_from(BORDERS), st.integers(0, (1 << 32) - 1)).map(ipaddress.IPv4Address)
PREFIXES = st.sampled_from(
    [
        (0, 0),
        (0xFFFF << 32, 96),
        (0x64FF9B << 96, 96),
        (0x64FF9B0001 << 80, 48),
        (0x2002 << 112, 16),
        (0x20010000 << 96, 32),
        (0x20010DB8 << 96, 32),
        (0x2001 << 112, 23),
        (0x3FFF << 112, 20),
        (0xFC << 120, 7),
        (0xFE80 << 112, 10),
        (0xFEC0 << 112, 10),
        (0xFF << 120, 8),
        (1 << 120, 64),
        (0x20 << 120, 3),
    ]
)


@st.composite
def inside(draw):
    """An IPv6 address of some prefix; where that holds IPv4 addresses, of ones near a border."""
    value, bits = draw(PREFIXES)
    number = value | draw(st.integers(0, (1 << (128 - bits)) - 1))
    if value == 0x2002 << 112:
        number = value | int(draw(IPV4)) << 80 | number & (1 << 80) - 1
    elif value in (0xFFFF << 32, 0x64FF9B << 96):
        number = value | int(draw(IPV4))
    elif value == 0x20010000 << 96:
        number = (
            value
            | int(draw(IPV4)) << 64
            | draw(st.integers(0, 0xFFFFFFFF)) << 32
            | int(draw(IPV4)) ^ 0xFFFFFFFF
        )
    return ipaddress.IPv6Address(number)


@pytest.mark.parametrize("examples", [400, pytest.param(2000, marks=pytest.mark.soak)])
def test_ipv4_as_ipaddress_says(examples):
    @settings(max_examples=examples, deadline=None)
    @given(IPV4)
    def holds(address):
        assert netaddress.is_public(address.packed) == oracle(address)
        assert netaddress.address_of(str(address)) == address.packed

    holds()


@pytest.mark.parametrize("examples", [600, pytest.param(3000, marks=pytest.mark.soak)])
def test_ipv6_as_ipaddress_says(examples):
    @settings(max_examples=examples, deadline=None)
    @given(st.one_of(inside(), st.integers(0, (1 << 128) - 1).map(ipaddress.IPv6Address)))
    @example(ipaddress.IPv6Address("2001:0:808:808::f7f7:f7f7"))
    def holds(address):
        assert netaddress.is_public(address.packed) == oracle(address)
        for text in (address.compressed, address.exploded):
            if "." not in text:  # newer Pythons write mapped ones with dots
                assert netaddress.address_of(text) == address.packed

    holds()


@pytest.mark.parametrize("examples", [400, pytest.param(2000, marks=pytest.mark.soak)])
def test_no_other_text_is_an_address(examples):
    @settings(max_examples=examples, deadline=None)
    @given(st.text("0123456789abcfx.:[]", max_size=24))
    @example("::")
    @example("1::2")
    @example("1.2.3.4")
    def holds(text):
        try:
            expected = ipaddress.ip_address(text).packed
        except ValueError:
            expected = None
        if "." in text and ":" in text:
            expected = None
        assert netaddress.address_of(text) == expected

    holds()


@pytest.mark.parametrize("examples", [600, pytest.param(3000, marks=pytest.mark.soak)])
def test_what_is_read_is_read_alike_elsewhere(examples):
    """Whatever comes through means the same host and port to another parser, and is one line of
    printable ASCII.
    """

    @settings(max_examples=examples, deadline=None)
    @given(
        st.text("htpsHTP:/\\@?#%.[]0x7f1 \t\n\u212a\u0435-_ae", max_size=40),
        st.sampled_from(["", "http://", "https://a", "http://a.e/", "http://1"]),
    )
    def holds(text, start):
        url = start + text
        try:
            scheme, host, port, target = netrules.parse_url(url)
        except SandboxDenied:
            return
        other = urlsplit(url)
        assert (other.scheme, other.hostname, other.port or netrules.PORTS[scheme]) == (
            scheme,
            host,
            port,
        )
        assert other.username is None and target.startswith("/")
        assert all("!" <= c <= "~" for c in scheme + host + target)
        again = "%s://%s%s" % (scheme, netrules.authority(scheme, host, port), target)
        assert netrules.parse_url(again) == (scheme, host, port, target)

    holds()
