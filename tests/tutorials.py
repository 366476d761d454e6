"""Tutorials of docs/ are played word for word.

1. A block ``console`` has commands ("$ ...") and what they print.  ``...`` in a line stands for any
   text, a line of it alone for any lines.  "# exit code N" behind a command is its exit code, else
   0.  ``cd`` changes the folder for what follows.
2. A block with a name behind its language is a file, which is written into that folder.
3. stdout and stderr are compared together, in the order stdout, stderr.
"""

import re
import shlex
import subprocess
from pathlib import Path

from agents import clawlite

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
EXIT = re.compile(r" # exit code (\d+)$")


class Step:
    """One command, its output as written, its exit code; or a file and its text."""

    def __init__(self, command: str, output: str = "", code: int = 0, file: str = ""):
        self.command, self.output, self.code, self.file = command, output, code, file


def read_steps(text: str) -> list:
    """Return the steps of a document."""
    steps = []
    for language, name, body in BLOCK.findall(text):
        if name:
            steps.append(Step("", body, file=name))
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                code = EXIT.search(command)
                steps.append(Step(EXIT.sub("", command), output, int(code[1]) if code else 0))
    return steps


def play(path: Path, folder: Path) -> int:
    """Play the document *path* in the empty *folder*; return how many steps it has."""
    steps, here = read_steps(path.read_text()), folder
    for step in steps:
        if step.file:
            (here / step.file).write_text(step.output)
            continue
        words = shlex.split(step.command)
        if words[0] == "cd":
            here = here / words[1]
            continue
        if words[0] == "clawlite":
            done = clawlite(*words[1:], cwd=here)
        else:
            done = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=60)
        shown = done.stdout + done.stderr
        assert done.returncode == step.code, (step.command, done.returncode, shown)
        assert fits(step.output, shown), f"$ {step.command}\nwritten:\n{step.output}\nis:\n{shown}"
    return len(steps)


def fits(written: str, shown: str) -> bool:
    """Return whether *shown* is what is *written*, where ``...`` stands for anything."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else re.escape(line).replace(r"\.\.\.", ".*")
        for line in written.splitlines(True)
    )
    return re.fullmatch(pattern, shown.rstrip("\n") + "\n" if shown else "") is not None
