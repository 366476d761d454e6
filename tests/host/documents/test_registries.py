"""Other registries: fetched once over HTTPS, pinned, built from the lock without a network; what
has changed is refused.
"""

import http.server
import json
import ssl
import threading
import tomllib

import pytest
import trustme

from clawlite.core.base.errors import ClawError
from clawlite.host.base.document import MAX_BYTES
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build
from clawlite.host.documents import lock, registries
from clawlite.host.documents.sources import Sources
from clawlite.host.manifest import manifest

POLICY = """claw: "0.3.0"
kind: Policy
metadata: { name: safe, version: 1.2.0 }
spec:
  rules:
    - { id: all, action: allow, scope: all }
"""
TOOL = """claw: "0.3.0"
kind: Tool
metadata: { name: say, version: 1.0.0, labels: { category: "text" } }
spec:
  description: Say it
  input_schema: { type: object, properties: { text: { type: string, maxLength: 10 } }, required: [text] }
"""  # noqa: E501
URI = "claw://registry/acme/safe@1.2.0"


class Registry:
    """A registry on loopback: ``files`` are its paths, ``asked`` what it was asked for."""

    def __init__(self, authority):
        self.files, self.asked = {}, []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.asked.append(self.path)
                found = owner.files.get(self.path)
                if found is None:
                    return self.send_error(404)
                if found.startswith(("http://", "https://")):
                    self.send_response(302)
                    self.send_header("Location", found)
                    return self.end_headers()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(found.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = "https://127.0.0.1:%d/r" % self.server.server_port

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def acme(tmp_path, monkeypatch):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    registry = Registry(authority)
    registry.files["/r/safe@1.2.0.yaml"] = POLICY
    yield registry
    registry.close()


def project(folder, acme, *policies, tools=(), settings=None):
    spec = {
        "identity": {"inline": {"name": "a", "personality": "You are."}},
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
        "tools": list(tools),
        "sandbox": {"inline": {"name": "s", "level": "none"}},
        "policies": list(policies or [URI]),
    }
    folder = folder / "agent"
    folder.mkdir(exist_ok=True)
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    (folder / "clawlite.toml").write_text(
        '[registries]\nacme = "%s"\n' % acme.url if settings is None else settings
    )
    return folder


def problems(folder) -> str:
    with pytest.raises(ManifestErrors) as e:
        manifest.load(folder)
    return str(e.value)


def test_a_build_fetches_pins_and_then_needs_no_network(tmp_path, acme):
    folder = project(tmp_path, acme)
    assert URI + " is not in clawlite.lock - clawlite build fetches it and pins it" in problems(
        folder
    )
    first = build.build(str(folder))
    found = tomllib.loads((folder / "clawlite.lock").read_text())
    assert found == {
        "version": 1,
        "document": [
            {
                "uri": URI,
                "url": acme.url + "/safe@1.2.0.yaml",
                "sha256": lock.digest(POLICY),
                "text": POLICY,
            }
        ],
    }
    assert [policy.name for policy in manifest.load(folder).policies] == ["safe"] and manifest.load(
        folder
    ).policies[0].uri == URI
    acme.close()
    assert build.build(str(folder))["changed"] is False and first["changed"] is True
    assert acme.asked == ["/r/safe@1.2.0.yaml"]


def test_a_lock_is_exact(tmp_path, acme):
    acme.files["/r/more@1.0.0.yaml"] = POLICY.replace("safe", "more").replace("1.2.0", "1.0.0")
    folder = project(tmp_path, acme, URI, "claw://registry/acme/more@1.0.0")
    assert (
        manifest.pin(folder) == [URI, "claw://registry/acme/more@1.0.0"]
        and manifest.pin(folder) == []
    )
    project(tmp_path, acme, "claw://registry/acme/more@1.0.0")
    assert manifest.pin(folder) == [] and "safe" not in (folder / "clawlite.lock").read_text()
    assert len(acme.asked) == 2


def test_what_has_changed_is_refused_with_the_difference(tmp_path, acme):
    folder = project(tmp_path, acme)
    manifest.pin(folder)
    before = (folder / "clawlite.lock").read_bytes()
    assert (
        manifest.pin(folder, refresh=True) == [URI]
        and (folder / "clawlite.lock").read_bytes() == before
    )
    acme.files["/r/safe@1.2.0.yaml"] = POLICY.replace("action: allow", "action: deny \u202e")
    assert manifest.pin(folder) == []  # pinned is pinned
    with pytest.raises(ClawError) as e:
        build.build(str(folder), refresh=True)
    assert (
        "  | -    - { id: all, action: allow, scope: all }\n"
        "  | +    - { id: all, action: deny \\u202e, scope: all }" in e.value.message
    )
    assert (
        lock.digest(POLICY)[:16] in e.value.message
        and "remove its entry from clawlite.lock" in e.value.hint
    )
    assert (folder / "clawlite.lock").read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        ("action: allow", "action: deny"),
        ("version = 1", "version = 2"),
        ("sha256", "sha"),
        ("[[document]]", "[[document]"),
    ],
)
def test_a_lock_that_somebody_changed_is_refused(tmp_path, acme, change):
    folder = project(tmp_path, acme)
    manifest.pin(folder)
    path = folder / "clawlite.lock"
    path.write_text(path.read_text().replace(*change))
    told = problems(folder)
    assert "clawlite.lock" in told and "bring back the file that clawlite wrote" in told
    with pytest.raises(ClawError):
        manifest.pin(folder)


