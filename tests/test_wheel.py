"""The wheel outside the checkout: built from an sdist of what git would take, installed, and
used in an empty folder.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
# Outside means outside: no way back into the checkout, and no setting of this run.
CLEAN = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("CLAWLITE_")}
BUILD = (
    "import sys; from setuptools import build_meta; print(getattr(build_meta, 'build_' + "
    "sys.argv[1])(sys.argv[2]))"
)


def _run(*command, cwd, **env) -> str:
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env=dict(CLEAN, **env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, "%s\n%s%s" % (command, done.stdout, done.stderr)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Return the unpacked sdist of what git would take, so that a file that either misses is
    missed here.
    """
    tmp = tmp_path_factory.mktemp("source")
    listed = _run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in listed.splitlines():
        if (ROOT / name).is_file():  # not one that was removed but not committed
            (tmp / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp / "tree" / name).write_bytes((ROOT / name).read_bytes())
    _run(sys.executable, "-c", BUILD, "sdist", tmp, cwd=tmp / "tree")
    (sdist,) = tmp.glob("*.tar.gz")
    _run("tar", "-xzf", sdist, cwd=tmp)
    return tmp / sdist.name[: -len(".tar.gz")]


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory) -> Path:
    tmp = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-c", BUILD, "wheel", tmp, cwd=source, CLAWLITE_NO_EXT="1")
    (found,) = tmp.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """Return the Python of a fresh environment that holds the wheel and nothing else, not even
    pip.
    """
    home = tmp_path_factory.mktemp("installed")
    _run(sys.executable, "-m", "venv", "--without-pip", home / "venv", cwd=home)
    python = home / "venv/bin/python"
    _run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=home,
    )
    return python


