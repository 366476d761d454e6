"""A real disk that gets full: a tmpfs of 512 KB."""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

PAGE = 4096


@contextlib.contextmanager
def small_disk(folder: Path):
    """Mount it at *folder*, which is there; skips the test where it cannot be mounted."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a tmpfs")
    try:
        yield folder
    finally:
        # lazily: what a failed test has open keeps no mount
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast: Path, pages: int) -> None:
    """Write so much to *ballast*, a file there, that so many pages of PAGE bytes are left."""
    free = os.statvfs(ballast.parent).f_bavail
    with open(ballast, "wb") as file:
        file.write(b"x" * (max(0, free - pages) * PAGE))
