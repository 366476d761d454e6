"""Tutorials and how-to pages of docs/ are played word for word.

1. A block ``console`` has commands ("$ ...") and what they print.  ``...`` in a line stands for any
   text, a line of it alone for any lines.  "# exit code N" behind a command is its exit code, else
   0.  ``cd`` changes the folder for what follows.
2. "> TEXT" below a command is typed.  "&" behind a command leaves it running until the end; its
   lines are waited for.
3. A block with a name behind its language is a file, which is written into that folder.
4. A block ``phone`` is what a person sees there, and touches: "[BUTTON]".
5. ``no-run: REASON`` behind the language of a block: nobody plays it.
6. stdout and stderr are compared together, in the order stdout, stderr.
"""

import contextlib
import re
import shlex
import subprocess
from pathlib import Path

from agents import ENDS_S, Agent, clawlite, environment, linux

BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.M | re.S)
EXIT = re.compile(r" # exit code (\d+)$")
NOT_RUN = "no-run: "


class Step:
    """One command with what is typed, its output as written and its exit code; or a file and its
    text; or, with ``phone``, what happens there.
    """

    def __init__(self, command: str, output: str = "", code: int = 0, file: str = "", typed=""):
        self.command, self.output, self.code, self.file = command, output, code, file
        self.typed, self.phone = typed, False

    def stays(self) -> bool:
        return self.command.endswith(" &")


def read_steps(text: str) -> list:
    """Return the steps of a document."""
    steps = []
    for language, name, body in BLOCK.findall(text):
        if name.startswith(NOT_RUN):
            continue
        if language == "phone":
            steps.append(Step("", body))
            steps[-1].phone = True
        elif name:
            steps.append(Step("", body, file=name))
        elif language == "console":
            steps += [read_command(part) for part in re.split(r"^\$ ", body, flags=re.M)[1:]]
    return steps


def read_command(part: str) -> Step:
    """Return the step of a command and the lines below it."""
    command, _, below = part.partition("\n")
    code = EXIT.search(command)
    lines = below.splitlines(True)
    typed = "".join(line[2:] for line in lines if line.startswith("> "))
    output = "".join(line for line in lines if not line.startswith("> "))
    return Step(EXIT.sub("", command), output, int(code[1]) if code else 0, typed=typed)


def count_commands(text: str) -> tuple:
    """Return (commands that are played, commands that are not) of a document."""
    commands = lambda body: len(re.findall(r"^\$ ", body, re.M))
    blocks = [(name, body) for language, name, body in BLOCK.findall(text) if language == "console"]
    idle = sum(commands(body) for name, body in blocks if name.startswith(NOT_RUN))
    return sum(commands(body) for _, body in blocks) - idle, idle


class World:
    """What a document needs beside clawlite.

    instead  {words of the document: those of the test}, such as addresses
    phone    called with the text of a block ``phone``
    seen     what commands have printed; running: agents that were left running
    """

    def __init__(self, instead: dict = {}, phone=None):
        self.instead, self.phone = instead, phone
        self.seen, self.running = [], []

    def adapt(self, text: str) -> str:
        for written, there in self.instead.items():
            text = text.replace(written, there)
        return text


def play(path: Path, folder: Path, world: World) -> int:
    """Play the document *path* in the empty *folder*; return how many steps it has."""
    steps, here = read_steps(world.adapt(path.read_text())), folder
    with contextlib.ExitStack() as running:
        for step in steps:
            if step.phone:
                world.phone(step.output)
            elif step.file:
                (here / step.file).parent.mkdir(parents=True, exist_ok=True)
                (here / step.file).write_text(step.output)
            elif step.command.startswith("cd "):
                here = here / step.command[3:]
            elif step.stays():
                world.running.append(start(step, here, running))
            else:
                world.seen.append(play_command(step, here))
    return len(steps)


def start(step: Step, here: Path, running) -> Agent:
    """Start what goes on, and wait for the lines that it prints; return it."""
    words = shlex.split(step.command[:-2])
    assert words[0] == "clawlite", "only clawlite is left running"
    agent = running.enter_context(Agent(linux(*words[1:]), here / ".home", cwd=here))
    for line in step.output.splitlines():
        for part in filter(None, line.split("...")):
            agent.expect(part)
    return agent


def play_command(step: Step, here: Path) -> str:
    """Run a command to its end, compare what it prints, and return that."""
    words = shlex.split(step.command)
    typed = step.typed.encode()
    if words[:2] == ["clawlite", "flash"]:  # what it says and what the board says come mixed
        done = subprocess.run(
            linux(*words[1:]),
            cwd=here,
            input=step.typed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ENDS_S,
            env=environment(here / ".home", PYTHONUNBUFFERED=1),
        )
    elif words[0] == "clawlite":
        done = clawlite(*words[1:], cwd=here, stdin=typed)
    else:
        done = subprocess.run(
            words, cwd=here, input=step.typed, capture_output=True, text=True, timeout=60
        )
    shown = done.stdout + (done.stderr or "")
    assert done.returncode == step.code, (step.command, done.returncode, shown)
    assert fits(step.output, shown), f"$ {step.command}\nwritten:\n{step.output}\nis:\n{shown}"
    return shown


def fits(written: str, shown: str) -> bool:
    """Return whether *shown* is what is *written*, where ``...`` stands for anything."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else re.escape(line).replace(r"\.\.\.", ".*")
        for line in written.splitlines(True)
    )
    return re.fullmatch(pattern, shown.rstrip("\n") + "\n" if shown else "") is not None
