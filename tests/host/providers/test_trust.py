"""[tls] and [gateway] of clawlite.toml: what is refused, what goes into the image, and what a
board must have for it.
"""

import ssl

import pytest
import trustme
from asking_boards import made

from clawlite.core.image import image as layout
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build
from clawlite.host.providers import trust

HTTPS = "https://model.example/v1"


def pem() -> bytes:
    return trustme.CA().cert_pem.bytes()


def der(data: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(data.decode())


def test_certificates_as_pem_several_and_der():
    one, other = pem(), pem()
    assert trust.certificates(one) == trust.certificates(der(one)) == [der(one)]
    assert trust.certificates(b"# mine\r\n" + one.replace(b"\n", b"\r\n") + b"text\n" + other) == [
        der(one),
        der(other),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        b"\x30\x82\x01\x00",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"hello",
        b"-----BEGIN X509 CRL-----\nMIIB\n-----END X509 CRL-----\n",
    ],
)
def test_what_is_no_certificate(data):
    with pytest.raises(ValueError, match="expected certificates"):
        trust.certificates(data)


def test_a_cut_certificate_and_a_private_key_are_refused():
    ca = trustme.CA()
    with pytest.raises(ValueError, match="expected certificates"):
        trust.certificates(der(ca.cert_pem.bytes())[:-1])
    with pytest.raises(ValueError, match="a private key has no place here"):
        trust.certificates(ca.cert_pem.bytes() + ca.private_key_pem.bytes())


def refused(folder, toml: str, endpoint: str = HTTPS, board=None, files=None) -> list:
    """Return the problems of the project with these settings."""
    try:
        made(folder, endpoint)
        for name, data in (files or {}).items():
            (folder / name).write_bytes(data)
        (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + toml)
        build.build(str(folder), board=board)
    except ManifestErrors as e:
        return str(e).replace(f"{folder}/", "").splitlines()
    return []


@pytest.mark.parametrize(
    "toml, said",
    [
        ('[gateway]\nwire = "tcp"\n', 'the field "address" is missing'),
        (
            '[gateway]\naddress = "h:1"\n',
            'clawlite.toml:3: gateway.address: only a gateway with wire = "tcp" has address',
        ),
        (
            "[gateway]\ntls = true\n",
            'clawlite.toml:3: gateway.tls: only a gateway with wire = "tcp" has tls',
        ),
        ('[gateway]\nwire = "tcp"\naddress = "h"\n', "gateway.address: expected HOST:PORT"),
        ('[gateway]\nwire = "tcp"\naddress = "h:0"\n', "gateway.address: expected HOST:PORT"),
        ('[gateway]\nwire = "tcp"\naddress = "h:65536"\n', "gateway.address: expected HOST:PORT"),
        ('[gateway]\nwire = "tcp"\naddress = "a b:1"\n', "gateway.address: expected HOST:PORT"),
        (
            '[gateway]\nwire = "tcp"\naddress = "h:1"\ntls = true\n',
            "gateway.tls: no certificate authority is named",
        ),
        (
            '[gateway]\nwire = "tcp"\naddress = "h:1"\n[tls]\nca = ["ca.pem"]\n',
            "tls: nothing that this agent connects to speaks TLS - remove it",
        ),
        ("[tls]\nca = []\n", "tls.ca: "),
        ('[tls]\nca = ["none.pem"]\n', 'tls.ca[0]: the file "none.pem" does not exist'),
        (
            '[tls]\nca = ["tools.py"]\n',
            'clawlite.toml:3: tls.ca[0]: "tools.py": expected certificates',
        ),
    ],
)
def test_settings_that_cannot_be(tmp_path, toml, said):
    found = refused(tmp_path, toml, files={"ca.pem": pem()})
    assert any(said in problem for problem in found), found


@pytest.mark.parametrize(
    "address, where",
    [("gate.local:1", ["gate.local", 1, False]), ("[fe80::1]:65535", ["fe80::1", 65535, False])],
)
def test_where_a_gateway_is(tmp_path, address, where):
    assert refused(tmp_path, f'[gateway]\nwire = "tcp"\naddress = "{address}"\n') == []
    data = (tmp_path / "claw.cbor").read_bytes()
    image = layout.Image(lambda at, size: data[at : at + size], len(data))
    assert (
        image.section(layout.NETWORK) == [where, []]
        and {"gateway", "lan"} <= set(image.requires)
        and "https" not in image.requires
    )


@pytest.mark.parametrize("count, fits", [(8, True), (9, False)])
def test_so_many_authorities_one_file_twice_counts_once(tmp_path, count, fits):
    files = {f"{number}.pem": pem() for number in range(count)}
    found = refused(
        tmp_path,
        "[tls]\nca = [%s]\n" % ", ".join(f'"{name}"' for name in [*files, "0.pem"]),
        files=files,
    )
    assert (found == []) is fits and (
        fits or "9 certificates of" in found[0] and "at most 8" in found[0]
    )


# -- boards


@pytest.mark.parametrize(
    "board, toml, endpoint, said",
    [
        (
            "pico2-w",
            "",
            HTTPS,
            "pico2-w has no list of certificate authorities - name the one of this host: [tls] ca",
        ),
        ("pico2-w", '[tls]\nca = ["ca.pem"]\n', HTTPS, None),
        (
            "pico2-w",
            '[tls]\nca = ["ca.pem"]\n[boot]\nwatchdog_ms = 7999\n',
            HTTPS,
            "boot.watchdog_ms: a TLS handshake keeps a board's processor for seconds",
        ),
        ("pico2-w", '[tls]\nca = ["ca.pem"]\n[boot]\nwatchdog_ms = 8000\n', HTTPS, None),
        ("pico2-w", "[boot]\nwatchdog_ms = 1000\n", "http://h/v1", None),
        (
            "esp32",
            '[tls]\nca = ["ca.pem"]\n',
            HTTPS,
            "46,080 of them for TLS), and esp32 has 134,544 - [gateway] in clawlite.toml",
        ),
        ("esp32", '[gateway]\nwire = "tcp"\naddress = "h:1"\n', HTTPS, None),
        ("esp32", "[gateway]\n", HTTPS, None),
        (
            "pico",
            '[gateway]\nwire = "tcp"\naddress = "h:1"\n',
            HTTPS,
            "gateway.wire: this needs lan, which pico does not have",
        ),
        ("rpi-4", "[boot]\nwatchdog_ms = 1000\n", HTTPS, None),
    ],
)
def test_what_a_board_must_have(tmp_path, board, toml, endpoint, said):
    found = refused(tmp_path, toml, endpoint, board, {"ca.pem": pem()})
    assert len(found) == (said is not None) and (said is None or said in found[0]), found
