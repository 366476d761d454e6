"""Indexes, servers, packages and locks that are broken or mean harm: one clear error each, and
nothing is written.
"""

import hashlib
import json

import pytest

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import check, drivers
from clawlite.host.documents.lock import MAX_DRIVER_FILES
from clawlite.host.drivers import mip

from .conftest import BME280

PACKAGE = "/pi/v2/package/py/bad/latest.json"


@pytest.fixture
def refuse(index, project, tmp_path):
    """Return a function that adds what is refused, and returns the error."""

    def add(what="bad", **more) -> ClawError:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(ClawError) as caught:
            drivers.add(what, str(project), **more)
        assert caught.value.hint and "\n" not in caught.value.message
        assert sorted(tmp_path.rglob("*")) == before
        return caught.value

    return add


@pytest.mark.parametrize(
    "name, said",
    [
        ("../tools.py", "expected the name of a Python module"),
        ("../../x.py", "expected the name of a Python module"),
        ("/etc/x.py", "expected the name of a Python module"),
        ("a/../../x.py", "expected the name of a Python module"),
        ("..\\x.py", "expected the name of a Python module"),
        ("C:x.py", "expected the name of a Python module"),
        ("x.py\n", "expected the name of a Python module"),
        ("x.py\0.py", "expected the name of a Python module"),
        (".py", "expected the name of a Python module"),
        ("1x.py", "expected the name of a Python module"),
        ("x" * 65 + ".py", "expected the name of a Python module"),
        ("font.bin", "expected the name of a Python module"),
        ("clawlite.lock", "expected the name of a Python module"),
        ("", "expected the name of a Python module"),
        ("x.mpy", "is compiled already"),
        ("a/./x.py", "expected the name of a Python module"),
        ("a//x.py", "expected the name of a Python module"),
        ("a/b/c/d/x.py", "expected the name of a Python module"),
        ("__init__.py", "expected the name of a Python module"),
        ("pkg/class.py", 'Python has the word "class"'),
        ("machine/x.py", 'MicroPython has a module "machine"'),
        ("clawlite/x.py", 'clawlite has a module "clawlite"'),
    ],
)
def test_names_that_lead_elsewhere_are_refused(index, refuse, name, said):
    index.publish("bad", {name: ""})
    assert said in refuse().message
    index.publish("bad", {}, urls=[[name, index.host + "/x.py"]])
    index.files["/x.py"] = b""
    assert said in refuse().message


@pytest.mark.parametrize(
    "answer, said",
    [
        ((500, {}, b""), "answers 500"),
        (b"<html>", "expected the JSON of a package"),
        (b"[]", "it is a list"),
        (b"[" * 60000, "expected the JSON of a package"),
        (b"\xff\xfe", "expected the JSON of a package"),
        (b"{}", "brings no file"),
        (b'{"v": 2}', "v: expected 1, found 2"),
        (b'{"version": [], "hashes": []}', "version: expected one such as 1.2.0"),
        (b'{"version": "1; rm -rf ~"}', "version: expected one such as 1.2.0"),
        (b'{"version": "1\\u001b[2J"}', "version: expected one such as 1.2.0"),
        (b'{"hashes": 5}', "is no package of mip"),
        (b'{"hashes": [["x.py"]]}', "hashes: expected two texts"),
        (b'{"hashes": [["x.py", 5]]}', "hashes: expected two texts"),
        (b'{"hashes": [["x.py", "../../x"]]}', "hexadecimal"),
        (b'{"hashes": [["x.py", "abcd"]]}', "hexadecimal"),
        (b'{"hashes": [["x.py", "abcdef12"]]}', "answers 404"),
        (b'{"deps": ["x"]}', "deps: expected two texts"),
        (b" " * (mip.MAX_PACKAGE + 1), "has more than 65,536 bytes"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "redirects to file:"),
        ((302, {"Location": "ftp://127.0.0.1/x"}, b""), "redirects to ftp:"),
        ((302, {"Location": PACKAGE}, b""), "it redirects to"),
        ((200, {"Content-Length": "100"}, b"{"), "cannot be fetched"),
    ],
)
def test_answers_that_are_no_package(index, refuse, answer, said):
    index.files[PACKAGE] = answer
    assert said in refuse().message


