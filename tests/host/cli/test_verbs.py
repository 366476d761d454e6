"""The table of the command line, and what is made from it: every verb is walked."""

import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from agents import clawlite

from clawlite import command, command_help, command_line
from clawlite.agent_verbs import HIDDEN, MANY, REQUIRED
from clawlite.command_words import verbs_below
from clawlite.verbs import GROUPS, SAME, VERBS

ROOT = Path(__file__).resolve().parents[3]
CALLED = [verb for verb in VERBS.values() if verb.run or verb.there]
NAMED = [verb for verb in VERBS.values() if verb.about]


def sample(kind, what: str) -> str:
    """Return a value of an option or a word that is right."""
    if isinstance(kind, tuple):
        return kind[0] if isinstance(kind[0], str) else str(kind[0])
    return what.strip("[]").lower() or "x"


def words_of(verb) -> list:
    """Return words that *verb* takes without options, but those that it must have."""
    words = []
    for word in verb.words.split():
        name = word.strip("[].")
        described = verb.words_by_name.get(name)
        if not word.startswith("["):
            words.append(sample(described and described.kind, name))
    for option in verb.options:
        if option.kind == REQUIRED:
            words += [option.name, "x"]
    return words


def refused(words: list) -> command_line.UsageError:
    with pytest.raises(command_line.UsageError) as e:
        command_line.parse(*command_line.find(words))
    return e.value


def misspelt(word: str) -> list:
    """Return *word* with a letter doubled, left out, and two letters exchanged."""
    middle = len(word) // 2
    found = [word[:middle] + word[middle] + word[middle:]]
    if len(word) > 3:
        found.append(word[:middle] + word[middle + 1 :])
        found.append(word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :])
    return [one for one in found if one != word]


# -- the table


def test_verbs_are_in_one_group_and_above_or_below_each_other():
    for verb in VERBS.values():
        above = verb.name.rpartition(" ")[0]
        assert (verb.group in GROUPS) == (not above) and (not above or above in VERBS), verb.name
        assert verb.about or verb.name == "completion words"
        assert verb.run or verb.there or verbs_below(verb.name), verb.name
    assert all(one in VERBS for one in SAME.values())


@pytest.mark.parametrize("verb", CALLED, ids=lambda verb: verb.name)
def test_a_function_takes_what_the_table_has(verb):
    for target, on_board in ((verb.run, False), (verb.there, True)):
        if not target or verb.run == target == "linux.admin.commands:run":
            continue
        there = ["--port", "p"] if any(one.name == "--port" for one in verb.options) else ["saved"]
        words = words_of(verb) + (there if on_board else [])
        values = command_line.parse(verb, words)
        assert command._target(verb, values) == target
        if "board" in verb.gives:
            del values["port"], values["folder"]
        module, _, name = target.partition(":")
        function = getattr(importlib.import_module("clawlite." + module), name)
        layers = {one: command._GIVEN[one][0] for one in verb.gives}
        given = [one for one in verb.gives if one == "board" or target.startswith(layers[one])]
        inspect.signature(function).bind(**values, **dict.fromkeys(given))


def test_packages_are_those_of_pyproject():
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for extra, modules in command.EXTRAS.items():
        named = {command.PACKAGES.get(one, one) for one in modules}
        assert {re.match("[A-Za-z0-9-]+", need)[0] for need in extras[extra]} == named


# -- words


@pytest.mark.parametrize("verb", CALLED, ids=lambda verb: verb.name)
def test_each_option_is_taken_in_both_ways_and_misspelt_in_none(verb):
    rest = words_of(verb)
    for option in verb.options:
        if option.place == HIDDEN:
            continue
        there = ["--port=p"] if option.place == "there" else []
        if option.metavar and len(option.metavar.split()) == 1:
            value = sample(option.kind, option.metavar)
            joined = "=" if option.name.startswith("--") else ""
            ways = [[option.name, value], [option.name + joined + value]]
        else:
            ways = [[option.name, *option.metavar.split()]]
        found = [command_line.parse(verb, rest + there + way)[option.dest] for way in ways]
        assert found[0] == found[-1] and found[0] is not None and found[0] is not False
        if option.metavar and option.kind != MANY and not option.metavar.startswith("["):
            assert "expected" in refused([*verb.name.split(), option.name]).message
        known = [one.name for one in verb.options]
        for typo in misspelt(option.name[2:]) if option.name.startswith("--") else ():
            if "--" + typo in known:
                continue
            error = refused([*verb.name.split(), *rest, "--" + typo, "x"])
            assert error.message == "unknown option --" + typo
            assert error.hint == "did you mean %s?" % option.name


