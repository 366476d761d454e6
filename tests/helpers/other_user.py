"""A Python that another user can start: root's own may lie in a folder that nobody else may enter.

Root binds what a run needs (the interpreter, its packages, this checkout) to one folder, in a mount
namespace of its own: nothing is copied, and nothing is left when the process ends.
"""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534


def is_possible() -> bool:
    """Return whether this process can run others as another user: it is root, and has the
    programs for it.
    """
    return os.geteuid() == 0 and all(map(shutil.which, ("unshare", "mount", "setpriv")))


def bound(folder: Path) -> tuple:
    """Return (command line in front of a shell command, Python, environment) with everything below
    *folder*, readable for all.

    The command that follows runs as root, in the namespace: ``[*front, "exec ..."]``.
    """
    places = {
        "python": Path(sys.base_prefix),
        "packages": Path(sysconfig.get_path("purelib")),
        "source": ROOT,
    }
    script = []
    for name, real in places.items():
        (folder / name).mkdir()
        script.append(
            "mount --bind %s %s" % (shlex.quote(str(real)), shlex.quote(str(folder / name)))
        )
    for parent in [folder, *folder.parents]:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o711)
    python = folder / "python" / "bin" / ("python%d.%d" % sys.version_info[:2])
    env = {
        "PYTHONPATH": "%s:%s" % (folder / "source", folder / "packages"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(folder / "python" / "lib"),
    }
    return (
        [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-ec",
            "; ".join(script) + '; eval "$0"',
        ],
        str(python),
        env,
    )
