"""``clawlite add``, ``remove`` and ``drivers``: from an index, a URL and a file, into a project."""

import json
import tomllib

import pytest
from agents import clawlite

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build, check, drivers
from clawlite.host.documents import lock
from clawlite.host.documents.sources import Sources
from clawlite.host.drivers import mip

from .conftest import BME280, BUS_HELP, TOOLS


def refused(*words, **more) -> ClawError:
    with pytest.raises(ClawError) as caught:
        drivers.add(*map(str, words), **more)
    assert caught.value.hint
    return caught.value


def problems(project) -> str:
    with pytest.raises(ManifestErrors) as caught:
        check.check(str(project))
    return str(caught.value).replace(f"{project}/", "")


def locked(project) -> list:
    return tomllib.loads((project / "clawlite.lock").read_text())["driver"]


def test_a_driver_comes_with_what_it_needs_and_is_pinned(index, project):
    assert "clawlite add bme280" in problems(project)
    found = drivers.add("bme280", str(project))
    assert [(one["name"], one["version"], one["needs"]) for one in found] == [
        ("bme280", "1.2.0", ["bus_help"]),
        ("bus_help", "1.0.0", []),
    ]
    assert (project / "drivers/bme280.py").read_text() == BME280
    assert (project / "drivers/bus_help.py").read_text() == BUS_HELP
    first, second = locked(project)
    assert first["files"] == {"bme280.py": lock.digest(BME280)}
    assert second["files"] == {"bus_help.py": lock.digest(BUS_HELP)}
    assert first["source"] == index.url and first["needs"] == ["bus_help"]
    rows = check.check(str(project))["drivers"]
    assert [(row["file"], row["bytes"], row["used"]) for row in rows] == [
        ("drivers/bme280.py", len(BME280), True),
        ("drivers/bus_help.py", len(BUS_HELP), True),
    ]


def test_added_again_nothing_changes_and_the_index_is_in_an_option(index, project, monkeypatch):
    drivers.add("bme280", str(project))
    before = (project / "clawlite.lock").read_bytes()
    monkeypatch.setenv("CLAWLITE_MIP_INDEX", "http://127.0.0.1:9/nobody")
    found = drivers.add("bme280@1.2.0", str(project), index.url + "/")
    assert {file["change"] for one in found for file in one["files"]} == {"same"}
    assert (project / "clawlite.lock").read_bytes() == before
    assert "/package/py/bme280/1.2.0.json" in index.asked[-4]


def test_a_dry_run_writes_nothing(index, project):
    assert drivers.add("bme280", str(project), is_dry=True)[0]["files"][0]["change"] == "new"
    assert not (project / "drivers").exists() and not (project / "clawlite.lock").exists()


def test_documents_of_the_lock_stay_and_drivers_stay_with_them(index, project):
    sources = Sources(str(project))
    entry = lock.Entry("mcp://desk", "http://127.0.0.1:9/mcp", lock.digest("x"), "x")
    lock.write(sources, [entry])
    drivers.add("bus_help", str(project))
    assert lock.read(sources) == {entry.uri: entry}
    lock.write(sources, [])
    assert list(lock.read_drivers(sources)) == ["bus_help"]


def test_a_file_of_this_computer_is_copied(project, tmp_path):
    (tmp_path / "bme280.py").write_bytes(b"\xef\xbb\xbfdef read():\n    return (3,)\n")
    found = drivers.add(str(tmp_path / "bme280.py"), str(project))
    assert found[0]["source"] == "bme280.py"
    assert (project / "drivers/bme280.py").read_bytes() == b"def read():\n    return (3,)\n"
    assert check.check(str(project))["drivers"][0]["used"]


def test_the_url_of_a_file_and_of_a_package(index, project):
    index.files["/x/bus_help.py"] = BUS_HELP.encode()
    index.files["/x/bme/bme280.py"] = BME280.encode()
    index.files["/x/bme/package.json"] = json.dumps(
        {"urls": [["bme280.py", "bme280.py"]], "deps": [[index.host + "/x/bus_help.py", ""]]}
    ).encode()
    drivers.add(index.host + "/x/bme/", str(project))
    assert [(one["name"], one["source"]) for one in locked(project)] == [
        ("bme", index.host + "/x/bme/package.json"),
        ("bus_help", index.host + "/x/bus_help.py"),
    ]
    check.check(str(project))


@pytest.mark.parametrize(
    "what, path, name, version",
    [
        ("github:me/bme280@v1.2", "/me/bme280/v1.2/package.json", "bme280", "v1.2"),
        ("github:me/lib/src/bme280.py", "/me/lib/HEAD/src/bme280.py", "bme280", ""),
        ("gitlab:me/lib/bme@main", "/me/lib/-/raw/main/bme/package.json", "bme", "main"),
    ],
)
def test_repositories_are_where_mip_looks(index, project, monkeypatch, what, path, name, version):
    hosts = {key: url.replace(url.split("/{}")[0], index.host) for key, url in mip.HOSTS.items()}
    monkeypatch.setattr(mip, "HOSTS", hosts)
    index.files[path] = (
        BME280.encode() if path.endswith(".py") else b'{"urls": [["bme280.py", "bme280.py"]]}'
    )
    index.files[path.rpartition("/")[0] + "/bme280.py"] = BME280.encode()
    found = drivers.add(what, str(project))
    assert (found[0]["name"], found[0]["version"], found[0]["source"]) == (name, version, what)


