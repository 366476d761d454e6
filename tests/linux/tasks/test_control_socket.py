"""The control socket of an agent: who may connect, who they are, how many, and who has it."""

import os
import signal
import stat

import other_user
import pytest
from agents import Agent, eventually, linux
from control_sockets import Line, connect

from clawlite.host.builder.build import build_beside
from clawlite.host.projects import new
from clawlite.linux.tasks.control_socket import FOR_ADMINS, MAX_SESSIONS, NAME, OF_ONE


@pytest.fixture
def greenhouse(greenhouse_image, tmp_path):
    """Return a function that starts the greenhouse."""

    def start(verb: str, *flags, image=greenhouse_image, home: str = "home"):
        env = {"CLAWLITE_STATE": tmp_path / "state"}
        return Agent(linux(verb, image, *flags), tmp_path / home, cwd=tmp_path, env=env)

    (tmp_path / "state").mkdir()
    return start


@pytest.fixture
def folder(tmp_path, greenhouse_image):
    return tmp_path / "state" / os.path.basename(os.path.dirname(greenhouse_image))


def test_a_person_has_the_rights_of_their_role_and_the_console_goes_on(greenhouse, folder):
    with greenhouse("run", "--socket") as agent:
        agent.expect("is ready")
        vic, ann = Line(folder, "vic", "viewer"), Line(folder, "ann", "admin")
        for line in (vic, ann):
            line.initialize()
            assert line.ask("claw.status")["result"]["state"] == "READY"
        assert vic.ask("claw.shutdown")["error"]["code"] == -32011
        vic.close()
        agent.line("/help")
        agent.expect("/quit")
        assert ann.ask("claw.shutdown")["result"]["drained"] is True
        ann.close()


def test_it_is_the_owners_alone_and_gone_with_its_agent(greenhouse, folder):
    with greenhouse("run", "--socket") as agent:
        Line(folder, "ann", "user").initialize().close()
        status = os.lstat(folder / NAME)
        assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
        agent.signal(signal.SIGTERM)
        assert agent.wait() == 143
        assert not os.path.lexists(folder / NAME)


def test_without_the_option_there_is_none_and_nothing_of_it_is_loaded(greenhouse, folder):
    with greenhouse("run") as agent:
        agent.expect("is ready")
        agent.line("/quit")
        agent.wait()
    assert not os.path.lexists(folder / NAME) and not (folder / "control").exists()


def test_the_page_of_clawlite_toml_asks_for_it(greenhouse, tmp_path):
    new.new(str(tmp_path / "paged"), offline=True)
    with open(tmp_path / "paged" / "clawlite.toml", "a") as file:
        file.write("\n[page]\n")
    image = build_beside(str(tmp_path / "paged"))
    with greenhouse("serve", "--stdio", image=image) as agent:
        agent.initialize()
        line = Line(tmp_path / "state" / "paged", "ann", "user").initialize()
        assert agent.is_serving()
        line.close()


@pytest.mark.parametrize(
    "greeting",
    [
        {"person": "ann", "role": "owner", "login_ms": 1},
        {"person": "a/b", "role": "user", "login_ms": 1},
        {"person": "ann", "role": "user"},
        {"person": "ann", "role": "user", "login_ms": True},
        {"jsonrpc": "2.0", "id": 1, "method": "claw.status", "params": {}},
        ["ann"],
    ],
)
def test_who_does_not_say_who_they_are_is_refused(greenhouse, folder, greeting):
    with greenhouse("run", "--socket"):
        line = Line(folder, "", "", greeting)
        assert line.read()["error"]["code"] == -32600
        assert line.read() is None
        line.close()


@pytest.mark.skipif(not other_user.is_possible(), reason="only root can be another user")
def test_another_user_is_hung_up_on(greenhouse, folder, tmp_path):
    with greenhouse("run", "--socket"):
        Line(folder, "ann", "user").close()
        for path in (*reversed(folder.relative_to(tmp_path).parents), folder.relative_to(tmp_path)):
            os.chmod(tmp_path / path, 0o755)
        os.chmod(folder / NAME, 0o666)  # its mode alone would let them in
        child = os.fork()
        if not child:
            code = 1
            try:
                os.chdir(folder)
                os.setgid(65534)
                os.setuid(65534)
                import socket

                line = socket.socket(socket.AF_UNIX)
                line.settimeout(30)
                line.connect(NAME)
                try:
                    line.sendall(b'{"person":"ann","role":"admin","login_ms":1}\n')
                    code = 0 if line.recv(100) == b"" else 2
                except ConnectionError:
                    code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sessions_have_a_bound_and_their_ends_make_room(greenhouse, folder):
    with greenhouse("run", "--socket"):
        roles = ["user"] * (MAX_SESSIONS - FOR_ADMINS) + ["admin"] * FOR_ADMINS
        lines = [Line(folder, "p%d" % n, role).initialize() for n, role in enumerate(roles)]
        over = connect(folder)
        assert b"at most 32 sessions" in over.recv(4096)
        over.close()
        for line in lines:
            assert line.ask("claw.status")["result"]["state"] == "READY"
        lines.pop().close()

        def has_room():
            try:
                Line(folder, "late", "admin").initialize().close()
            except (AssertionError, OSError):
                return False
            return True

        eventually(has_room)
        for line in lines:
            line.close()


def test_nobody_who_may_only_look_takes_all_sessions(greenhouse, folder):
    with greenhouse("run", "--socket"):
        lines = [Line(folder, "vic", "viewer").initialize() for _ in range(OF_ONE)]
        over = Line(folder, "vic", "viewer")
        assert "sessions of one person" in over.read()["error"]["message"]
        assert over.read() is None
        over.close()
        lines += [Line(folder, "bea", "user").initialize() for _ in range(OF_ONE)]
        assert len(lines) == MAX_SESSIONS - FOR_ADMINS
        over = Line(folder, "cat", "user")
        assert "are for admins" in over.read()["error"]["message"]
        over.close()
        lines += [Line(folder, "ada", "admin").initialize() for _ in range(FOR_ADMINS)]
        for line in lines:
            assert line.ask("claw.status")["result"]["state"] == "READY"
            line.close()


def test_a_second_process_takes_over_when_the_first_has_ended(greenhouse, folder):
    with greenhouse("run", "--socket") as first:
        Line(folder, "ann", "user").initialize().close()
        with greenhouse("run", "--socket", home="second") as second:
            second.expect("is ready")
            inode = os.lstat(folder / NAME).st_ino
            first.signal(signal.SIGKILL)  # its socket stays, and nobody listens there
            first.wait()
            eventually(lambda: os.lstat(folder / NAME).st_ino != inode)
            Line(folder, "ann", "user").initialize().close()


def test_a_socket_that_was_removed_is_made_anew(greenhouse, folder):
    with greenhouse("run", "--socket"):
        Line(folder, "ann", "user").initialize().close()
        os.unlink(folder / NAME)
        Line(folder, "ann", "user").initialize().close()
