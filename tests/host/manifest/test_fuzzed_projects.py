r"""``check`` and ``build`` say what is wrong with a project and never end in a traceback.

Everything runs in this process, through the command line's own ``main``.  A slice of each kind is
played here; ``make soak`` plays 100,000 variants.  One kind alone, with its files in memory:

    CLAWLITE_SEED=7 .venv/bin/pytest -m soak -k many-toml --basetemp=/dev/shm/fuzz \
        tests/host/manifest/test_fuzzed_projects.py
"""

import contextlib
import functools
import io
import json
import os
import re
import shutil
import traceback
from pathlib import Path

import pytest
from mutations import mutated, referring, reshaped

from clawlite import command as command_line
from clawlite.core.base.errors import ClawError
from clawlite.host.base import yaml_text
from clawlite.host.boards import boards
from clawlite.host.builder import check
from clawlite.host.compiler import compiler
from clawlite.host.projects import new
from clawlite.host.tools import signature

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
COUNT = int(os.environ.get("CLAWLITE_SOAK", "100000"))  # variants of each kind
TESTS = Path(__file__).resolve().parents[2]
PROJECTS = {  # every template, and what the tests have beside them
    "greenhouse": None,
    "chat": None,
    "blink": None,
    "empty": None,
    "fuzzed": TESTS / "host" / "fuzzed",
    "fixture": TESTS / "ckp" / "fixture",
    **{
        name: TESTS / "golden" / name
        for name in ("gates", "guarded", "skills", "talking", "memory", "least")
    },
}
KINDS = {"yaml": "*.yaml", "toml": "*.toml", "py": "tools.py", "references": "*.yaml"}
BOARDS = ("pico-w", "rpi-zero-2-w")
NEVER = "raise SystemExit('tools.py was run')\n"
# Found by this fuzz, or by hand: what each of these came to was a traceback.
FOUND = [
    ("clawlite.toml", lambda text: text + '\n[[buses]]\nname = "b"\nkind = {}\n'),
    ("claw.yaml", lambda text: text + "{{ a: 1 }}: 2\n"),
    ("claw.yaml", lambda text: text + "? [{a: 1}, {? {b: 1} : 2}]\n: 2\n"),
    ("claw.yaml", lambda text: re.sub("description: .*", r'description: "\\ud800"', text)),
    (
        "tools.py",
        lambda text: text + '\n\ndef bad(x: int) -> int:\n    "Say \\ud800 it."\n    return x\n',
    ),
    (
        "tools.py",
        lambda text: (
            text + '\n\ndef bad(x: str = "\\udfff") -> int:\n    "Say it."\n    return x\n'
        ),
    ),
    ("tools.py", lambda text: text + '\n\ndef bad(x: int, x: int):\n    "Say it."\n'),
    ("tools.py", lambda text: text + "\nbreak\n"),
    ("tools.py", lambda text: text + "\nfrom __future__ import nothing\n"),
]


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """Return the folder that holds the PROJECTS; a tools.py that is run ends the test."""
    folder = tmp_path_factory.mktemp("fuzzed")
    for name, source in PROJECTS.items():
        if source is None:
            new.new(str(folder / name), name)
        else:
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("claw.cbor"))
        for tools in folder.glob(f"{name}/tools.py"):
            tools.write_text(tools.read_text() + "\n\n" + NEVER)
    return folder


@pytest.fixture
def remembering(monkeypatch):
    """Let what most variants share be computed once: a campaign takes a third of the time."""
    for module, name in (
        (yaml_text, "read"),
        (compiler, "compile_pattern"),
        (boards, "load_all"),
        (boards, "profile"),
    ):
        monkeypatch.setattr(module, name, functools.lru_cache(256)(getattr(module, name)))
    monkeypatch.setattr(signature, "read", remembered_tools(signature.read))


def remembered_tools(read):
    """Return *read*, ``signature.read``, which remembers what it says of a tools.py without a
    mistake.
    """
    known = {}

    def remembering(source, file, problems):
        if (source, file) in known:
            return known[source, file]
        before = len(problems.found)
        found = read(source, file, problems)
        if len(problems.found) == before and len(known) < 256:
            known[source, file] = found
        return found

    return remembering


