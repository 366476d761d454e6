"""What is measured behind ssh comes as it is there, and ends when nobody listens."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

from clawlite.host.flash import ssh_remote

PRINTS_WHEN_TOLD = """
import sys
print("first", flush=True)
open(sys.argv[1]).read()
print("second", flush=True)
print("an error", file=sys.stderr)
sys.exit(3)
"""
PRINTS_ON = """
import os, signal, sys
def over(*_):
    with open(sys.argv[1], "w") as file:
        file.write("over")
    os._exit(0)
signal.signal(signal.SIGINT, over)
while True:
    try:
        os.write(1, b"row\\n")
    except BrokenPipeError:  # SIGINT came before, and is told in a moment
        pass
"""


def far(tmp_path: Path, program: str) -> tuple:
    """Return (the far end's process, after it was asked to run *program* with a FIFO, the FIFO)."""
    out, told = io.BytesIO(), tmp_path / "told"
    os.mkfifo(told)
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("clawlite/__main__.py")
        info.size = len(program)
        archive.addfile(info, io.BytesIO(program.encode()))
    # Whatever started the tests may ignore SIGINT, a login does not.
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", ssh_remote.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, TMPDIR=str(tmp_path)),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == ssh_remote.GREETING
    request = json.dumps(["bench", len(out.getvalue()), [str(told)]]).encode() + b"\n"
    process.stdin.write(request + out.getvalue())
    process.stdin.flush()
    return process, told


def test_a_line_comes_before_the_program_ends(tmp_path):
    process, told = far(tmp_path, PRINTS_WHEN_TOLD)
    with process:
        assert json.loads(process.stdout.readline()) == {"ok": "first\n"}
        told.write_text("go on")
        assert json.loads(process.stdout.readline()) == {"ok": "second\n"}
        assert json.loads(process.stdout.readline()) == {"ok": [3, "an error\n"]}
        process.stdin.close()
    assert os.listdir(tmp_path) == ["told"]


def test_when_nobody_listens_it_ends_and_nothing_stays(tmp_path):
    process, told = far(tmp_path, PRINTS_ON)
    with process:
        assert json.loads(process.stdout.readline()) == {"ok": "row\n"}
        process.stdout.close()
        assert told.read_text() == "over"
        process.stdin.close()
        process.wait()
    assert os.listdir(tmp_path) == ["told"]