@pytest.mark.parametrize("verb", NAMED, ids=lambda verb: verb.name)
def test_a_misspelt_verb_is_refused_with_the_one_that_was_meant(verb):
    above, _, last = verb.name.rpartition(" ")
    for typo in misspelt(last) if len(last) > 2 else ():
        name = (above + " " + typo).strip()
        if name in VERBS:
            continue
        if above == "boards":  # the name of a board: host/boards says which there are
            continue
        error = refused(name.split())
        assert error.message == 'there is no command "%s"' % name
        assert error.hint == 'did you mean "%s"?' % verb.name


@pytest.mark.parametrize(
    "words, message, hint",
    [
        ("console --line relible", 'found "relible"', "did you mean reliable?"),
        ("swarm acl reds", 'found "reds"', "did you mean redis?"),
        ("completion bsh", 'found "bsh"', "did you mean bash?"),
        ("audit --lst 3", "unknown option --lst", "did you mean --last?"),
        ("build --jsn", "unknown option --jsn", "did you mean --json?"),
        ("audit --last --json", "--last: expected N", "usage: clawlite audit"),
        ("audit --last=-1", "expected a whole number of at least 0", "usage: clawlite audit"),
        ("gateway history -n 0", "expected a whole number of at least 1", "usage: "),
        ("bench --rounds 1", "expected a whole number from 2 to 1000", "usage: "),
        ("bench --rounds 1001", "expected a whole number from 2 to 1000", "usage: "),
        ("bench --compare a", "--compare: expected AFTER", "usage: "),
        ("console --timeout 0.01", "expected a number of at least 0.1", "usage: "),
        ("console --timeout nan", "expected a number of at least 0.1", "usage: "),
        ("check --json=x", "--json takes no value", "usage: "),
        ("check --board=", "--board: expected BOARD", "usage: "),
        ("run --yes", "--yes: it is for a board: with --port PORT", "usage: "),
        ("run --record f --port p", "--record: it is not for a board", "usage: "),
        ("boards new x", "expected --from BOARD", "usage: clawlite boards new NAME --from BOARD"),
        ("serve --port x", "unknown option --port", "usage: "),
        ("frobnicate", 'no command "frobnicate"', "all commands: clawlite --help"),
    ],
)
def test_what_is_wrong_is_told_with_what_is_right(words, message, hint):
    error = refused(words.split())
    assert message in error.message and error.hint.startswith(hint), (error.message, error.hint)


def test_limits_of_numbers_are_taken():
    for words, name, value in (
        ("bench --rounds 2", "rounds", 2),
        ("bench --rounds=1000", "rounds", 1000),
        ("audit --last 0", "last", 0),
        ("gateway history -n1", "count", 1),
        ("console --timeout 0.1", "timeout", 0.1),
        ("ask x --port", "port", ""),
        ("ask x --port p", "port", "p"),
        ("gateway serve a b --port=1 --port 2", "port", ("1", "2")),
        ("ask -- --port", "text", "--port"),
        ("logs -", "saved", "-"),
    ):
        assert command_line.parse(*command_line.find(words.split()))[name] == value, words
    assert command_line.parse(VERBS["ask"], ["-5 degrees?"])["text"] == "-5 degrees?"
    # a file of that name is meant, not a misspelt verb
    assert command_line.find(["audit", os.curdir])[1] == [os.curdir]


def test_what_was_typed_drives_no_terminal(tmp_path):
    for words in (["bu\x1b[2Jild"], ["check", "--\x1b[2J"], ["check", "a", "\x1b[2J\nclawlite: x"]):
        done = clawlite(*words, cwd=tmp_path)
        assert done.returncode == 2 and "\x1b" not in done.stderr and "\\x1b" in done.stderr
        assert len(done.stderr.splitlines()) == 1


# -- help


def test_help_has_at_most_80_columns():
    texts = [command_help.overview(), *map(command_help.text, NAMED)]
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []
    assert [name for name in VERBS if len(command_help.usage(VERBS[name])) > 80] == []


