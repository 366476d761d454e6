"""An operator by files (CKP 0.2.0, 9.2, filesystem): whole documents, one user, and no links."""

import json
import os
import signal

import pytest
from agents import Agent, eventually, linux, tool_call
from pages import AGENT, initialize

from clawlite.linux.tasks.folder_line import MOST


class Folder:
    """The far end."""

    def __init__(self, path):
        self.path, self._number = path, 0

    def put(self, data, name: str = None):
        """Put one document there, as a client does."""
        self._number += 1
        draft = self.path / "inbox" / ".draft"
        draft.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
        os.rename(draft, self.path / "inbox" / (name or "%06d.json" % self._number))

    def names(self) -> list:
        return sorted(path.name for path in (self.path / "outbox").glob("*.json"))

    def take(self) -> dict:
        """Return the next message of the agent."""
        name = eventually(self.names)[0]
        path = self.path / "outbox" / name
        data = path.read_bytes()
        path.unlink()
        return json.loads(data)

    def ask(self, message) -> dict:
        self.put(message)
        return self.take()


@pytest.fixture
def start(greenhouse_image, tmp_path):
    (tmp_path / "state").mkdir()

    def start(*flags, cwd=tmp_path):
        words = linux("serve", greenhouse_image, "--folder", tmp_path / "x", *flags)
        return Agent(words, tmp_path / "home", cwd=cwd, env={"CLAWLITE_STATE": tmp_path / "state"})

    return start


@pytest.fixture
def folder(tmp_path):
    found = Folder(tmp_path / "x")
    for path in (found.path, found.path / "inbox", found.path / "outbox"):
        path.mkdir(mode=0o700)
    return found


def test_requests_are_answered_in_their_order_and_files_are_gone_then(start, folder):
    with start() as agent:
        assert folder.ask(initialize())["result"]["agentInfo"]["name"] == AGENT
        for number in range(2, 12):
            folder.put(tool_call("read-soil", {}, number, AGENT))
        assert [folder.take()["id"] for _ in range(10)] == list(range(2, 12))
        assert folder.ask(b"{")["error"]["code"] == -32700
        assert folder.ask(b" " * 1048577)["error"]["code"] == -32600
        pretty = json.dumps({"jsonrpc": "2.0", "id": "p", "method": "claw.status"}, indent=2)
        assert folder.ask(pretty.encode())["result"]["state"] == "READY"
        assert os.listdir(folder.path / "inbox") == [] and folder.names() == []
        agent.signal(signal.SIGTERM)
        assert agent.wait() == 143


def test_files_that_are_not_whole_documents_yet_are_left_alone(start, folder):
    with start():
        folder.put(b"{", ".begun.json")
        folder.put(b"{", "begun.txt")
        (folder.path / "inbox" / "a.json").mkdir()
        assert "result" in folder.ask(initialize())
        left = sorted(os.listdir(folder.path / "inbox"))
        assert left == [".begun.json", "a.json", "begun.txt"]


def test_links_are_refused_and_nothing_behind_them_is_read(start, folder, tmp_path):
    (tmp_path / "elsewhere").write_text(json.dumps(initialize(5)))
    inbox = folder.path / "inbox"
    with start():
        assert "result" in folder.ask(initialize())
        os.symlink(tmp_path / "elsewhere", inbox / "soft.json")
        assert folder.take()["error"]["code"] == -32600
        os.link(tmp_path / "elsewhere", inbox / "hard.json")
        assert folder.take()["error"]["code"] == -32600
        os.mkfifo(inbox / "fifo.json")
        assert folder.take()["error"]["code"] == -32600
        eventually(lambda: os.listdir(inbox) == [])
        assert (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("part", ["", "inbox", "outbox"])
def test_a_folder_that_others_may_use_or_that_is_a_link_is_refused(start, folder, part, tmp_path):
    os.chmod(folder.path / part, 0o750)
    with start() as agent:
        assert agent.wait() == 2
        assert "chmod 700" in agent.errors()
    os.chmod(folder.path / part, 0o700)
    os.rename(folder.path / part, tmp_path / "real")
    os.symlink(tmp_path / "real", folder.path / part)
    with start() as agent:
        assert agent.wait() == 2
        assert "no link" in agent.errors()


def test_it_makes_the_folders_and_numbers_go_on_after_a_restart(start, tmp_path):
    found = Folder(tmp_path / "x")
    for _ in range(2):
        with start() as agent:
            eventually((found.path / "outbox").is_dir)
            assert oct(os.stat(found.path / "inbox").st_mode & 0o777) == "0o700"
            before = found.names()
            found.put(initialize())
            eventually(lambda: len(found.names()) > len(before))
            assert found.names()[: len(before)] == before
            agent.signal(signal.SIGTERM)
            agent.wait()
    assert found.names() == ["000000000001.json", "000000000002.json"]


def test_while_nobody_reads_nothing_more_is_taken(start, folder):
    for number in range(MOST):
        (folder.path / "outbox" / ("%012d.json" % number)).write_bytes(b"{}")
    with start():
        folder.put(initialize())
        os.unlink(folder.path / "outbox" / ("%012d.json" % 0))
        last = "%012d.json" % MOST
        eventually(lambda: last in folder.names())
        assert os.listdir(folder.path / "inbox") == []


def test_who_may_write_there_is_an_admin(start, folder):
    with start():
        folder.ask(initialize())
        shutdown = {"jsonrpc": "2.0", "id": 2, "method": "claw.shutdown", "params": {}}
        assert folder.ask(shutdown)["result"]["drained"] is True