def test_another_address_is_fetched_anew(tmp_path, acme):
    folder = project(tmp_path, acme)
    manifest.pin(folder)
    project(tmp_path, acme, settings='[registries]\nacme = "%s/s/"\n' % acme.url[:-2])
    assert "clawlite build fetches it anew" in problems(folder)
    acme.files["/s/safe@1.2.0.yaml"] = POLICY
    assert manifest.pin(folder) == [URI] and manifest.load(folder)


def test_a_tool_of_another_registry_is_answered_by_tools_py(tmp_path, acme):
    acme.files["/r/say@1.0.0.yaml"] = TOOL
    folder = project(tmp_path, acme, tools=["claw://registry/acme/say@1.0.0"])
    with pytest.raises(ManifestErrors) as e:
        build.build(str(folder))
    assert 'nothing answers the tool "say"' in str(e.value)
    (folder / "tools.py").write_text(
        'def say(text: str) -> str:\n    """Say."""\n    return text\n'
    )
    assert build.build(str(folder))["requires"] == ["http", "tools", "tools.py"]


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "answers 404"),
        ("", "is no document"),
        ("{", "is no document"),
        ("[]", "is no document"),
        ("kind: Policy", "is no document"),
        (POLICY.replace("1.2.0", "1.3.0"), "is safe in version 1.3.0, not safe@1.2.0"),
        (POLICY.replace("name: safe", "name: other"), "is other in version 1.2.0"),
        ("http://127.0.0.1:9/x", "which is not https"),
        ("# " + "x" * registries.MAX_DOCUMENT, "more than 262,144 bytes"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(tmp_path, acme, content, said):
    acme.files["/r/safe@1.2.0.yaml"] = content
    folder = project(tmp_path, acme)
    with pytest.raises(ClawError) as e:
        build.build(str(folder))
    assert said in e.value.message and e.value.hint and not (folder / "clawlite.lock").exists()


@pytest.mark.parametrize("over", [-1, 0])
def test_a_document_may_be_so_long(tmp_path, acme, over):
    acme.files["/r/safe@1.2.0.yaml"] = POLICY + "#" * (registries.MAX_DOCUMENT - len(POLICY) + over)
    assert manifest.pin(project(tmp_path, acme)) == [URI]


def _entry(text: str) -> lock.Entry:
    return lock.Entry("mcp://desk", "http://127.0.0.1:9/mcp", lock.digest(text), text)


def test_a_lock_of_several_mebibytes_is_read(tmp_path):
    entry = _entry("x" * (4 << 20))
    lock.write(Sources(str(tmp_path)), [entry])
    assert lock.read(Sources(str(tmp_path))) == {entry.uri: entry}


def test_no_lock_is_written_that_a_build_would_refuse(tmp_path, monkeypatch):
    sources, path = Sources(str(tmp_path)), tmp_path / "clawlite.lock"
    lock.write(sources, [_entry("x" * 100)])
    assert lock.MAX_LOCK == MAX_BYTES
    monkeypatch.setattr(lock, "MAX_LOCK", path.stat().st_size)
    lock.write(sources, [_entry("y" * 99)])
    lock.write(sources, [_entry("y" * 100)])
    with pytest.raises(ClawError, match="would have .* bytes; it may have at most ") as e:
        lock.write(sources, [_entry("z" * 101)])
    assert e.value.hint and lock.read(Sources(str(tmp_path)))["mcp://desk"].text == "y" * 100


def test_a_server_that_nobody_vouches_for_is_refused(tmp_path, acme, monkeypatch):
    folder = project(tmp_path, acme)
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(ClawError) as e:
        manifest.pin(folder)
    assert "certificate" in e.value.message.lower() and "builds without a network" in e.value.hint


def test_a_registry_that_the_settings_do_not_name_is_refused(tmp_path, acme):
    folder = project(tmp_path, acme, settings="")
    assert (
        'no such registry: "acme" - known here: clawlite; others stand in clawlite.toml: '
        "[registries] acme" in problems(folder).replace('"clawlite"', "clawlite")
    )
    assert manifest.pin(folder) == []


def test_a_registry_without_tls_is_not_even_asked(tmp_path, acme, monkeypatch):
    folder = project(
        tmp_path, acme, settings='[registries]\nacme = "%s"\n' % acme.url.replace("https:", "http:")
    )
    monkeypatch.setattr(registries, "fetch", lambda url: pytest.fail("asked " + url))
    assert manifest.pin(folder) == [] and not (folder / "clawlite.lock").exists()
    assert "expected an https:// URL without a query" in problems(folder)


def test_the_registry_in_the_package_is_never_fetched(tmp_path, acme):
    folder = project(
        tmp_path,
        acme,
        tools=["claw://registry/clawlite/sleep@1.0.0"],
        settings='[registries]\nclawlite = "%s"\n' % acme.url,
    )
    with pytest.raises(ManifestErrors, match="is inside the package"):
        build.build(str(folder))
    assert acme.asked == []


@pytest.mark.parametrize(
    "line, said",
    [
        ('acme = "http://h/r"', "an https:// URL without a query"),
        ('acme = "https://h/r?x"', "without a query"),
        ('acme = "https://u@h/r"', "https:// URL"),
        ("acme = 5", "registries.acme"),
        ('clawlite = "https://h"', "is inside the package"),
    ],
)
def test_settings_of_registries_are_checked(tmp_path, acme, line, said):
    folder = project(tmp_path, acme, settings="[registries]\n%s\n" % line)
    (folder / "clawlite.lock").write_text("version = 1\n")
    assert said in problems(folder)
