"""What a manifest and its settings say of the network: the search endpoint into the image, and
hosts that nothing matches.
"""

import json

import pytest

from clawlite.core.image.image import LOCAL, SANDBOX, Image
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.compiler import compiler, lint
from clawlite.host.manifest import manifest
from clawlite.host.sandbox import sandbox_errors
from clawlite.protocols.sandbox.profile import Profile

ENDPOINT = "http://192.168.1.5:8080/search?format=json&q={query}"


def project(folder, settings="", network=None):
    spec = {
        "identity": {"inline": {"personality": "You are.", "autonomy": "autonomous"}},
        "providers": [
            {
                "inline": {
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "tools": ["claw://registry/clawlite/web-%s@1.0.0" % ("search" if settings else "fetch")],
        "sandbox": {
            "inline": {
                "name": "box",
                "level": "none",
                "capabilities": {"network": network or {"mode": "allow-all"}},
            }
        },
        "policies": [
            {"inline": {"name": "all", "rules": [{"id": "all", "action": "allow", "scope": "all"}]}}
        ],
    }
    (folder / "claw.yaml").write_text(
        json.dumps(
            {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec}, indent=1
        )
    )
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + settings)
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "Yes."\n')
    return manifest.load(folder)


def image(*args, **more):
    data = compiler.build(project(*args, **more)).data
    return Image(lambda at, size: data[at : at + size], len(data), 100)


def test_the_endpoint_reaches_the_runtime(tmp_path):
    for endpoint in (
        "https://search.example.com/?q={query}",
        "http://127.0.0.1:8080/?q={query}",
        "http://[::1]/?q={query}",
    ):
        found = image(
            tmp_path,
            f'[search]\nendpoint = "{endpoint}"\nheader = "X-Key"\ncredential = "SEARCH_KEY"\n',
        )
        assert found.section(LOCAL)[3] == [endpoint, "X-Key", "SEARCH_KEY"]
    assert image(tmp_path, f'[search]\nendpoint = "{ENDPOINT}"\n').section(LOCAL)[3] == [
        ENDPOINT,
        "",
        "",
    ]


def test_who_makes_namespaces_reaches_the_runtime(tmp_path):
    assert (
        image(
            tmp_path, f'[search]\nendpoint = "{ENDPOINT}"\n[sandbox]\nnamespaces = "bubblewrap"\n'
        ).section(LOCAL)[5]
        == "bubblewrap"
    )
    assert image(tmp_path, f'[search]\nendpoint = "{ENDPOINT}"\n').section(LOCAL)[5] == ""


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://h.example/search",
        "https://{query}.example/",
        "ftp://h.example/{query}",
        "https://u:p@h.example/{query}",
        "https://h.example/#{query}",
        "{query}",
        "https://h.example:{query}/",
    ],
)
def test_mistakes_of_the_endpoint(tmp_path, endpoint):
    with pytest.raises(ManifestErrors) as caught:
        image(tmp_path, f'[search]\nendpoint = "{endpoint}"\n')
    (line,) = [problem.text().replace(str(tmp_path) + "/", "") for problem in caught.value.problems]
    assert line.startswith(
        "clawlite.toml:3: search.endpoint: expected an http or https URL with "
        "{query} in its path or query"
    ), line


def test_a_credential_needs_https(tmp_path):
    with pytest.raises(ManifestErrors) as caught:
        image(tmp_path, f'[search]\nendpoint = "{ENDPOINT}"\nheader = "X-Key"\ncredential = "K"\n')
    (line,) = [problem.text().replace(str(tmp_path) + "/", "") for problem in caught.value.problems]
    assert (
        line
        == "clawlite.toml:5: search.credential: a credential goes over https alone, or to this "
        "machine - write https in the endpoint"
    )


@pytest.mark.parametrize(
    "off, block",
    [
        ({}, True),
        ({"enabled": True}, True),
        ({"enabled": False}, False),
        ({"block_private_ips": False}, False),
        ({"dns_pinning": False}, True),
    ],
)
def test_protection_is_on_unless_it_is_switched_off(tmp_path, off, block):
    rules = Profile(
        image(
            tmp_path,
            network={"mode": "allowlist", "allowed_hosts": ["A.Example"], "ssrf_protection": off},
        ).section(SANDBOX)
    )
    assert (rules.network, rules.hosts, rules.block_private) == (1, ["a.example"], block)


def test_hosts_that_nothing_matches_are_refused_and_closed_ones_told(tmp_path):
    good = [
        "a.example",
        "*.B.example",
        "93.184.216.34",
        "[2606:2800::1]",
        "2606:2800::1",
        "localhost",
    ]
    bad = [
        "*",
        "*.",
        "a.example:443",
        "https://a.example",
        "a b",
        "*.1.2.3.4",
        "127.1",
        "b\u00fccher.example",
        "a.*.example",
    ]
    private = ["10.0.0.1", "[::1]"]

    def said(hosts, **protection):
        found = project(
            tmp_path, network={"mode": "allowlist", "allowed_hosts": hosts, **protection}
        )
        return [
            warning["message"]
            for warning in lint.find(found)["warnings"]
            if "address" in warning["message"]
        ], found

    found, manifest = said(good + private)
    assert [text.split('"')[1] for text in found] == private and all(
        "no public address" in text for text in found
    )
    sandbox_errors.refuse(manifest)
    assert (
        not manifest.problems.found
        and said(good + private, ssrf_protection={"enabled": False})[0] == []
    )
    for host in bad:
        _, manifest = said([host])
        sandbox_errors.refuse(manifest)
        assert [
            "no host matches it" in problem.message and problem.hint != ""
            for problem in manifest.problems.found
        ] == [True], host
