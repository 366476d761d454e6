"""The image beside a manifest runs without the compiler while it is current (docs/adr/0008)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agents import ROOT, environment

from clawlite.host.builder.build import build_facts
from clawlite.linux.admin import image_cache

CLAW = """claw: "0.3.0"
kind: Claw
metadata: {name: cached}
spec:
  identity: ./identity.yaml
  providers:
    - inline:
        protocol: openai-compatible
        endpoint: http://127.0.0.1:9/v1
        model: m
        auth: {type: none}
  tools: ["./tools/*.yaml", "./more/**/*.yaml"]
"""
IDENTITY = """claw: "0.3.0"
kind: Identity
metadata: {name: cached, version: "1.0.0"}
spec: {personality: Answers at once.}
"""
TOOL = """claw: "0.3.0"
kind: Tool
metadata: {name: %s}
spec: {description: Does it., input_schema: {type: object, properties: {}}}
"""
TOOLS = '''def one() -> str:
    """Does it."""
    return "one"


def two() -> str:
    """Does it, too."""
    return "two"
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    (folder / "tools").mkdir(parents=True)
    (folder / "more" / "deep").mkdir(parents=True)
    (folder / "claw.yml").write_text(CLAW)
    (folder / "identity.yaml").write_text(IDENTITY)
    (folder / "tools/one.yaml").write_text(TOOL % "one")
    (folder / "more/deep/two.yaml").write_text(TOOL % "two")
    (folder / "tools.py").write_text(TOOLS)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLAWLITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CLAWLITE_DEVICE_KEY_FILE", raising=False)
    monkeypatch.delenv("CLAWLITE_ALLOW_FOLDERS", raising=False)
    return folder


def build(name: str = ".") -> str:
    image, facts = build_facts(name, True)
    image_cache.store(name, True, image, facts)
    return os.path.abspath(image)


def entry(project: Path) -> Path:
    return next((project.parent / "cache/images").iterdir())


def edited(name: str, old: str, new: str):
    def edit(project):
        text = (project / name).read_text()
        assert old in text
        (project / name).write_text(text.replace(old, new))

    return edit


def linked(project):
    """The same bytes, from outside of the folder: a build would refuse them."""
    (project / "identity.yaml").rename(project.parent / "identity.yaml")
    (project / "identity.yaml").symlink_to("../identity.yaml")


def damaged(project):
    data = bytearray(entry(project).read_bytes())
    data[len(data) // 2] ^= 1
    entry(project).write_bytes(data)


CHANGES = {
    "the manifest": edited("claw.yml", "cached", "other"),
    "a file that it names": edited("identity.yaml", "at once", "late"),
    "a file that a glob matched": edited("more/deep/two.yaml", "Does it", "Did it"),
    "tools.py": edited("tools.py", '"two"', '"2"'),
    "a file gone": lambda project: (project / "tools/one.yaml").unlink(),
    "a file more for a glob": lambda project: (project / "tools/a.yaml").write_text(TOOL % "a"),
    "a folder more for a glob": lambda project: (project / "more/other").mkdir(),
    "a file more in a folder below": lambda project: (project / "more/deep/a.yaml").write_text(
        TOOL % "a"
    ),
    "settings where none were": lambda project: (project / "clawlite.toml").write_text(""),
    "a manifest that is preferred": lambda project: (project / "claw.yaml").write_text(CLAW),
    "a link out of the folder": linked,
    "no image": lambda project: (project / "claw.cbor").unlink(),
    "another image": lambda project: (project / "claw.cbor").write_bytes(b"\xd9\xd9\xf7"),
    "a damaged entry": damaged,
    "a cut entry": lambda project: os.truncate(entry(project), 100),
    "an empty entry": lambda project: os.truncate(entry(project), 0),
    "an entry that others may write": lambda project: entry(project).chmod(0o666),
    "a folder that others may write": lambda project: entry(project).parent.chmod(0o777),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_compiled_again(project, change):
    image = build()
    assert image_cache.find(".", True) == image == str(project / "claw.cbor")
    CHANGES[change](project)
    assert image_cache.find(".", True) is None


def test_an_entry_is_for_one_command_and_one_version(project, monkeypatch):
    image = build()
    assert image_cache.find(".", False) is None, "serve compiles what run refuses"
    for name, value in (("CLAWLITE_ALLOW_FOLDERS", "/srv"), ("CLAWLITE_DEVICE_KEY_FILE", "key")):
        with monkeypatch.context() as with_it:
            with_it.setenv(name, value)
            assert image_cache.find(".", True) is None
    with monkeypatch.context() as newer:
        newer.setattr(image_cache, "_version", lambda: "99.0.0")
        assert image_cache.find(".", True) is None
    with monkeypatch.context() as edited_package:
        code = image_cache._code()
        changed = [(*code[0][:2], code[0][2] + 1), *code[1:]]
        edited_package.setattr(image_cache, "_code", lambda: changed)
        assert image_cache.find(".", True) is None
    assert image_cache.find(".", True) == image


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_an_entry_of_another_user_is_ignored(project):
    build()
    os.chown(entry(project), 65534, 65534)
    assert image_cache.find(".", True) is None


def test_nothing_is_kept_beside_a_device_key(project, monkeypatch):
    (project.parent / "key").write_text("k" * 44)
    (project.parent / "key").chmod(0o600)
    monkeypatch.setenv("CLAWLITE_DEVICE_KEY_FILE", str(project.parent / "key"))
    build()
    assert not (project.parent / "cache").exists()


def test_entries_are_private_and_few(project, monkeypatch):
    monkeypatch.setattr(image_cache, "MOST", 2)
    for name in (".", "claw.yml", "./claw.yml"):
        build(name)
    folder = project.parent / "cache/images"
    assert len(list(folder.iterdir())) == 2 and folder.stat().st_mode & 0o777 == 0o700
    assert image_cache.find("./claw.yml", True), "the newest is kept"


@pytest.mark.parametrize("place", ["a file", "a closed folder"])
def test_a_cache_that_cannot_be_written_is_done_without(project, place):
    cache = project.parent / "cache"
    if place == "a file":
        cache.write_text("")
    else:
        (cache / "images").mkdir(parents=True)
        (cache / "images").chmod(0o777)
    build()
    assert image_cache.find(".", True) is None


_TRACE = """
import json, os, sys
seen = set()
sys.addaudithook(lambda event, args: event in ("open", "os.listdir", "os.scandir")
                 and isinstance(args[0], (str, os.PathLike)) and seen.add(os.path.abspath(args[0])))
