"""Templates that have no simulated week (template_weeks.py): each does here what it is for."""

import os
from pathlib import Path

import pytest
from agents import Agent, clawlite, eventually, linux
from bot_server import TOKEN, BotServer

from clawlite.host.builder.check import check
from clawlite.host.projects import new

NINE = "bell door files freezer greenhouse notes team thermostat weather".split()


def _agent(folder: Path, home: Path, **env) -> Agent:
    return Agent(linux("run"), home, cwd=folder, env=env)


def _make(folder: Path, template: str, **options) -> Path:
    new.new(str(folder / template), template, **options)
    return folder / template


def test_there_are_nine_templates_and_three_beginnings():
    assert sorted(new.templates()) == sorted([*NINE, "blink", "chat", "empty"])


@pytest.mark.parametrize("template", NINE)
def test_a_template_is_short_has_sentences_and_no_warnings(tmp_path, template):
    folder = _make(tmp_path, template, offline=template in new.WITH_MODEL)
    manifests = sorted(folder.rglob("claw.yaml"))
    for manifest in manifests:
        found = check(str(manifest.parent))
        said = [one["message"] for one in found["warnings"] if "has admins" not in one["message"]]
        assert said == [] and not found["dead"] and not found["shadowed"]
    lines = [len(path.read_text().splitlines()) for path in _own(folder)]
    assert sum(lines) / len(manifests) <= 320
    assert list(folder.rglob("sentences.jsonl"))


def _own(folder: Path) -> list:
    """The files that a person reads, without the examples and the schemas for editors."""
    ends = (".yaml", ".toml", ".py")
    return [
        path for path in folder.rglob("*") if path.suffix in ends and ".schema" not in path.parts
    ]


def test_a_bell_rings_a_chime_and_a_phone(tmp_path):
    folder = _make(tmp_path, "bell")
    with BotServer(TOKEN) as server:
        settings = folder / "clawlite.toml"
        text = settings.read_text().replace("every_s = 3600", "every_s = 1")
        settings.write_text(
            text.replace("[telegram]\n", f'[telegram]\nbase_url = "{server.url}"\n')
        )
        manifest = folder / "claw.yaml"
        manifest.write_text(manifest.read_text().replace('"1234567"', '"7"'))
        with _agent(folder, tmp_path / "home", BOT_TOKEN=TOKEN) as agent:
            agent.expect("is ready")
            eventually(lambda: any("at the door" in one["text"] for one in server.sent))
            assert {one["chat_id"] for one in server.sent} == {"7"}
            server.message(66, "ring the bell")
            server.message(7, "ring the bell")
            eventually(lambda: any(one["text"] == "It rang." for one in server.sent))
            assert {one["chat_id"] for one in server.sent} == {"7"}, "a stranger is not answered"


def test_a_bell_on_a_board_speaks_through_its_gateway(tmp_path):
    folder = _make(tmp_path, "bell", board="pico2-w")
    settings = (folder / "clawlite.toml").read_text()
    assert '[telegram]\nvia = "gateway"' in settings and "[gateway]" in settings
    assert (
        "gateway"
        not in (_make(tmp_path / "pi", "bell", board="rpi-4") / "clawlite.toml").read_text()
    )


def test_notes_are_found_again_after_a_restart(tmp_path):
    folder = _make(tmp_path, "notes")
    said = [
        ("remember that the drill is in the cellar", "Noted."),
        ("note: Anna calls on Friday", "Noted."),
        ("where is my drill?", "the drill is in the cellar"),
        ("where is the cat", "nothing that is remembered"),
    ]
    for line, answer in said:  # a process each
        done = clawlite("ask", line, cwd=folder)
        assert answer in done.stdout, (line, done.stdout, done.stderr)
    done = clawlite("ask", "show my notes", cwd=folder)
    assert "Anna calls on Friday" in done.stdout and "cellar" in done.stdout


def test_files_asks_before_it_writes_and_stays_in_its_folder(tmp_path):
    folder = _make(tmp_path, "files")
    desk = tmp_path / "home" / "files-files"
    with _agent(folder, tmp_path / "home") as agent:
        agent.expect("is ready")
        agent.line("write buy milk to todo.txt")
        agent.expect("rule ask-before-writing")
        agent.line("y")
        agent.expect("Written.")
        assert (desk / "todo.txt").read_text() == "buy milk"
        (desk / "private").mkdir()
        (desk / "private/diary.txt").write_text("dear diary")
        agent.line("write nothing to todo.txt")
        agent.expect("rule ask-before-writing")
        agent.line("n")
        agent.expect("Not written.")
        agent.line("read todo.txt")
        agent.expect("buy milk")
        agent.line("read private/diary.txt")
        agent.expect("nobody's business")
        agent.line("read ../home-secret")
        agent.expect("outside the paths")
        agent.line("list the files")
        agent.expect("todo.txt")
    assert "dear diary" not in agent.text()


@pytest.mark.parametrize("template", ["files", "notes"])
def test_what_boards_have_no_tools_for_is_not_made_for_them(tmp_path, template):
    done = clawlite("new", "x", "--template", template, "--board", "pico-w", cwd=tmp_path)
    assert done.returncode == 2 and "and pico-w is neither" in done.stderr
    assert "clawlite new --list" in done.stderr and not os.path.exists(tmp_path / "x")


def test_the_earlier_name_of_a_template_is_still_known(tmp_path):
    new.new(str(tmp_path / "one"), "swarm")
    assert (tmp_path / "one/leader/claw.yaml").is_file() and "swarm" not in new.templates()


def test_a_team_may_have_a_gardener_who_understands_sentences(tmp_path):
    new.new(str(tmp_path / "one"), "team", local=True)
    local = [
        path.parent.name
        for path in (tmp_path / "one").rglob("claw.yaml")
        if "builtin:local" in path.read_text()
    ]
    assert local == ["gardener"]
    assert "first = true" in (tmp_path / "one/gardener/clawlite.toml").read_text()
