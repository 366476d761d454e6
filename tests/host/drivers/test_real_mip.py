"""The index of the tests is held to MicroPython's own mip, which is in its unix port: what
``clawlite add`` takes from it is what mip installs.
"""

import subprocess

import pico_stack
import pytest
from sims import needs_micropython

from clawlite.host.builder import drivers

pytestmark = needs_micropython


def install(index, folder, what: str, version: str = None) -> str:
    """Let mip install the sources of *what* into *folder*; return what it says."""
    words = f"index={index.url!r}, version={version!r}"
    script = f"import mip\nmip.install({what!r}, target={str(folder)!r}, mpy=False, {words})"
    done = subprocess.run(
        [pico_stack.micropython(), pico_stack.script(script)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("what, version", [("bme280", None), ("bme280", "1.2.0")])
def test_mip_installs_the_same_files_from_the_index(index, project, tmp_path, what, version):
    (tmp_path / "lib").mkdir()
    said = install(index, tmp_path / "lib", what, version)
    asked, index.asked[:] = set(index.asked), []
    assert "Done" in said
    drivers.add(f"{what}@{version}" if version else what, str(project))
    files = sorted(path.name for path in (tmp_path / "lib").iterdir())
    assert files == sorted(path.name for path in (project / "drivers").iterdir()) != []
    for name in files:
        assert (tmp_path / "lib" / name).read_bytes() == (project / "drivers" / name).read_bytes()
    assert set(index.asked) == asked


def test_mip_installs_the_same_files_from_a_url(index, project, tmp_path):
    index.files["/x/bme/src/bme280.py"] = b"X = 1\n"
    index.files["/x/bme/package.json"] = (
        b'{"urls": [["bme280.py", "src/bme280.py"]], "deps": [["bus_help", "latest"]]}'
    )
    (tmp_path / "lib").mkdir()
    install(index, tmp_path / "lib", index.host + "/x/bme/")
    asked, index.asked[:] = set(index.asked), []
    drivers.add(index.host + "/x/bme/", str(project))
    for name in ("bme280.py", "bus_help.py"):
        assert (tmp_path / "lib" / name).read_bytes() == (project / "drivers" / name).read_bytes()
    assert set(index.asked) == asked