def test_repositories_are_asked_over_https():
    assert all(url.startswith("https://") for url in (*mip.HOSTS.values(), mip.INDEX))


def test_a_changed_driver_is_refused_until_it_is_pinned_or_brought_back(index, project):
    drivers.add("bme280", str(project))
    file = project / "drivers/bme280.py"
    file.write_text(BME280 + "# mine\n")
    mine = lock.digest(BME280 + "# mine\n")
    said = problems(project)
    assert said.startswith(
        "drivers/bme280.py: it is not what clawlite.lock pins for the driver bme280@1.2.0, "
        f"expected SHA-256 {lock.digest(BME280)[:16]}..., found {mine[:16]}... - to have the "
        f"pinned one: clawlite add bme280@1.2.0 --index {index.url} --replace; to keep this one: "
        "clawlite add drivers/bme280.py"
    )
    with pytest.raises(ManifestErrors):
        build.build(str(project))
    error = refused("bme280", project)
    assert "is there, and is another file" in error.message and "--replace" in error.hint
    assert file.read_text().endswith("# mine\n")
    drivers.add(str(file), str(project))
    assert locked(project)[0]["files"] == {"bme280.py": mine}
    check.check(str(project))
    error = refused("bme280", project)
    assert f"expected SHA-256 {mine[:16]}..." in error.message and "--replace" in error.hint
    drivers.add("bme280", str(project), replace=True)
    assert file.read_text() == BME280
    check.check(str(project))


def test_a_missing_file_is_refused_and_brought_back(index, project):
    drivers.add("bme280", str(project))
    (project / "drivers/bus_help.py").unlink()
    assert problems(project).startswith(
        "drivers/bus_help.py: clawlite.lock names it as a file of the driver bus_help@1.0.0, and "
        "it is not there - bring it back: clawlite add bus_help@1.0.0"
    )
    drivers.add("bus_help@1.0.0", str(project))
    check.check(str(project))


def test_a_driver_that_nobody_imports_is_checked_and_does_not_travel(index, project):
    drivers.add("bme280", str(project))
    index.publish("spare", {"spare.py": "import machine\n"})
    drivers.add("spare", str(project))
    built = build.build(str(project))
    assert [(row["name"], row["used"]) for row in built["drivers"]] == [
        ("bme280", True),
        ("bus_help", True),
        ("spare", False),
    ]
    (project / "drivers/spare.py").write_text("")
    assert problems(project).startswith("drivers/spare.py: it is not what")


def test_a_file_that_two_packages_bring_is_of_both(index, project):
    index.publish("both", {"bme280.py": BME280, "bus_help.py": BUS_HELP})
    drivers.add("bme280", str(project))
    drivers.add("both", str(project))
    found = drivers.remove("both", str(project))
    assert found["files"] == [] and found["kept"] == ["drivers/bme280.py", "drivers/bus_help.py"]
    check.check(str(project))


def test_a_version_that_was_published_anew_is_told(index, project):
    drivers.add("bme280", str(project))
    index.publish("bme280", {"bme280.py": BME280 + "# 2\n"}, "1.2.0", [("bus_help", "latest")])
    error = refused("bme280", project)
    assert "is pinned by the driver bme280@1.2.0" in error.message
    assert (project / "drivers/bme280.py").read_text() == BME280


def test_a_driver_is_removed_with_its_file(index, project):
    drivers.add("bme280", str(project))
    with pytest.raises(ClawError, match="bus_help is needed by bme280"):
        drivers.remove("bus_help", str(project))
    with pytest.raises(ClawError, match='no driver "bme28"') as caught:
        drivers.remove("bme28", str(project))
    assert "did you mean" in caught.value.hint
    assert drivers.remove("bme280", str(project), is_dry=True)["files"] == ["drivers/bme280.py"]
    (project / "drivers/bus_help.py").write_text("# mine\n")
    found = drivers.remove("bme280", str(project))
    assert found["files"] == ["drivers/bme280.py"] and found["unneeded"] == ["bus_help"]
    assert drivers.remove("bus_help", str(project))["kept"] == ["drivers/bus_help.py"]
    assert (project / "drivers/bus_help.py").read_text() == "# mine\n"
    assert "driver" not in tomllib.loads((project / "clawlite.lock").read_text())


def test_a_module_beside_tools_py_and_a_driver_of_its_name_are_one_too_many(index, project):
    drivers.add("bme280", str(project))
    (project / "bme280.py").write_text("")
    assert problems(project).startswith(
        "bme280.py: the project has a driver of the same name, drivers/bme280.py - rename this "
        "one, or: clawlite remove bme280"
    )


