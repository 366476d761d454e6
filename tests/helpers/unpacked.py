"""Programs that other people wrote: this machine's, or those that unpack.sh put below build/,
which need the libraries beside them.
"""

import os
import shutil
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"


def find(program: str, folder: str) -> tuple:
    """Return (path of *program* or None, environment that it needs).

    folder  of build/, where ``make FOLDER`` puts it
    """
    found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin")
    if found:
        return found, dict(os.environ)
    top = BUILD / folder
    path = shutil.which(program, path="%s/usr/bin:%s/usr/sbin" % (top, top))
    places = [*top.glob("usr/lib/*-linux-*"), *top.glob("lib/*-linux-*"), top / "usr/lib"]
    return path, dict(os.environ, LD_LIBRARY_PATH=":".join(map(str, places)))
