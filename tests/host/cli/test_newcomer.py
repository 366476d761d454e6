"""A newcomer's first hour, by the command line alone: a project, a (virtual) board, a model
behind a gateway, and the plug pulled twice.
"""

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

from agents import Agent, clawlite, eventually, linux
from llm_server import Server, calls, say
from sims import needs_micropython, needs_mpy_cross

pytestmark = [needs_micropython, needs_mpy_cross]
KEY = "k-canary-51ab-never-on-the-board"
MEMORY = """
  memory:
    inline: { stores: [ { name: "talk", type: "conversation" } ] }
"""


def model(request) -> dict:
    """What a model does with a question, a request for water, and what its tools gave."""
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        return say(
            "Done."
            if "Watered" in last["content"]
            else "The soil is dry: 21 %. Shall I water?"
            if "21" in last["content"]
            else last["content"]
        )
    if "soil" in last["content"]:
        return calls(("read-soil", {}))
    if "water" in last["content"]:
        return calls(("water", {"seconds": 1}))
    if "think" in last["content"]:
        return dict(say("Let me think about it."), stall="stream")
    return say(
        "You asked me %d things before."
        % (sum(message["role"] == "user" for message in request.body["messages"]) - 1)
    )


class Desk:
    """What a person has: a folder, a state folder, and a board at the end of a link."""

    def __init__(self, folder: Path):
        self.folder, self.port = folder, folder / "board"
        self.env = {"CLAWLITE_STATE": folder / "state", "TERM": "xterm"}

    def does(self, *words, stdin: bytes = b"", code: int = 0):
        done = clawlite(
            *words,
            cwd=self.folder / "greenhouse"
            if (self.folder / "greenhouse").exists()
            else self.folder,
            stdin=stdin,
            **self.env,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done

    def starts(self, *words, terminal: bool = False, cwd: str = "greenhouse") -> Agent:
        return Agent(
            linux(*words), self.folder / words[0], terminal, cwd=self.folder / cwd, env=self.env
        )

    @contextlib.contextmanager
    def plugged_in(self):
        """A virtual board, whose files are those of the last one; at its end it is unplugged."""
        with self.starts(
            "sim", "--fs", self.folder / "flash", "--pty-link", self.port, cwd="."
        ) as board:
            board.expect("/dev/pts/")
            yield board

    def flashes(self):
        with self.starts("flash", "--port", self.port, "--yes") as it:
            assert it.wait(120) == 0, it.errors()

    def served(self, project: str = ".") -> Agent:
        return self.starts("gateway", project, "--port", self.port)

    def person(self) -> Agent:
        """Return the board's console, at its prompt."""
        [board] = [
            board
            for board in json.loads(self.does("ports", "--json").stdout)
            if board["port"] == os.path.realpath(self.port)
        ]
        it = self.starts("console", "--port", "gateway:" + board["id"], terminal=True)
        it.expect("leaves")
        return it


def knows(gateway: Agent, count: int = 1):
    eventually(lambda: gateway.errors().count("runs greenhouse") >= count, 60)


def lose_power(board: Agent):
    """End the virtual board's MicroPython at once: its power is gone for a moment."""
    for path in Path(f"/proc/{board.process.pid}/task").glob("*/children"):
        for pid in path.read_text().split():
            if b"micropython" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)
                return
    raise AssertionError("no board runs")


def written_by(desk: Desk, server):
    """Make the project as the pages say: a key, a gateway, a conversation that is kept."""
    desk.does("new", "greenhouse", "--endpoint", server.endpoint, "--model", "test-model")
    project = desk.folder / "greenhouse"
    text = (project / "claw.yaml").read_text()
    remote = text.index('auth: { type: "none" }')
    text = (
        text[:remote]
        + 'auth: { type: "bearer", secret_ref: "MODEL_KEY" }'
        + text[remote + len('auth: { type: "none" }') :]
    )
    (project / "claw.yaml").write_text(text + MEMORY)
    with open(project / "clawlite.toml", "a") as file:
        file.write("\n[gateway]\n\n[boot]\nwindow_ms = 200\n")
    desk.does("secrets", "set", "MODEL_KEY", stdin=KEY.encode() + b"\n")
    built = desk.does("build")
    assert "pico" in built.stdout + built.stderr


def asked(person: Agent):
    person.line("how is the topsoil?")
    person.expect("The soil is dry: 21 %. Shall I water?")
    person.line("yes, water it")
    person.expect("Approve water(seconds=1)?")
    person.expect("[y/N] ")  # what is typed before that answers nothing
    assert "Done." not in person.text()
    person.line("y")
    person.expect("Done.")
    person.expect("> ")


def test_from_new_to_a_board_that_keeps_its_conversation(tmp_path):
    desk = Desk(tmp_path)
    with Server(model) as server:
        written_by(desk, server)
        with desk.plugged_in() as board:
            desk.flashes()
            with desk.served() as gateway:
                knows(gateway)
                with desk.person() as person:
                    asked(person)
                    person.line("think")
                    person.expect("Let me think")
                    # in the middle of an answer: that turn was never acknowledged
                    lose_power(board)
                    knows(gateway, 2)
                    person.line("what did I ask?")
                    person.expect("You asked me 2 things before.")
            last = server.requests[-1]
            assert [
                message["content"] for message in last.body["messages"] if message["role"] == "user"
            ] == ["how is the topsoil?", "yes, water it", "what did I ask?"]
            assert last.headers["authorization"] == "Bearer " + KEY
            flash = interrupted(desk)
            next(flash)
        assert list(flash) == []  # the board is gone: unplugged
        with desk.plugged_in():
            # the project is another one now, which the board does not run yet
            later(desk, "and now?", 3, "../before.cbor")
            desk.flashes()
            later(desk, "and at last?", 4)
        assert "You watch over" in json.dumps(server.requests[-1].body)
    for path in (tmp_path / "flash").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def interrupted(desk: Desk):
    """Change the agent, flash it, and unplug the board in the middle of that: the old agent is
    what boots next.
    """
    manifest, slot = desk.folder / "greenhouse/claw.yaml", desk.folder / "flash/claw-b"
    shutil.copy(manifest.with_suffix(".cbor"), desk.folder / "before.cbor")
    manifest.write_text(manifest.read_text().replace("You look after", "You watch over"))
    with desk.starts("flash", "--port", desk.port, "--yes") as flash:
        eventually(lambda: slot.exists() and len(list(slot.glob("*.mpy"))) >= 5, 60)
        yield
        assert flash.wait(120) == 1
    assert not slot.with_suffix(".cbor").exists()


def later(desk: Desk, text: str, before: int, project: str = "."):
    with desk.served(project) as gateway:
        knows(gateway)
        with desk.person() as person:
            person.line(text)
            person.expect(f"You asked me {before} things before.")
