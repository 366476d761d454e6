"""A user without a home folder (a cron job, ``docker run --user 1234``): no command ever makes a
folder named ``~``, and each says what to set.
"""

import os
import subprocess
import sys

import pytest
from agents import ROOT, clawlite

from clawlite.core.base.errors import ClawError
from clawlite.host.base import home
from clawlite.linux.files import files

PROJECT = {
    "claw.yaml": """\
claw: "0.3.0"
kind: Claw
metadata: { name: lamp }
spec:
  identity: { inline: { personality: "You help.", autonomy: supervised } }
  providers:
    - inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } }
  sandbox: { inline: { level: none } }
""",
    "clawlite.toml": 'reflex = "rules.toml"\n',
    "rules.toml": '[[rule]]\nwhen = "hi"\nsay = "hello"\n',
}
# what a user without an entry in the list of users sees
START = (
    "import pwd, sys\n"
    "def getpwuid(number): raise KeyError(number)\n"
    "pwd.getpwuid = getpwuid\n"
    "from clawlite.command import main\n"
    "sys.exit(main())"
)


@pytest.fixture
def project(tmp_path):
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    done = clawlite("build", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def run(folder, *words, **env):
    """Run ``clawlite WORDS`` as a user without a home; *env* has all other variables."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), **env}
    return subprocess.run(
        [sys.executable, "-c", START, *words],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "hi", "claw.cbor"),
        ("run", "claw.cbor"),
        ("serve", "claw.cbor", "--stdio"),
        ("trace",),
        ("secrets", "list", "claw.cbor"),
        ("channels", "dead", "claw.cbor"),
        ("ports",),
        ("swarm", "status"),
        ("gateway", "token", "bed"),
        ("service", "install", "--dry-run", "--as", "nobody"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "~", "XDG_STATE_HOME": "state"}])
def test_without_a_home_a_command_says_so_and_makes_no_folder(project, words, env):
    before = sorted(os.listdir(project))
    done = run(project, *words, **env)
    assert sorted(os.listdir(project)) == before
    assert "Traceback" not in done.stderr
    if words[0] not in ("ports", "service", "swarm"):
        assert done.returncode in (1, 2), done
        assert "no home folder" in done.stderr + done.stdout
        assert "CLAWLITE_STATE=" in done.stderr + done.stdout


def test_with_a_folder_for_the_state_it_works_without_a_home(project):
    done = run(project, "ask", "hi", "claw.cbor", CLAWLITE_STATE=str(project / "state"))
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert (project / "state" / "lamp").is_dir() and not (project / "~").exists()
    # a build keeps nothing where there is no place for it
    done = run(project, "build")
    assert done.returncode == 0, done.stderr
    assert not (project / "~").exists()


def test_doctor_names_the_missing_home(project):
    done = run(project, "doctor")
    assert "has no home folder" in done.stdout and "Traceback" not in done.stderr
    assert not (project / "~").exists()


@pytest.mark.parametrize("part", [files, home], ids=["linux", "host"])
def test_a_relative_xdg_folder_counts_as_none(part, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert part.base_folder("XDG_STATE_HOME", ".local", "state") == "/home/ada/.local/state"
    monkeypatch.setenv("XDG_STATE_HOME", "/srv/state")
    assert part.base_folder("XDG_STATE_HOME", ".local", "state") == "/srv/state"


def test_the_path_of_a_store_never_begins_with_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert files.expand_home("~/notes") == "/home/ada/notes"
    assert files.expand_home("~") == "/home/ada/"
    assert files.expand_home("notes/~") == "notes/~"
    with pytest.raises(ClawError, match="no user nobody-of-that-name"):
        files.expand_home("~nobody-of-that-name/notes")


def test_a_tilde_in_the_name_of_the_state_is_the_home(monkeypatch):
    """No shell expands it in a unit of systemd, a container file or a .env file."""
    monkeypatch.setenv("HOME", "/home/ada")
    for named, root in (("~/claw", "/home/ada/claw"), ("/srv/claw", "/srv/claw")):
        monkeypatch.setenv("CLAWLITE_STATE", named)
        assert files.state_folder("lamp") == root + "/lamp"
