"""Blocks of README and docs/ are played word for word.

1. A block ``console`` has commands ("$ ...") and what they print.  ``...`` in a line stands for any
   text, a line of it alone for any lines, a time for any time.  "# exit code N" behind a command
   is its exit code, else 0; any other "# ..." is a comment.  ``cd`` changes the folder for what
   follows.
2. "> TEXT" below a command is typed.  "&" behind a command leaves it running until the end; its
   lines are waited for.
3. A block ``sh`` has commands alone: what they print is not shown, and their exit code is 0.
4. A block ``dialogue`` is a terminal on which an agent runs: what stands behind its prompt ("> ",
   "[y/N] ") is typed.
5. A block with a name behind its language is a file, which is written into that folder.
6. A block ``phone`` is what a person sees there, and touches: "[BUTTON]".
7. ``no-run: REASON`` behind the language of a block: nobody plays it.
8. stdout and stderr are compared together, in the order stdout, stderr.  A command that asks
   ("[y/N]") is played on a terminal.
"""

import contextlib
import re
import shlex
import subprocess
import sys
import textwrap
from collections import namedtuple
from pathlib import Path

from agents import ENDS_S, Agent, clawlite, environment, eventually, linux
from ssh_server import command as write_command

Block = namedtuple("Block", "language name body line")
BLOCK = re.compile(r"^( *)```(\w*)(?: ([^\n]+))?\n(.*?)^\1```$", re.M | re.S)
EXIT = re.compile(r" # exit code (\d+)$")
COMMENT = re.compile(r" +# .*")
VARIABLE = re.compile(r"[A-Z_]+=")
TYPED = re.compile(r"(> ?|.*\[y/N\] )(.*)")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
NOT_RUN = "no-run: "
ALSO = ("dialogue", "ckp", "line", "dockerfile")  # each counts as one command


def list_blocks(text: str) -> list:
    """Return the blocks of a document, without their indentation."""
    found = []
    for match in BLOCK.finditer(text):
        _, language, name, body = match.groups("")
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(language, name, textwrap.dedent(body), line))
    return found


class Step:
    """One command with what is typed, its output as written and its exit code; or a file and its
    text; or, with ``phone`` or ``dialogue``, what happens there.
    """

    def __init__(self, command: str, output: str = "", code: int = 0, file: str = "", typed=""):
        self.command, self.output, self.code, self.file = command, output, code, file
        self.typed, self.phone, self.dialogue = typed, False, False


def read_steps(text: str) -> list:
    """Return the steps of a document."""
    return [step for block in list_blocks(text) for step in read_block(block)]


def read_block(block: Block) -> list:
    """Return its steps."""
    if block.name.startswith(NOT_RUN):
        return []
    if block.language in ("phone", "dialogue"):
        step = Step("", block.body)
        setattr(step, block.language, True)
        return [step]
    if block.name:
        return [Step("", block.body, file=block.name)]
    return [read_command(part) for part in list_commands(block)]


def list_commands(block: Block) -> list:
    """Return each command with the lines below it."""
    if block.language == "console":
        return re.split(r"^\$ ", block.body, flags=re.M)[1:]
    found, begun = [], ""
    for line in block.body.splitlines() if block.language == "sh" else ():
        begun += COMMENT.sub("", line)
        if begun.count("'") % 2 == 0:  # else it goes on in the next line
            found.append(begun + "\n...\n")
            begun = ""
    return found


def read_command(part: str) -> Step:
    """Return the step of a command and the lines below it."""
    command, _, below = part.partition("\n")
    code = EXIT.search(command)
    lines = below.splitlines(True)
    typed = "".join(line[2:] for line in lines if line.startswith("> "))
    output = "".join(line for line in lines if not line.startswith("> "))
    return Step(COMMENT.sub("", command), output, int(code[1]) if code else 0, typed=typed)


def count_commands(text: str) -> tuple:
    """Return (commands that are played, commands that are not) of a document."""
    counts = [0, 0]
    for block in list_blocks(text):
        is_idle = block.name.startswith(NOT_RUN)
        counts[is_idle] += len(list_commands(block)) or block.language in ALSO
    return tuple(counts)


class World:
    """What a document needs beside clawlite.

    instead  {words of the document: those of the test}, such as addresses
    phone    called with the text of a block ``phone``
    env      more variables of each command
    stays    {how commands begin that are left running, although no "&" says so: what they print
             once they are ready}
    typed    {part of a command: what is typed, although no "> " says so}
    asks     how commands begin that are played on a terminal, although no "[y/N]" says so
    seen     what commands have printed; running: agents that were left running
    """

    def __init__(self, instead={}, phone=None, env={}, stays={}, typed={}, asks=()):
        self.instead, self.phone, self.env = instead, phone, env
        self.stays = {"clawlite sim": "/dev/pts/", **stays}
        self.typed, self.asks = typed, tuple(asks)
        self.seen, self.running = [], []

    def adapt(self, text: str) -> str:
        for written, there in self.instead.items():
            text = text.replace(written, there)
        for name, token in re.findall(r"^(\w+):(\S{20,})$", "".join(self.seen), re.M):
            text = text.replace(name + ":TOKEN", "%s:%s" % (name, token))
        return text

    def leaves(self, step: Step) -> bool:
        return step.command.endswith(" &") or step.command.startswith(tuple(self.stays))