def hazards(folder: Path) -> None:
    """Put beside a manifest what references may meet: links, a pipe, files that are no YAML."""
    for name, target in (
        ("loop.yaml", "loop.yaml"),
        ("dangling.yaml", "nowhere"),
        ("out.yaml", "/etc/hostname"),
        ("up", ".."),
    ):
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe.yaml")
    (folder / "folder.yaml").mkdir()
    for name, data in (
        ("bytes.yaml", b"\xff\xfe\0"),
        ("empty.yaml", b""),
        ("list.yaml", b"[1]\n"),
        ("deep.yaml", b"[" * 5000),
    ):
        (folder / name).write_bytes(data)


def command(*args) -> tuple:
    """Return (exit code, stdout) of the command line *args*; what it prints must be UTF-8."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        code = command_line.run(list(args))
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    assert code == 0 or err.strip() or "--json" in args, "an error without a word"
    return code, out


def play(projects: Path, folder: Path, kind: str, seeds) -> int:
    """Check projects with one file of *kind* broken by each of *seeds*; return how many were valid.

    Some of what is valid is built, too.  Fails at the end with each place that gave way, and its
    first seed."""
    texts = []  # [(project, file, text)]
    for name in PROJECTS:
        shutil.copytree(projects / name, folder / name)
        texts += [
            (folder / name, path, path.read_text())
            for path in sorted((folder / name).rglob(KINDS[kind]))
        ]
        if kind == "references":
            hazards(folder / name)
    valid, found = 0, {}
    for seed in seeds:
        project, path, text = texts[seed % len(texts)]
        if kind == "references":
            broken = referring(text, seed)
        else:
            broken = (reshaped if seed // len(texts) % 2 else mutated)(text, kind, seed)
        path.write_bytes(broken.encode("utf-8", "surrogatepass"))
        try:
            valid += played(str(project), seed)
        except (Exception, SystemExit):
            said = traceback.format_exc().rstrip().split("\n  File ")
            told = "\n".join([f"seed {seed} of {path}:", *said[-3:], broken])
            found.setdefault(said[-1].split(", in ")[0], told)
        path.write_text(text)
    assert not found, "\n\n".join([f"{len(found)} places gave way", *found.values()])
    return valid


def played(project: str, seed: int) -> bool:
    """Check *project*, and build a quarter of what is valid; return whether it was.

    seed  draws the options of the commands
    """
    options = ["--json"] if seed % 3 == 0 else []
    options += ["--board", BOARDS[seed % 2]] if seed % 5 == 0 else []
    code, out = command("check", project, *options)
    assert code in (0, 2), code
    found = json.loads(out) if "--json" in options else None
    assert found is None or ("error" in found) == (code == 2)
    # check has compiled it: what is left is to write and to tell
    if code == 0 and seed % 4 == 0:
        assert command("build", project, *options)[0] in (0, 2)
    return code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_variant_ends_in_a_traceback(projects, tmp_path, kind):
    first = SEED * 1_000_000
    valid = play(projects, tmp_path, kind, range(first, first + 120))
    assert 0 < valid < 120  # some are harmless, most are not: else this tests nothing


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS, ids=["many-" + kind for kind in KINDS])
def test_no_variant_of_many_ends_in_a_traceback(projects, remembering, tmp_path, kind):
    first = SEED * 1_000_000
    assert play(projects, tmp_path, kind, range(first, first + COUNT)) > 0


def test_half_a_character_in_a_body_is_no_mistake(projects, tmp_path):
    """A board holds it, so its heap is measured; nothing that is sent has it."""
    shutil.copytree(projects / "greenhouse", tmp_path / "g")
    tools = tmp_path / "g" / "tools.py"
    tools.write_text('TEXT = "long enough to be measured, \\ud800"\n\n' + tools.read_text())
    assert command("build", str(tmp_path / "g"))[0] == 0


@pytest.mark.parametrize("name, broken", FOUND)
def test_what_was_found_is_told(projects, tmp_path, name, broken):
    shutil.copytree(projects / "greenhouse", tmp_path / "g")
    (tmp_path / "g" / name).write_text(broken((tmp_path / "g" / name).read_text()))
    with pytest.raises(ClawError):
        check.check(str(tmp_path / "g"))
