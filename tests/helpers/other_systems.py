"""Commands of clawlite as another system would run them (other_system.py)."""

import os
import subprocess
import sys
from pathlib import Path

from agents import DEADLINE_S
from run_core_micropython import command

PLAYER = Path(__file__).with_name("other_system.py")
ROOT = PLAYER.parents[2]
# a file that is read or written in the encoding of a machine is an error
PYTHON = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning"]


class System:
    """One system: ``run`` of a command, in *folder*; *port*: path of the terminal that is its
    serial port, or None.
    """

    def __init__(self, name: str, folder, port=None):
        self.name, self.folder = name, folder
        programs = folder / "programs"
        programs.mkdir(exist_ok=True)
        program = programs / ("mpy-cross" + (".exe" if name == "windows" else ""))
        if command("mpy-cross") and not program.exists():
            program.symlink_to(command("mpy-cross"))
        self.env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "CLAWLITE_STATE": str(folder / "state"),
            "CLAWLITE_NO_EXT": "1",
        }
        if port:
            self.env["OTHER_PORT"] = port

    def words(self, *words) -> list:
        return [*PYTHON, str(PLAYER), self.name, *map(str, words)]

    def run(self, *words, input: str = "", **env):
        """Return the process, which has ended; its output is bytes of UTF-8."""
        return subprocess.run(
            self.words(*words),
            input=input.encode(),
            capture_output=True,
            cwd=self.folder,
            env={**self.env, **env},
            timeout=DEADLINE_S,
        )

    def say(self, *words, code: int = 0, input: str = "", **env) -> str:
        """Return what a command wrote to stdout and stderr; it ended with *code* and had no
        bug.
        """
        done = self.run(*words, input=input, **env)
        said = (done.stdout + done.stderr).decode()
        assert "Traceback" not in done.stderr.decode() and "\r" not in said, said
        assert done.returncode == code, (done.returncode, said)
        return said

    def play(self, code: str, *words) -> str:
        """Return what *code* prints in a process of that system."""
        begin = (
            f"import sys; sys.path[:0] = [{str(PLAYER.parent)!r}]\nfrom other_system import play\n"
        )
        done = subprocess.run(
            [*PYTHON, "-c", f"{begin}play({self.name!r})\n{code}", *map(str, words)],
            capture_output=True,
            cwd=self.folder,
            env=self.env,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()