def play(path: Path, folder: Path, world: World) -> int:
    """Play the document *path* in the empty *folder*; return how many steps it has."""
    steps = read_steps(path.read_text())
    play_steps(steps, folder, world)
    return len(steps)


def play_steps(steps: list, here: Path, world: World) -> None:
    with contextlib.ExitStack() as running:
        for step in steps:
            step.command, step.output = world.adapt(step.command), world.adapt(step.output)
            if step.phone:
                world.phone(step.output)
            elif step.dialogue:
                converse(world.running[-1], step.output)
            elif step.file:
                (here / step.file).parent.mkdir(parents=True, exist_ok=True)
                (here / step.file).write_text(step.output)
            elif step.command.startswith("cd "):
                here = here / step.command[3:]
            elif world.leaves(step):
                world.running.append(start(step, here, world, running))
            else:
                world.seen.append(play_command(step, here, world))


def split_command(command: str, env: dict) -> tuple:
    """Return (its words, its variables)."""
    words, env = shlex.split(command.removesuffix(" &")), dict(env)
    while VARIABLE.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        env[name] = value
    return words, env


def start(step: Step, here: Path, world: World, running) -> Agent:
    """Start what goes on, and wait for the lines that it prints; return it."""
    words, env = split_command(step.command, world.env)
    assert words[0] == "clawlite", "only clawlite is left running"
    agent = running.enter_context(Agent(linux(*words[1:]), here / ".home", cwd=here, env=env))
    ready = [said for begin, said in world.stays.items() if step.command.startswith(begin)]
    for line in [*step.output.splitlines(), *ready]:
        for part in filter(None, line.split("...")):
            eventually(lambda: agent.has_written(part))
    return agent


def play_command(step: Step, here: Path, world: World) -> str:
    """Run a command to its end, compare what it prints, and return that."""
    words, env = split_command(step.command, world.env)
    typed = step.typed.encode()
    for part, text in world.typed.items():
        typed += text.encode() if part in step.command else b""
    if "[y/N]" in step.output or step.command.startswith(world.asks):
        terminal = {"TERM": "dumb", "COLUMNS": 200, **env}
        there = ["sh", "-c", 'exec "$@" 2>&1', "sh", *linux(*words[1:])]
        with Agent(there, here / ".home", True, cwd=here, env=terminal) as agent:
            converse(agent, step.output)
            assert agent.wait(ENDS_S) == step.code, agent.text() + agent.errors()
            return agent.text()
    if words[:2] == ["clawlite", "flash"]:  # what it says and what the board says come mixed
        done = subprocess.run(
            linux(*words[1:]),
            cwd=here,
            input=typed.decode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ENDS_S,
            env=environment(here / ".home", **{**env, "PYTHONUNBUFFERED": 1}),
        )
    elif words[0] == "clawlite" and "|" not in words:
        done = clawlite(*words[1:], cwd=here, stdin=typed, **env)
    else:
        done = run_shell(step.command, here, typed, env)
    shown = done.stdout + (done.stderr or "")
    assert done.returncode == step.code, (step.command, done.returncode, shown)
    assert fits(step.output, shown), f"$ {step.command}\nwritten:\n{step.output}\nis:\n{shown}"
    return shown


def run_shell(command: str, here: Path, typed: bytes, env: dict) -> subprocess.CompletedProcess:
    """Run a command by the shell, which finds clawlite."""
    there = environment(here / ".home", **env)
    write_command(here / ".home", "clawlite", f'exec {sys.executable} -m clawlite "$@"')
    there["PATH"] = "%s:%s" % (here / ".home", there["PATH"])
    return subprocess.run(
        ["sh", "-c", command],
        cwd=here,
        input=typed.decode(),
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        env=there,
    )


def converse(agent: Agent, text: str) -> None:
    """Wait on a terminal for each line of *text*, and type what stands behind a prompt."""
    for line in text.splitlines():
        typed = TYPED.fullmatch(line)
        if typed:
            agent.expect(typed[1])
            agent.line(typed[2])
        for part in () if typed else filter(None, line.split("...")):
            agent.expect(part)


def fits(written: str, shown: str) -> bool:
    """Return whether *shown* is what is *written*, where ``...`` stands for anything, and a time
    for any time.
    """
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else re.escape(line).replace(r"\.\.\.", ".*")
        for line in TIME.sub("TIME", written).splitlines(True)
    )
    shown = TIME.sub("TIME", shown)
    return re.fullmatch(pattern, shown.rstrip("\n") + "\n" if shown else "") is not None