def test_wheel_is_pure_and_holds_what_is_not_python(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for pattern in (
        "clawlite/_data/boards/",
        "clawlite/_data/firmware-host/micropython/",
        "clawlite/core/formats/cbor.pxd",
    ):
        assert [n for n in names if n.startswith(pattern)], pattern
    # The package, its metadata, and nothing else at the top of site-packages.
    assert {n.partition("/")[0].partition("-")[0] for n in names} == {"clawlite"}
    assert [n for n in names if "__pycache__" in n or n.endswith((".so", ".c", ".mpy"))] == []


def _compiled(source, tmp, **env) -> tuple:
    """Return (name of the wheel that ``pip install .`` builds of *source*, the modules that are
    compiled in it, names of its files).
    """
    tree = tmp / "tree"
    shutil.copytree(source, tree)
    _run(sys.executable, "-c", BUILD, "wheel", tmp, cwd=tree, **env)
    (found,) = tmp.glob("*.whl")
    names = zipfile.ZipFile(found).namelist()
    return found.name, {n.partition(".")[0] for n in names if n.endswith(".so")}, names


def test_a_wheel_is_compiled_where_a_compiler_is(source, tmp_path):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    name, compiled, _ = _compiled(source, tmp_path)
    wanted = {
        str(path.relative_to(source).with_suffix(""))
        for path in source.glob("clawlite/core/*/*.pxd")
    }
    assert (
        compiled == wanted
        and len(wanted) > 4
        and sysconfig.get_platform().replace("-", "_") in name
    )

    site = tmp_path / "site"
    zipfile.ZipFile(tmp_path / name).extractall(site)
    modules = sorted(module.replace("/", ".") for module in wanted)
    fast, plain = (_imported(site, modules, CLAWLITE_NO_EXT=no_ext) for no_ext in ("", "1"))
    # One turn must not take longer with extensions, which one process loads whole: they import
    # nothing that the sources do not.
    assert {one for one in fast - plain if "cython" not in one} == set()
    assert any("cython" in one for one in fast)


def _imported(site: Path, modules: list, **env) -> set:
    """Return the names of all modules that a fresh process has after it imported *modules*."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import %s; print(*sys.modules)"
    said = _run(sys.executable, "-I", "-S", "-c", code % ", ".join(modules), site, cwd=site, **env)
    return set(said.split())


def test_a_wheel_is_built_where_no_compiler_works(source, tmp_path):
    name, compiled, names = _compiled(source, tmp_path, CC="false")
    assert compiled == set() and "clawlite/core/policy/policy.py" in names


def test_a_build_asks_for_cython():
    with open(ROOT / "pyproject.toml", "rb") as file:
        settings = tomllib.load(file)
    assert [need for need in settings["build-system"]["requires"] if need.startswith("cython")]


def test_a_workflow_builds_wheels_for_each_version_and_architecture():
    with open(ROOT / "pyproject.toml", "rb") as file:
        settings = tomllib.load(file)
    oldest = int(settings["project"]["requires-python"].removeprefix(">=3."))
    wheels = settings["tool"]["cibuildwheel"]
    assert wheels["build"] == ["cp3%d-manylinux_*" % minor for minor in range(oldest, 15)]
    assert wheels["linux"]["archs"] == ["x86_64", "aarch64", "armv7l"]
    job = yaml.safe_load((ROOT / ".ci/wheels.yml").read_text())["jobs"]["compiled"]
    made = [one["arch"] for one in job["strategy"]["matrix"]["include"]]
    assert made == wheels["linux"]["archs"]
    (build,) = [step for step in job["steps"] if "cibuildwheel" in step.get("run", "")]
    assert build["env"] == {"CIBW_ARCHS": "${{ matrix.arch }}"}
    assert "`.ci/wheels.yml`" in (ROOT / "CONTRIBUTING.md").read_text()


def test_wheel_has_no_base_dependency(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
    needs = [
        line
        for line in archive.read(metadata).decode().splitlines()
        if line.startswith("Requires-Dist:")
    ]
    assert needs and [line for line in needs if "extra ==" not in line] == []


def test_every_data_file_of_the_package_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = _run("git", "ls-files", "clawlite", "boards", "firmware-host", cwd=ROOT).splitlines()
    expected = {
        n if n.startswith("clawlite/") else "clawlite/_data/" + n
        for n in listed
        if (ROOT / n).is_file()
    }
    assert sorted(expected - names) == []


def test_installed_version(installed, tmp_path):
    """Both ways to start it, with the host packages of this run within reach (no .pth of theirs
    is read this way).
    """
    version = _run(installed, "-c", "import clawlite; print(clawlite.__version__)", cwd=tmp_path)
    packages = sysconfig.get_path("purelib")
    assert version in _run(
        installed, "-m", "clawlite", "--version", cwd=tmp_path, PYTHONPATH=packages
    )
    assert version in _run(
        installed.parent / "clawlite", "--version", cwd=tmp_path, PYTHONPATH=packages
    )


def test_installed_data(installed, tmp_path):
    out = _run(
        installed,
        "-c",
        "from clawlite.host.base.data import *; import "
        "clawlite.host.base.data as d\n"
        "print(d.__file__); print(d.boards_dir()); print(d.firmware_dir())",
        cwd=tmp_path,
    ).splitlines()
    module, boards, firmware = [Path(line) for line in out]
    assert not module.is_relative_to(ROOT)
    assert list(boards.glob("*.toml")) and list((firmware / "micropython").glob("*.py"))
    assert boards.is_relative_to(module.parents[2]) and firmware.is_relative_to(module.parents[2])


def test_core_needs_neither_site_nor_any_package(installed, tmp_path):
    """As the launcher starts it: -I -S, with the package's folder as the only addition to the
    path.
    """
    site = _run(installed, "-c", "import clawlite; print(clawlite.__path__[0])", cwd=tmp_path)
    code = (
        "import sys; sys.path.append(%r); import clawlite, pathlib, pkgutil, importlib, "
        "clawlite.core "
        "as core\n"
        "rooms = [str(p) for p in pathlib.Path(core.__path__[0]).iterdir() if p.is_dir()]\n"
        "names = [r.rpartition('/')[2] + '.' + m.name for r in rooms\n"
        "         for m in pkgutil.iter_modules([r])]\n"
        "[importlib.import_module('clawlite.core.' + n) for n in names]\n"
        "print(len(names), 'site' in sys.modules)" % str(Path(site).parent)
    )
    count, has_site = _run(installed, "-I", "-S", "-c", code, cwd=tmp_path).split()
    assert int(count) == len(list((ROOT / "clawlite/core").glob("*/*.py"))) > 70
    assert has_site == "False"


@pytest.fixture
def device(installed, tmp_path):
    """Return a function that runs ``clawlite`` where nothing but the wheel is installed, in a
    folder that holds an image.
    """
    shutil.copy(ROOT / "benchmarks/images/agent-of-the-registry.cbor", tmp_path / "claw.cbor")
    (tmp_path / "replay.jsonl").write_text("")

    def run(*words: str, said: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            [installed.parent / "clawlite", *words],
            cwd=tmp_path,
            env=dict(CLEAN, CLAWLITE_STATE=str(tmp_path / "state")),
            input=said,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@pytest.mark.parametrize(
    "words, says",
    [
        ("--help", "inspect      Show what an image holds."),
        ("-h", "bench        Measure"),
        ("help", "Talk to an agent:"),
        ("run --help", "usage: clawlite run"),
        ("ask --help", "usage: clawlite ask"),
        ("serve --help", "usage: clawlite serve"),
        ("tools --help", "usage: clawlite tools"),
        ("inspect --help", "usage: clawlite inspect"),
        ("check --help", "usage: clawlite check"),
        ("completion bash", "complete -o default"),
        ("conformance --help", "usage: clawlite conformance"),
        ("bench --help", "--rounds"),
        ("run", "bench 1.0.0 is ready."),
        ("ask hello", "Done."),
        ("serve --stdio", ""),
        ("tools", "digital-write"),
        ("tools claw.cbor", "digital-write"),
        ("tools claw.cbor --json", '"name": "board-info"'),
        ("inspect claw.cbor", "bench 1.0.0 - "),
        ("conformance", "level-3"),
        ("bench --here load --rounds 2", "open the file"),
    ],
)
def test_a_device_with_the_wheel_alone_has_these_commands(device, words, says):
    done = device(*words.split())
    assert done.returncode == 0 and says in done.stdout, done


@pytest.mark.parametrize(
    "words", ["tools claw.yaml", "check", "run claw.yaml", "ports", "bench load"]
)
def test_what_needs_packages_says_which(device, words):
    done = device(*words.split())
    assert (
        done.returncode == 2
        and "needs the host packages (" in done.stderr
        and "pip install 'clawlite[host]'" in done.stderr
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "name, told",
    [
        ("inspct", '"inspct" - did you mean "inspect"?'),
        ("frobnicate", '"frobnicate" - all commands: clawlite --help'),
        ("new\x1b", '"new\\x1b" - did you mean "new"?'),
    ],
)
def test_a_command_that_there_is_not_needs_no_package(device, name, told):
    done = device(name)
    assert done.returncode == 2 and done.stdout == "" and "pip" not in done.stderr
    assert done.stderr.startswith("clawlite: there is no command " + told), done.stderr


def test_suites_that_need_packages_say_which_and_are_no_traceback(device):
    done = device("bench", "ready", "load", "--rounds", "2")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    for suite in ("ready", "load"):
        assert "the suite %s needs the host packages (" % suite in done.stderr
    assert "clawlite bench --here" in done.stderr or "stand above" in done.stderr, done.stderr


def test_import_of_the_package_costs_nothing(installed, tmp_path):
    """``import clawlite`` brings in os, which every start has but -S, and nothing else."""
    out = _run(
        installed,
        "-c",
        "import sys; old = set(sys.modules); import clawlite; print(set(sys.modules) - old)",
        cwd=tmp_path,
    )
    assert out == "{'clawlite'}"


def test_without_a_compiler_the_build_is_pure_unless_extensions_are_required(source, tmp_path):
    pytest.importorskip("Cython")
    shutil.copytree(source, tmp_path / "tree")
    for pxd in (tmp_path / "tree/clawlite/core").glob("*/*.pxd"):
        pxd.unlink()  # one extension is enough, and quick
    (tmp_path / "tree/clawlite/core/base/errors.pxd").touch()
    command = [sys.executable, "-c", BUILD, "wheel", tmp_path]
    _run(*command, cwd=tmp_path / "tree", CC="/no/such/compiler")
    (found,) = tmp_path.glob("*.whl")
    assert [n for n in zipfile.ZipFile(found).namelist() if n.endswith(".so")] == []
    with pytest.raises(AssertionError, match="/no/such/compiler"):
        _run(*command, cwd=tmp_path / "tree", CC="/no/such/compiler", CLAWLITE_REQUIRE_EXT="1")


def test_data_of_a_checkout():
    from clawlite.host.base.data import boards_dir, firmware_dir

    assert boards_dir() == ROOT / "boards" and firmware_dir() == ROOT / "firmware-host"


def test_no_ext_takes_the_source_although_an_extension_lies_beside_it(tmp_path):
    """An extension that cannot even be loaded shows which file the import took."""
    core = tmp_path / "clawlite/core/base"
    core.mkdir(parents=True)
    for name in ("__init__.py", "core/__init__.py", "core/base/errors.py"):
        (tmp_path / "clawlite" / name).write_bytes((ROOT / "clawlite" / name).read_bytes())
    (core / "errors.abi3.so").write_bytes(b"not an extension")
    command = [sys.executable, "-c", "import clawlite.core.base.errors as e; print(e.__file__)"]
    assert _run(*command, cwd=tmp_path, CLAWLITE_NO_EXT="1") == str(core / "errors.py")
    with pytest.raises(AssertionError, match="errors.abi3.so"):
        _run(*command, cwd=tmp_path)