@pytest.mark.parametrize(
    "name",
    ["machine", "json", "asyncio", "stores", "tools", "network", "class", "clawlite", "pins"],
)
def test_no_module_of_clawlite_or_micropython_is_replaced(index, project, tmp_path, name):
    (tmp_path / f"{name}.py").write_text("")
    index.publish("evil", {f"{name}.py": ""})
    for what in (tmp_path / f"{name}.py", "evil"):
        error = refused(what, project)
        assert f'"{name}"' in error.message and "another name" in error.hint
    assert not (project / "drivers").exists()


@pytest.mark.parametrize("name", ["ds18x20", "aioble", "logging"])
def test_what_only_some_boards_have_may_be_added(index, project, name):
    index.publish(name, {f"{name}.py": "X = 1\n"})
    drivers.add(name, str(project))
    assert (project / f"drivers/{name}.py").exists()


def test_names_that_differ_by_their_case_alone_are_refused(index, project, tmp_path):
    drivers.add("bme280", str(project))
    (tmp_path / "BME280.py").write_text("")
    assert "differ by their case alone" in refused(tmp_path / "BME280.py", project).message


def test_a_package_keeps_its_folders(index, project):
    files = {
        "bme280/__init__.py": "from .core import read\n",
        "bme280/core.py": "def read(): pass\n",
    }
    index.publish("bme280", files)
    drivers.add("bme280", str(project))
    for name, text in files.items():
        assert (project / "drivers" / name).read_text() == text
    rows = check.check(str(project), "pico")["drivers"]
    assert [(row["file"], row["used"]) for row in rows] == [
        ("drivers/bme280/__init__.py", True),
        ("drivers/bme280/core.py", True),
    ]
    index.publish("deep", {"deep/inner/one.py": "", "deep/inner/two.py": ""})
    drivers.add("deep", str(project))
    assert len(drivers.remove("deep", str(project))["files"]) == 2
    assert sorted(path.name for path in (project / "drivers").iterdir()) == ["bme280"]
    index.publish("other", {"bme280.py": ""})
    assert "are a module and a package of one name" in refused("other", project).message
    (project / "drivers/bme280/core.py").write_text("")
    assert problems(project).startswith("drivers/bme280/core.py: it is not what")
    assert drivers.remove("bme280", str(project))["kept"] == ["drivers/bme280/core.py"]


def test_libraries_that_share_a_folder_come_together(index, project):
    index.publish("umqtt.simple", {"umqtt/simple.py": "X = 1\n"})
    index.publish("umqtt.robust", {"umqtt/robust.py": ""}, deps=[("umqtt.simple", "latest")])
    drivers.add("umqtt.robust", str(project))
    (project / "tools.py").write_text("import umqtt.simple\n" + TOOLS.replace("bme280", "umqtt"))
    assert [row["used"] for row in check.check(str(project))["drivers"]] == [True, True]


@pytest.mark.parametrize(
    "name, said",
    [
        ("stores", "clawlite has a module of this name on boards"),
        ("json", "the module json of a package lies beside pico's own, which it would hide"),
        ("bus_help", "has the same name in the slot of a board"),
    ],
)
def test_a_module_of_a_package_that_a_slot_cannot_have(index, project, name, said):
    index.publish("bme280", {"bme280/__init__.py": "import bus_help\n", f"bme280/{name}.py": ""})
    drivers.add("bme280", str(project))
    drivers.add("bus_help", str(project))
    with pytest.raises(ManifestErrors) as caught:
        check.check(str(project), "pico")
    assert said in str(caught.value) and len(caught.value.problems) == 1
    check.check(str(project), "linux")


def test_the_commands_show_what_they_did(index, project):
    more = {"CLAWLITE_MIP_INDEX": index.url}
    done = clawlite("add", "bme280", cwd=project, **more)
    assert done.returncode == 0 and "drivers/bme280.py: new" in done.stdout, done
    assert "driver bme280 1.2.0: drivers/bme280.py" in clawlite("build", cwd=project).stdout
    shown = clawlite("inspect", "claw.cbor", cwd=project).stdout
    assert "  drivers/bme280.py, SHA-256 " + lock.digest(BME280)[:16] in shown
    assert "bme280 1.2.0, from" in clawlite("drivers", cwd=project).stdout
    done = clawlite("ask", "hello", cwd=project)
    assert done.stdout == "read 6\n", done
    (project / "drivers/bme280.py").write_text("")
    done = clawlite("drivers", "--json", cwd=project)
    assert (
        done.returncode == 1 and "is not what" in json.loads(done.stdout)[0]["files"][0]["problem"]
    )
    done = clawlite("remove", "bme280", "--json", cwd=project)
    assert json.loads(done.stdout)["kept"] == ["drivers/bme280.py"]
    done = clawlite("add", "nobody", cwd=project, **more)
    assert (done.returncode, done.stdout) == (2, "") and 'no driver "nobody"' in done.stderr