def test_no_server_and_no_name(refuse):
    assert "cannot be fetched" in refuse(index="http://127.0.0.1:9/v2").message
    assert "cannot be fetched" in refuse(index="ftp://127.0.0.1/v2").message
    assert "cannot be fetched" in refuse(index="/etc").message
    for what in ("", "a b", "bme280@x y", "@1", "é", "a" * 65, "-x"):
        assert "expected the name of a driver" in refuse(what).message


@pytest.mark.parametrize(
    "what, said",
    [
        ("file:///etc/passwd", "expected https://"),
        ("ssh://h/x.py", "expected https://"),
        ("https://", "expected https://"),
        ("https://[::1/x.py", "is no URL"),
        ("https://h/" + "x" * 2000 + ".py", "is no URL"),
        ("http://127.0.0.1:no/x.py", "cannot be fetched"),
        ("http://127.0.0.1:9/a b.py", "ends with the name"),
        ("http://é\x7f/x.py", "cannot be fetched"),
        ("https://u:p@h/x.py", "has a password in it"),
        ("github:me", "expected github:OWNER/REPOSITORY"),
        ("github:me/../x", "expected github:OWNER/REPOSITORY"),
        ("github:me/x@../../y", "is no branch or tag"),
        ("https://h/x.mpy", "is compiled already"),
        ("https://h/?x", "ends with the name"),
        ("./missing.py", "No such file"),
        ("./missing/", "directory"),
        ("x.mpy", "No such file"),
    ],
)
def test_places_that_are_none(refuse, what, said):
    assert said in refuse(what).message


def test_a_file_that_is_not_what_the_index_says(index, refuse):
    index.publish("bad", {"bad.py": "X = 1\n"})
    index.files[index.place_of("X = 1\n")] = b"X = 2\n"
    found = hashlib.sha256(b"X = 2\n").hexdigest()
    error = refuse()
    assert f"expected SHA-256 {index.place_of('X = 1' + chr(10))[-8:]}..." in error.message
    assert found[:16] in error.message


@pytest.mark.parametrize("text", ["<html>\n", "def (:\n", "x = '\0'\n"])
def test_what_is_no_python(index, refuse, text):
    index.publish("bad", {"bad.py": text})
    assert "bad.py is no Python source" in refuse().message


def test_bounds_of_files(index, refuse, project):
    text = "#" + "x" * (mip.MAX_FILE - 2) + "\n"
    index.publish("good", {"good.py": text})
    drivers.add("good", str(project))
    index.publish("bad", {"bad.py": text + "\n"})
    assert "has more than 131,072 bytes" in refuse().message
    index.publish("bad", {f"m{n}.py": f"# {n}\n" for n in range(MAX_DRIVER_FILES + 1)})
    assert f"expected at most {MAX_DRIVER_FILES}" in refuse().message
    index.publish("bad", {"a.py": "", "A.py": ""})
    assert "twice" in refuse().message


def test_packages_in_a_circle_and_too_many(index, refuse, project):
    index.publish("bad", {"bad.py": ""}, deps=[("other", "latest")])
    index.publish("other", {"other.py": ""}, deps=[("bad", "latest")])
    assert "bad -> other -> bad depend on each other in a circle" in refuse().message
    index.publish("bad", {"bad.py": ""}, deps=[("bad", "latest")])
    assert "bad -> bad depend" in refuse().message
    for n in range(mip.MAX_PACKAGES):
        index.publish(f"p{n}", {f"p{n}.py": ""}, deps=[(f"p{n + 1}", "latest")])
    index.publish(f"p{mip.MAX_PACKAGES}", {"p.py": ""})
    assert "more than 16 packages" in refuse("p0").message
    assert len(drivers.add("p1", str(project))) == mip.MAX_PACKAGES


