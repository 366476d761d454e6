"""What pyproject.toml cannot say: the optional extensions, and the data that stands beside the
package.

1. Every ``clawlite/core/ROOM/NAME.py`` with a ``NAME.pxd`` beside it is compiled, when Cython and a
   C compiler are there. CLAWLITE_NO_EXT=1 compiles none; CLAWLITE_REQUIRE_EXT=1 asks for Cython and
   makes every failure fatal.
2. ``boards/``, ``firmware-host/`` and what ``clawlite bench`` runs on a device (``benchmarks/``)
   are copied to ``clawlite/_data/`` of the wheel; ``clawlite/host/base/data.py`` finds them.
"""

import os
import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
DATA = ("boards", "firmware-host", "benchmarks")
# Benchmarks of a checkout: they need its tests, or servers and brokers.
ELSEWHERE = (
    "cortex_m3",
    "local",
    "teach",
    "results",
    "peers",
    "README.md",
    "images.py",
    "gate.py",
    "gate.json",
    "counted.py",
    "promises.py",
    "readme.py",
    "picture.py",
    "first_answer.py",
    "llm.py",
    "stores.py",
    "without_userns.py",
    "triggers.py",
)
REQUIRE = os.environ.get("CLAWLITE_REQUIRE_EXT") == "1"
FORBID = os.environ.get("CLAWLITE_NO_EXT") == "1"

DIRECTIVES = {
    "language_level": 3,
    # An annotation is for the reader; the types that count stand in the .pxd.  Typed annotations
    # would refuse a bool for an int, which the pure source takes.
    "annotation_typing": False,
    # builtin functions: no __dict__, no defaults tuple, smaller and quicker to load
    "binding": False,
    "auto_pickle": False,
    "emit_code_comments": False,
}


def extensions() -> list:
    """Return the extensions to build: [] when they are not wanted, or Cython is not there and
    not required.
    """
    if FORBID:
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if REQUIRE:
            raise SystemExit(
                "CLAWLITE_REQUIRE_EXT=1: Cython is not there. pip install "
                "'cython>=3.1' 'setuptools>=78.1.1', "
                "then build with --no-build-isolation"
            )
        return []
    flags = ["-O2", "-g0"] if os.name == "posix" else []
    found = [
        Extension(
            "clawlite.core.%s.%s" % (pxd.parent.name, pxd.stem),
            ["clawlite/core/%s/%s.py" % (pxd.parent.name, pxd.stem)],
            extra_compile_args=flags,
        )
        for pxd in sorted((HERE / "clawlite/core").glob("*/*.pxd"))
        if pxd.with_suffix(".py").exists()
    ]
    # The C files go to build/, so that a checkout stays clean.
    built = (
        cythonize(found, build_dir="build/cython", compiler_directives=DIRECTIVES) if found else []
    )
    # cythonize makes new objects, and forgets this one of Extension's arguments
    for extension in built:
        extension.optional = not REQUIRE
    return built


class BuildWithData(build_py):
    """build_py, which also copies DATA into the package and leaves nothing stale of an earlier
    build behind.
    """

    def run(self):
        if self.editable_mode:
            super().run()
            return  # a checkout has them at its top
        package = Path(self.build_lib) / "clawlite"
        wanted = [ext.name.rpartition(".")[2] for ext in self.distribution.ext_modules or []]
        for path in package.rglob("*"):
            # Extensions stay, so that the next build compiles only what changed.
            if path.is_file() and not (
                path.suffix == ".so" and path.name.partition(".")[0] in wanted
            ):
                path.unlink()
        super().run()
        for name in DATA:
            shutil.copytree(
                HERE / name,
                package / "_data" / name,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(
                    "__pycache__", "*.pyc", "*.mpy", *(ELSEWHERE if name == "benchmarks" else ())
                ),
            )


os.chdir(HERE)
setup(ext_modules=extensions(), cmdclass={"build_py": BuildWithData})
