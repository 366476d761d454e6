"""Python of a Raspberry Pi with a 32-bit system, on any machine: Debian's armhf packages, played by
QEMU's user mode emulator.

``make arm32`` (this file as a program) unpacks both below build/arm32: nothing is installed, any
user may.  What runs so sees this machine's kernel and files, but has no sandbox: the emulator
passes on neither seccomp nor Landlock.
"""

import os
import platform
import shutil
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2] / "build" / "arm32"
SUITE = "trixie"
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}  # machine types that the emulator is fetched for


def words() -> list:
    """Return the command line of Python there; [] where it could not be fetched."""
    roots = sorted(TOP.glob("python3-%s-armhf-*/usr/bin/python3" % SUITE))
    return [_emulator(), "-L", str(roots[0].parents[2]), str(roots[0])] if roots else []


def _emulator() -> str:
    found = [*TOP.glob("qemu-user-*/usr/bin/qemu-arm"), *map(shutil.which, ("qemu-arm-static",))]
    return str(next((path for path in found if path), ""))


def fetch() -> str:
    """Fetch what is not there yet, and return "" or why that cannot be."""
    import debs

    machine = DEBIAN.get(platform.machine())
    if not machine or not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return "needs apt, on x86_64 or aarch64"
    TOP.mkdir(parents=True, exist_ok=True)
    try:
        if not _emulator():
            folder = debs.unpacked(TOP, SUITE, machine, ("qemu-user",), closure=False)
            for path in (folder / "usr/bin").glob("qemu-*"):
                if path.name != "qemu-arm":
                    path.unlink()
        debs.unpacked(TOP, SUITE, "armhf", ("python3",))
    except (OSError, RuntimeError) as e:
        return str(e)
    return ""


def environment() -> dict:
    """Return what its processes need beside the environment of agents.py: the emulated Python must
    not find this machine's packages, nor write beside the sources.  Its readline says more to
    most terminals than their text.
    """
    return {
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": "",
        "QEMU_LD_PREFIX": "",
        "TERM": "dumb",
    }


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(fetch() or None)