def test_help_says_every_verb_and_every_option():
    listed = {line.split()[0] for line in command_help.overview().splitlines() if line[:2] == "  "}
    assert {name for name in VERBS if " " not in name} <= listed
    for verb in NAMED:
        text = command_help.text(verb)
        for option in verb.options:
            shown = "\n  %s" % command_help._call(option) in text
            assert shown == (option.place != HIDDEN), (verb.name, option.name)
        for below in verbs_below(verb.name):
            assert "\n  %s " % below.name.rpartition(" ")[2] in text


def test_help_of_what_has_verbs_below_is_bad_usage_without_one(tmp_path):
    for name in ("swarm", "service", "mcp", "secrets", "channels"):
        done = clawlite(name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "") and "Commands:" in done.stderr, name
        done = clawlite(name, "--help", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "") and "Commands:" in done.stdout, name


def test_the_reference_is_current():
    said = (ROOT / "docs/commands.md").read_text()
    assert said == command_help.reference(), "the table has changed: make commands"


# -- packages that are missing

ALL = "import sys; sys.argv[0] = 'clawlite'; sys.modules.update(dict.fromkeys(%r)); "
RUN = "from clawlite.command import main; sys.exit(main())"
SENTENCE = re.compile(
    r"clawlite [a-z -]+: needs the (host|proxy) packages \([\w-]+ is missing\) - "
    r"pip install 'clawlite\[\w+\]'(, or name an image that was built elsewhere)?\n"
)