from clawlite.host.builder.build import build_facts
facts = build_facts(".", True)[1]
print(json.dumps([sorted(seen), [os.path.abspath(path) for _, path, _ in facts]]))
"""


def test_all_that_a_build_opens_is_a_fact(project):
    world = dict(environment(project.parent / "home"), PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-c", _TRACE],
        cwd=project,
        env=world,
        check=True,
        capture_output=True,
        text=True,
    )
    seen, facts = json.loads(done.stdout)
    own = {path for path in seen if path.startswith(str(project) + "/")}
    own -= {str(project / one) for one in ("claw.cbor", "claw.cbor.new")}
    assert len(own) >= 8 and own <= set(facts), own - set(facts)


def test_a_hit_loads_nothing_of_the_compiler(project):
    world = environment(project.parent / "home", CLAWLITE_CACHE=str(project.parent / "cache"))
    main = ROOT / "clawlite/__main__.py"
    command = [sys.executable, "-X", "importtime", main, "serve", "--stdio"]
    status = b'{"jsonrpc":"2.0","id":1,"method":"claw.status"}\n'

    def serve() -> tuple:
        done = subprocess.run(
            command, cwd=project, env=world, check=True, input=status, capture_output=True
        )
        lines = done.stderr.decode().splitlines()
        return json.loads(done.stdout), {line.rpartition("|")[2].strip() for line in lines}

    first, loaded = serve()
    assert {"msgspec", "yaml"} <= loaded
    again, loaded = serve()
    assert again == first and "clawlite.core.protocol.session" in loaded
    roots = {".".join(name.split(".")[:2]) for name in loaded}
    assert not roots & {"msgspec", "yaml", "jsonschema", "clawlite.host"}
    edited("tools.py", '"two"', '"2"')(project)
    assert "msgspec" in serve()[1]