def test_two_versions_and_two_contents_of_one(index, refuse):
    index.publish("x", {"x.py": "A = 1\n"}, "1.0.0")
    index.publish("y", {"y.py": ""}, deps=[("x", "1.0.0")])
    index.publish("bad", {"bad.py": ""}, deps=[("x", "2.0.0"), ("y", "latest")])
    index.publish("x", {"x.py": "A = 2\n"}, "2.0.0")
    assert "x is asked for twice: as x@2.0.0 and as x@1.0.0" in refuse().message
    other = index.host + "/other/x.py"
    index.publish("bad", {"bad.py": ""}, deps=[("x", "latest"), (other, "")])
    assert f"x is asked for twice: as x@latest and as {other}" in refuse().message
    index.publish("bad", {"x.py": "A = 3\n"}, deps=[("x", "latest")])
    assert "each another one" in refuse().message


def test_a_package_over_https_names_nothing_without(monkeypatch, refuse):
    text = json.dumps({"urls": [["bad.py", "http://h/bad.py"]]}).encode()
    monkeypatch.setattr(mip, "_get", lambda url, limit, place: text)
    assert "names http://h/bad.py, which is not https" in refuse("https://h/bad").message


@pytest.mark.parametrize(
    "old, new, said",
    [
        ('"bme280.py"', '"../tools.py"', "has the file '../tools.py'"),
        ('"bme280.py"', '"/etc/x.py"', "has the file '/etc/x.py'"),
        ('"bme280.py"', '"missing.py"', "clawlite.lock names it as a file"),
        ('name = "bme280"', 'name = "bus_help"', 'has two drivers "bus_help"'),
        ('name = "bme280"', "name = 5", "has another shape"),
        ('version = "1.2.0"', "", "cannot be read"),
        ('version = "1.2.0"', 'version = "1.2.0"\nother = 1', "cannot be read"),
        ('[driver.files]\n"bme', 'files = []\n[other]\n"bme', "cannot be read"),
        ("[[driver]]", "[driver]", "cannot be read"),
        ("version = 1\n", "version = 9\n", "version 9, expected 1"),
    ],
)
def test_a_lock_that_somebody_changed(index, project, old, new, said):
    drivers.add("bme280", str(project))
    path = project / "clawlite.lock"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ManifestErrors) as caught:
        check.check(str(project))
    assert said in str(caught.value) and " - " in str(caught.value)


def test_two_hashes_of_one_file(index, project):
    drivers.add("bme280", str(project))
    path = project / "clawlite.lock"
    path.write_text(
        path.read_text().replace('"bus_help.py" =', f'"bme280.py" = "{"0" * 64}"\n"x.py" =')
    )
    with pytest.raises(ManifestErrors, match="has two hashes of drivers/bme280.py"):
        check.check(str(project))


def test_no_hint_is_a_trap(index, project):
    drivers.add("bme280", str(project))
    path = project / "clawlite.lock"
    text = path.read_text().replace(index.url, "https://h/;reboot;/package.json")
    path.write_text(text.replace('name = "bme280"', 'name = "x;reboot"'))
    (project / "drivers/bme280.py").unlink()
    with pytest.raises(ManifestErrors) as caught:
        check.check(str(project))
    said = str(caught.value)
    assert "clawlite add 'https://h/;reboot;/package.json' --replace" in said
    assert "clawlite remove 'x;reboot'" in said


def test_links_lead_nothing_out(index, project, tmp_path):
    (tmp_path / "out").mkdir()
    (project / "drivers").symlink_to(tmp_path / "out")
    with pytest.raises(ClawError, match="is a link"):
        drivers.add("bme280", str(project))
    assert list((tmp_path / "out").iterdir()) == []
    (project / "drivers").unlink()
    drivers.add("bme280", str(project))
    (tmp_path / "bme280.py").write_text(BME280)
    (project / "drivers/bme280.py").unlink()
    (project / "drivers/bme280.py").symlink_to(tmp_path / "bme280.py")
    with pytest.raises(ManifestErrors, match="lies outside the manifest's folder"):
        check.check(str(project))
    with pytest.raises(ClawError, match="is a link"):
        drivers.add("bme280", str(project), replace=True)
    assert (tmp_path / "bme280.py").read_text() == BME280