def without(packages: list, *words: str, cwd) -> subprocess.CompletedProcess:
    """Run a command on a machine that lacks *packages*."""
    return subprocess.run(
        [sys.executable, "-c", ALL % packages + RUN, *words],
        cwd=cwd,
        env=dict(os.environ, CLAWLITE_STATE=str(cwd / "state"), PYTHONPATH=str(ROOT)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    assert clawlite("new", "g", "--offline", cwd=folder).returncode == 0
    (folder / "g" / "fs").mkdir()
    return folder / "g"


NEEDS = [
    "run",
    "ask hello",
    "serve claw.yaml --stdio",
    "mcp serve",
    "new x",
    "check",
    "build",
    "discover",
    "tools",
    "boards",
    "boards pico",
    "boards new x --from pico",
    "ports",
    "flash --port /dev/ttyNONE",
    "flash --dir fs",
    "console --port /dev/ttyNONE",
    "run --port /dev/ttyNONE",
    "ask hello --port /dev/ttyNONE",
    "wifi --port /dev/ttyNONE",
    "secrets list --port /dev/ttyNONE",
    "audit --port /dev/ttyNONE",
    "trace --port /dev/ttyNONE",
    "mcp serve --port /dev/ttyNONE",
]


@pytest.mark.parametrize("words", NEEDS)
def test_a_missing_package_is_one_sentence(project, words):
    packages = [one for modules in command.EXTRAS.values() for one in modules]
    done = without(packages, *words.split(), cwd=project)
    assert done.returncode == 2 and done.stdout == "", done
    assert SENTENCE.fullmatch(done.stderr), done.stderr


def test_a_missing_package_with_json_is_one_document(project):
    done = without(["msgspec"], "check", "--json", cwd=project)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2 and "(msgspec is missing)" in error["message"]
    assert error["data"]["hint"] == "pip install 'clawlite[host]'"


@pytest.mark.parametrize(
    "package, words",
    [
        ("msgspec", "check"),
        ("yaml", "build"),
        ("cbor2", "build --key-file key"),
        ("serial", "ports"),
        ("tomli_w", "boards new x --from pico"),
        ("aiosqlite", "gateway ."),
        ("aiohttp", "gateway . --proxy 127.0.0.1:0"),
    ],
)
def test_a_missing_package_is_told_by_its_name(project, package, words):
    (project / "key").write_text("0123456789abcdef0123")
    (project / "key").chmod(0o600)
    done = without([package], *words.split(), cwd=project)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done
    *_, said = done.stderr.splitlines()
    assert command.PACKAGES.get(package, package) in said and "pip install" in said, done.stderr


def test_what_is_no_package_of_ours_is_no_sentence(monkeypatch, capsys):
    def break_off(*_):
        raise ModuleNotFoundError("No module named 'colour'", name="colour")

    monkeypatch.setattr(command, "_call", break_off)
    with pytest.raises(ModuleNotFoundError):
        command.run(["boards"])


def test_what_agents_parse_imports_nothing_but_the_table():
    code = (
        "import sys; from clawlite.core.base import errors; before = set(sys.modules); "
        "from clawlite import command_line as c; c.parse(*c.find(['ask', 'x', '--record=f'])); "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["clawlite.agent_verbs", "clawlite.command_line"], done


# -- completion


def candidates(*words: str) -> list:
    return [name for name, _ in command_help.candidates(list(words), command._names)]


def test_every_verb_and_option_is_completed():
    for verb in NAMED:
        above, _, last = verb.name.rpartition(" ")
        assert last in candidates(*above.split(), last[:1]), verb.name
        for option in verb.options:
            found = candidates(*verb.name.split(), option.name)
            assert (option.name in found) == (option.place != HIDDEN), (verb.name, option.name)


@pytest.mark.parametrize(
    "words, found",
    [
        (["audit", ""], ["verify", "take"]),
        (["swarm", "dead", ""], ["retry", "drop"]),
        (["build", "--board", "pico2"], ["pico2", "pico2-w"]),
        (["build", "--board=pico2"], ["--board=pico2", "--board=pico2-w"]),
        (["build", "--board", "=", "pico2"], ["pico2", "pico2-w"]),  # as bash cuts it
        (["boards", "pico2"], ["pico2", "pico2-w"]),
        (["bench", "net"], ["netrules"]),
        (["boards", "new", "mine", "--from", "pico2"], ["pico2", "pico2-w"]),
        (["new", "x", "--template", "gr"], ["greenhouse"]),
        (["console", "--line", ""], ["auto", "plain", "reliable"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["swarm", "acl", "r"], ["redis"]),
        (["check", "--js"], ["--json"]),
        (["check", "--json", "--js"], []),
        (["build", "-o", ""], []),  # a file
        (["frobnicate", ""], []),
        ([], candidates("")),
    ],
)
def test_what_a_word_may_become(words, found):
    assert candidates(*words) == found


def test_completion_without_the_host_part(monkeypatch):
    monkeypatch.setitem(sys.modules, "clawlite.host.boards.boards", None)
    assert candidates("build", "--board", "") == [] and "--board" in candidates("build", "--b")


BASH = """\
source <(clawlite completion bash)
complete -p clawlite >&2
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _clawlite; echo "${COMPREPLY[*]}"; }
ask clawlite aud
ask clawlite audit ver
ask clawlite build --board = pico2-
ask clawlite new x --template gre
"""
ZSH = """\
autoload -U compinit && compinit -u -D
source <(clawlite completion zsh)
_files() { print files }
_describe() { print -rl -- ${(P)2} }
ask() { words=("$@"); CURRENT=$#; _clawlite }
ask clawlite aud
ask clawlite audit ver
ask clawlite build --board=pico2-
ask clawlite new x --template gre
ask clawlite check claw.y
"""
FISH = """\
clawlite completion fish | source
complete -C 'clawlite aud'
complete -C 'clawlite audit ver'
complete -C 'clawlite build --board=pico2-'
complete -C 'clawlite new x --template gre'
complete -C 'clawlite check claw.y'
"""


@pytest.mark.parametrize(
    "shell, script, found",
    [
        ("bash", BASH, "audit|verify|pico2-w|greenhouse"),
        (
            "zsh",
            ZSH,
            "audit:Show what is on record of an agent.|verify:Look whether records were changed, "
            "removed, moved or cut off.|--board=pico2-w:|greenhouse:|files",
        ),
        (
            "fish",
            FISH,
            "audit\tShow what is on record of an agent.|verify\tLook whether records were changed, "
            "removed, moved or cut off.|--board=pico2-w|greenhouse|claw.yaml",
        ),
    ],
)
def test_a_shell_completes(shell, script, found, project, tmp_path):
    if not shutil.which(shell):
        pytest.skip("%s is not installed" % shell)
    tool = tmp_path / "clawlite"
    tool.write_text('#!/bin/sh\nexec %s -m clawlite "$@"\n' % sys.executable)
    tool.chmod(0o755)
    place = "%s:%s" % (tmp_path, os.environ["PATH"])
    done = subprocess.run(
        [shell, "-f" if shell == "zsh" else "--norc" if shell == "bash" else "--no-config"],
        input=script,
        cwd=project,
        env=dict(os.environ, PATH=place, PYTHONPATH=str(ROOT), HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "|".join(done.stdout.splitlines()) == found, done
