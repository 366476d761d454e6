"""The command line as a newcomer meets it: real processes, what they print where, and their exit
codes.
"""

import json
import os
import resource
import shutil

import pytest
from agents import Agent, clawlite, linux, without_root_rights
from providers.project import nobody

from clawlite.core.image.image import Image
from clawlite.host.manifest import manifest

FILES = [
    "claw.yaml",
    "clawlite.toml",
    "policy.yaml",
    "reflex.toml",
    "sentences.jsonl",
    "tools.py",
    "try.jsonl",
    "tools/read-soil.yaml",
    "tools/water.yaml",
]
SCHEMAS = [".schema/claw.json", ".schema/clawlite.json", ".schema/rules.json"]
QUESTION = (
    "Approve water(seconds=3)?\n  rule ask-before-watering asks first: water does not "
    "flow back\n"
    "  (60 s, then denied)\n"
)
AWAY = "provider model: connection refused (tried 1 of 1); next: reflex\n"
DRY = "The soil is dry: 21 %. I would water it for 3 seconds.\n"


def _tree(folder) -> dict:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project that is built; who changes it takes a folder of their own."""
    folder = tmp_path_factory.mktemp("projects")
    assert clawlite("new", "g", "--offline", cwd=folder).returncode == 0
    assert clawlite("build", cwd=folder / "g").returncode == 0
    return folder / "g"


def test_the_newcomers_script(tmp_path):
    """``clawlite new g && cd g && clawlite run`` answers "is the soil dry?", asks before it waters,
    and waters after y.

    No model is there (the port is not the default one: somebody may have one), and none is asked: a
    rule fits."""
    done = clawlite("new", "g", "--endpoint", nobody()[1], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Made g with %s.\nNext: cd g && clawlite run\n" % ", ".join(FILES)
    project = tmp_path / "g"
    assert sorted(_tree(project)) == sorted(FILES + SCHEMAS)
    with Agent(linux("run"), tmp_path / "home", terminal=True, cwd=project) as agent:
        begun = agent.expect("> ").removeprefix("\x1b[?2004h")  # pasted lines are told apart
        assert begun == "g 1.0.0 is ready. /help lists the commands.\n"
        agent.line("is the soil dry?")
        assert agent.expect("[y/N] ") == "is the soil dry?\n" + DRY + QUESTION
        agent.line("y")
        assert agent.expect("\n> ") == "y\nWatered for 3 s."
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""
    assert sorted(_tree(project)) == sorted(FILES + SCHEMAS + ["claw.cbor"]), (
        "run wrote something of its own"
    )
    # the lines are kept where this program edits them: on a terminal that can move its cursor
    left = sorted(name for name in _tree(tmp_path / "home") if "console.history" not in name)
    assert left == [
        "state/g/calls.journal",
        "state/g/calls.lock",
        "state/g/log.jsonl",
        "state/g/state.marks",
    ]


def test_run_on_a_pipe(project):
    done = clawlite("run", cwd=project, stdin=b"is the soil dry?\nn\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "g 1.0.0 is ready. /help lists the commands.\n"
        + DRY
        + QUESTION
        + "Not watered. water: not approved: the person said no\n"
    )


def test_check(project):
    done = clawlite("check", cwd=project)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "claw.yaml: valid CKP (4 tools, 3 rules)\n",
        "",
    )
    done = clawlite("check", "--json", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "file": "claw.yaml",
        "tools": 4,
        "rules": 3,
        "not_asked": [],
        "drivers": [],
        "dead": [],
        "shadowed": [],
        "warnings": [],
    }


@pytest.mark.parametrize("level", ["wasm", "container", "vm"])
def test_what_build_refuses_check_refuses(project, tmp_path, level):
    shutil.copytree(project, tmp_path / "p")
    claw = tmp_path / "p/claw.yaml"
    claw.write_text(claw.read_text().replace('level: "none"', 'level: "%s"' % level))
    for words in (), ("--json",):
        said = [clawlite(verb, *words, cwd=tmp_path / "p") for verb in ("check", "build")]
        assert [done.returncode for done in said] == [2, 2]
        assert said[0].stderr == said[1].stderr and said[0].stdout == said[1].stdout
        assert 'level "%s" is not supported' % level in said[0].stderr


def test_build_shows_sizes_and_the_heap(project, tmp_path):
    output = tmp_path / "other.cbor"
    done = clawlite("build", "-o", output, cwd=project)
    size = output.stat().st_size
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "%s: %d bytes, needs: pins, reflex, tools, tools.py" % (output, size)
    assert output.read_bytes() == (project / "claw.cbor").read_bytes()
    found = json.loads(clawlite("build", "--json", "-o", output, cwd=project).stdout)
    assert set(found) == {
        "file",
        "bytes",
        "changed",
        "pinned",
        "drivers",
        "requires",
        "sections",
        "heap_bytes",
        "held_bytes",
        "swarm_bytes",
        "flash_bytes",
        "word_bits",
        "board",
        "fits",
        "fits_not",
        "why_not",
        "dead",
        "shadowed",
        "warnings",
    }
    assert found["changed"] is False and found["dead"] == [] and found["bytes"] == size
    assert sum(part["bytes"] for part in found["sections"]) < size
    assert 1000 < found["heap_bytes"] < 110000, (
        "the heap that a device needs is no guess: %d" % found["heap_bytes"]
    )


def test_build_says_whose_image_it_replaces(project, tmp_path):
    folder = _copy(project, tmp_path)
    claw = folder / "claw.yaml"
    (folder / "two.yaml").write_text(claw.read_text().replace('name: "g"', 'name: "two"'))
    assert clawlite("build", "claw.yaml", cwd=folder).stderr == ""
    done = clawlite("build", "two.yaml", cwd=folder)
    said = "claw.cbor: warning: it had the agent g, and now has two - to keep both: -o FILE\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert clawlite("build", "two.yaml", cwd=folder).stderr == ""


def test_build_names_rules_that_never_decide(project, tmp_path):
    folder = _copy(project, tmp_path)
    policy = folder / "policy.yaml"
    policy.write_text(
        policy.read_text() + '    - { id: "late", action: "allow", scope: "all" }\n'
        '    - { id: "nobody", action: "deny", scope: "tool", match: { name: "nope" '
        "} }\n"
    )
    done = clawlite("build", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and [rule["id"] for rule in found["shadowed"] + found["dead"]] == [
        "late",
        "nobody",
    ]
    line = [rule["line"] for rule in found["shadowed"]][0]
    done = clawlite("build", cwd=folder)
    assert (
        "policy.yaml:%d: rule late never decides: an earlier rule always decides first\n" % line
        in done.stderr
    )


def test_inspect(project):
    done = clawlite("inspect", "claw.cbor", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "g 1.0.0 - %d bytes, format 1, built by clawlite " % (project / "claw.cbor").stat().st_size
    )
    assert "  water                asks first (rule ask-before-watering)\n" in done.stdout
    found = json.loads(clawlite("inspect", "claw.cbor", "--json", cwd=project).stdout)
    assert set(found) == {
        "agent",
        "version",
        "identity",
        "compiler",
        "format",
        "bytes",
        "signed",
        "autonomy",
        "level",
        "sandbox",
        "tool_calls_per_minute",
        "requires",
        "sources",
        "companions",
        "sections",
        "stores",
        "audit",
        "tools",
        "skills",
        "services",
        "mcp_servers",
        "pins",
        "rules",
    }
    assert {"name": "pump", "pin": 15, "kind": "output", "safe": 0} in found["pins"]
    assert "  pump                 15, output, safe: 0\n" in done.stdout
    assert [tool["name"] for tool in found["tools"]] == [
        "read-soil",
        "water",
        "adc-read",
        "board-info",
    ]
    assert (
        found["signed"] is False and [rule["id"] for rule in found["rules"]][-1] == "default-deny"
    )


def test_the_empty_template_has_empty_lists(tmp_path):
    assert clawlite("new", "e", "--template", "empty", cwd=tmp_path).returncode == 0
    assert clawlite("build", cwd=tmp_path / "e").returncode == 0
    found = json.loads(clawlite("inspect", "claw.cbor", "--json", cwd=tmp_path / "e").stdout)
    assert (found["tools"], found["rules"], found["companions"]) == ([], [], [])
    done = clawlite("ask", "hello", cwd=tmp_path / "e")
    assert (done.returncode, done.stdout) == (0, "Hello! Teach me more in reflex.toml.\n")


def test_serve_from_a_manifest(project, tmp_path):
    with Agent(linux("serve", "--stdio"), tmp_path, cwd=project) as agent:
        agent.initialize()
        assert agent.is_serving()
        agent.end()
        assert agent.wait() == 0 and agent.errors() == ""


def test_run_does_not_strip_the_signature_of_an_image(project, tmp_path):
    folder = _copy(project, tmp_path)
    key = tmp_path / "key"
    key.write_text("0123456789abcdef0123")
    key.chmod(0o600)
    assert clawlite("build", "--key-file", key, cwd=folder).returncode == 0
    clawlite("run", cwd=folder, CLAWLITE_DEVICE_KEY_FILE=key)
    assert (
        json.loads(clawlite("inspect", "claw.cbor", "--json", cwd=folder).stdout)["signed"] is True
    )


def _copy(project, tmp_path):
    import shutil

    return shutil.copytree(project, tmp_path / "g", ignore=shutil.ignore_patterns(".home"))


HELP = [
    ("--help",),
    ("new", "--help"),
    ("check", "--help"),
    ("build", "--help"),
    ("inspect", "--help"),
    ("run", "--help"),
    ("ask", "--help"),
    ("serve", "--help"),
    ("ask", "-h"),
    ("--version",),
]


@pytest.mark.parametrize("args", HELP, ids=" ".join)
def test_help_is_data(args, tmp_path):
    done = clawlite(*args, cwd=tmp_path)
    assert done.returncode == 0 and "clawlite" in done.stdout and done.stderr == ""


def test_the_help_of_a_build_says_that_it_runs_programs(tmp_path):
    said = " ".join(clawlite("build", "--help", cwd=tmp_path).stdout.split())
    assert "Runs what the manifest names, as you and without a sandbox" in said


# (arguments, what stderr names): bad usage, a bad manifest or image is exit 2, one message, a next
# step, no traceback.
ERRORS = [
    ("check nowhere", ["nowhere", "does not exist"]),
    ("check nowhere.yaml", ["nowhere.yaml", "does not exist"]),
    ("check empty", ["empty: there is no claw.yaml", "clawlite new"]),
    ("check claw.cbor", ["claw.cbor"]),
    ("check noise.bin", ["noise.bin"]),
    ("check tools.py", ["tools.py: expected a manifest, found Python", "claw.yaml"]),
    ("check g", ["g", "does not exist"]),
    ("check --nope", ["unknown option --nope", "usage: clawlite check"]),
    ("check a b", ['unexpected "b"']),
    ("build nowhere", ["nowhere", "does not exist"]),
    ("build -o noise.bin", ["noise.bin exists and is no image", "-o"]),
    ("build -o claw.yaml", ["claw.yaml exists and is no image", "-o"]),
    ("build -o /dev/full", ["/dev/full exists and is no image", "-o"]),  # it never ends
    ("build -o empty", ["empty", "-o"]),
    ("build -o missing/x.cbor", ["missing/x.cbor", "No such file", "mkdir -p missing", "-o"]),
    ("build --key-file missing", ["missing", "No such file"]),
    ("build --key-file short.key", ["short.key", "16 bytes or more"]),
    ("inspect", ["expected IMAGE", "usage: clawlite inspect IMAGE"]),
    ("inspect missing.cbor", ["missing.cbor", "No such file", "clawlite build"]),
    ("inspect claw.yaml", ["claw.yaml", "d9 d9 f7", "clawlite build"]),
    ("inspect empty", ["empty", "directory"]),
    ("sim --heap 1", ["--heap: expected at least 16k, got 1"]),
    ("new empty --template greenhous", ["greenhous", "did you mean", "greenhouse"]),
    ("new tools", ["tools exists and is not empty"]),
    ("new claw.yaml", ["claw"]),
    ("new _under", ["_under", "letters, digits and hyphens"]),
    ("new noise.bin/g", ["noise.bin/g"]),
    ("new", ["expected NAME", "clawlite new --list"]),
    ("run nowhere", ["nowhere", "does not exist"]),
    ("run missing.cbor", ["missing.cbor", "No such file", "clawlite build"]),
    ("run noise.cbor", ["noise.cbor", "d9 d9 f7"]),
    ("run a b", ['unexpected "b"', "usage: clawlite run"]),
    ("run --prot X", ["clawlite run: unknown option --prot - did you mean --port?"]),
    ("ask", ["expected TEXT", "usage: clawlite ask"]),
    ("ask hi --aprove", ["clawlite ask: unknown option --aprove - did you mean --approve?"]),
    ("serve", ["expected a way to serve", "--stdio", "--socket"]),
    ("serve missing.cbor --stdio", ["missing.cbor", "No such file"]),
    (
        "swarm dance",
        ['there is no command "swarm dance" - commands: up, run, status, trace, dead, stop'],
    ),
    ("buid", ["there is no command", 'did you mean "build"?']),
]


@pytest.fixture(scope="module")
def folder_of_errors(project, tmp_path_factory):
    folder = _copy(project, tmp_path_factory.mktemp("errors"))
    (folder / "empty").mkdir()
    (folder / "noise.bin").write_bytes(bytes(range(256)))
    (folder / "noise.cbor").write_bytes(bytes(range(256)))
    (folder / "short.key").write_text("short")
    (folder / "short.key").chmod(0o600)
    return folder


@pytest.mark.parametrize("args, said", ERRORS, ids=[args for args, _ in ERRORS])
def test_errors_are_told_on_stderr_with_exit_2(folder_of_errors, args, said):
    before = _tree(folder_of_errors)
    done = clawlite(*args.split(), cwd=folder_of_errors)
    assert done.returncode == 2, done
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert [word for word in said if word.lower() not in done.stderr.lower()] == [], done.stderr
    assert len(done.stderr.splitlines()) <= 4, done.stderr
    assert _tree(folder_of_errors) == before


@pytest.mark.parametrize(
    "args",
    [
        "check nowhere",
        "build nowhere",
        "build -o noise.bin",
        "inspect missing.cbor",
        "inspect noise.cbor",
    ],
)
def test_an_error_with_json_is_one_document(folder_of_errors, args):
    done = clawlite(*args.split(), "--json", cwd=folder_of_errors)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["code"] in (-32060, -32603) and error["message"]


MISTAKES = [
    (
        "claw.yaml",
        'autonomy: "autonomous"',
        'autonomy: "autonomus"',
        ["claw.yaml:15", 'did you mean "autonomous"?'],
    ),
    (
        "claw.yaml",
        "  identity:\n",
        "  identiti:\n",
        ["claw.yaml:", "identiti", 'did you mean "identity"?'],
    ),
    ("claw.yaml", "kind: Claw\n", "kind: Claw\nkind: Claw\n", ["claw.yaml:5", "kind"]),
    ("claw.yaml", "kind: Claw\n", "kind: Claw\nx: \xff\n", ["claw.yaml", "UTF-8"]),
    ("claw.yaml", "spec:\n", "spec: {" + "a: {" * 2000 + "\n", ["claw.yaml"]),
    (
        "policy.yaml",
        'action: "deny"',
        'action: "denie"',
        ["policy.yaml:22", 'expected "allow", "audit-only", "deny" or'],
    ),
    ("clawlite.toml", "[console]", "[consol]", ["clawlite.toml", 'did you mean "console"?']),
    (
        "reflex.toml",
        'call = "read-soil"',
        'call = "read-sol"',
        ["reflex.toml", 'did you mean "read-soil"?'],
    ),
    ("tools.py", "def water(", "def water(:", ["tools.py:", "not Python"]),
    (
        "tools.py",
        "def read_soil",
        "def red_soil",
        ["tools/read-soil.yaml:8", 'did you mean "red-soil"?'],
    ),
    ("claw.yaml", '"./policy.yaml"', '"./polcy.yaml"', ["polcy.yaml", "claw.yaml"]),
    ("claw.yaml", "adc-read@1.0.0", "adc-raed@1.0.0", ["adc-raed", "adc-read"]),
]


@pytest.mark.parametrize(
    "file, old, new, said", MISTAKES, ids=["%s-%.12s" % (m[0], m[2].strip()) for m in MISTAKES]
)
def test_mistakes_are_told_with_file_line_and_a_way_out(project, tmp_path, file, old, new, said):
    folder = _copy(project, tmp_path)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_bytes(
        text.replace(old, new, 1).encode("latin-1" if "\xff" in new else "utf-8")
    )
    done = clawlite("run", cwd=folder)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    assert [word for word in said if word not in done.stderr] == [], done.stderr
    assert (
        done.stderr.splitlines()[-1].endswith(("1 problem.", " problems."))
        and len(done.stderr.splitlines()) <= 8
    )


def test_nothing_is_written_outside_the_project_and_the_state(tmp_path):
    home, state = tmp_path / "home", tmp_path / "elsewhere"
    (tmp_path / "p").mkdir()
    for words in (
        ("new", "g", "--offline"),
        ("check", "g"),
        ("build", "g"),
        ("inspect", "g/claw.cbor"),
        ("ask", "is the soil dry?", "g"),
    ):
        with Agent(linux(*words), home, cwd=tmp_path / "p", env={"CLAWLITE_STATE": state}) as agent:
            assert agent.wait() in (0, 5), agent.errors()
    assert _tree(home) == {} and sorted(_tree(state)) == [
        "g/calls.journal",
        "g/calls.lock",
        "g/log.jsonl",
        "g/state.marks",
    ]
    assert sorted(_tree(tmp_path / "p")) == sorted(
        ["g/" + name for name in FILES + SCHEMAS + ["claw.cbor"]]
    )


def test_by_default_state_lies_where_xdg_says(project, tmp_path):
    with Agent(
        ["env", "-u", "CLAWLITE_STATE", *linux("ask", "hello")], tmp_path, cwd=project
    ) as agent:
        assert agent.wait() == 0
    assert sorted(_tree(tmp_path)) == [".local/state/clawlite/g/log.jsonl"]


@pytest.mark.parametrize(
    "words",
    [["new", "locked/g"], ["build", "-o", "locked/x.cbor"], ["run", "locked"]],
    ids=" ".join,
)
def test_a_folder_that_may_not_be_written_is_one_error(project, tmp_path, words):
    folder = _copy(project, tmp_path)
    locked = tmp_path / "g/locked"
    os.makedirs(locked)
    for name in FILES:
        (locked / name).parent.mkdir(exist_ok=True)
        (locked / name).write_bytes((project / name).read_bytes())
    locked.chmod(0o500)
    with Agent(without_root_rights(linux(*words)), tmp_path / "home", cwd=folder) as agent:
        agent.end()
        code = agent.wait()
        assert "Traceback" not in agent.errors() and (code, agent.text()) == (2, ""), agent.errors()
        assert (
            "locked" in agent.errors()
            and "Permission denied" in agent.errors()
            and len(agent.errors().splitlines()) <= 2
        )
    locked.chmod(0o700)


def test_a_file_that_is_far_too_big_is_refused_unread(tmp_path):
    with open(tmp_path / "big.cbor", "wb") as file:
        file.write(b"\xd9\xd9\xf7\x86\x01")
        file.truncate(4 << 30)  # a hole: no disk is used
    for verb in ("run", "inspect"):
        with Agent(
            linux(verb, tmp_path / "big.cbor"),
            tmp_path / "home",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
        ) as agent:
            assert agent.wait() == 2 and "Traceback" not in agent.errors()
            assert "big.cbor" in agent.errors() and len(agent.errors().splitlines()) == 1


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path, project):
    folder = _copy(project, tmp_path)
    (folder / "reflex.toml").unlink()
    os.mkfifo(folder / "reflex.toml")
    done = clawlite("check", cwd=folder)
    assert (
        done.returncode == 2 and "reflex.toml" in done.stderr and len(done.stderr.splitlines()) == 2
    )


@pytest.mark.parametrize("words", [["run"], ["ask", "hello"], ["inspect"]], ids=" ".join)
def test_an_image_that_is_a_named_pipe_is_refused_and_not_waited_for(tmp_path, words):
    os.mkfifo(tmp_path / "slow.cbor")
    done = clawlite(*words, "slow.cbor", cwd=tmp_path)
    assert done.returncode == 2 and "a pipe" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("template", ["blink", "chat", "empty", "greenhouse"])
def test_every_template_builds_and_answers(tmp_path, template):
    asks = template in ("chat", "greenhouse")
    made = clawlite(
        "new",
        "agent",
        "--template",
        template,
        *(("--endpoint", nobody()[1]) if asks else ()),
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    done = clawlite(
        "run", "agent", cwd=tmp_path, stdin=b"hello\n", CLAWLITE_STATE=str(tmp_path / "state")
    )
    assert done.returncode == 0 and "agent " in done.stdout and "Hello!" in done.stdout, (
        done.stdout,
        done.stderr,
    )
    assert (AWAY in done.stdout) == (template == "chat"), (
        "the rules of a greenhouse come before its model"
    )


@pytest.mark.parametrize("template, chain", [("chat", [2, 0]), ("greenhouse", [2, 0, -1])])
def test_a_project_has_a_model_unless_it_is_left_out(tmp_path, template, chain):
    """5.2: a fallback chain from a remote provider to the rules; -1: rules that fit come first."""
    for name, options, chain in (("a", (), chain), ("b", ("--offline",), [0])):
        assert clawlite("new", name, "--template", template, *options, cwd=tmp_path).returncode == 0
        assert clawlite("build", cwd=tmp_path / name).returncode == 0
        data = (tmp_path / name / "claw.cbor").read_bytes()
        image = Image(lambda at, size: data[at : at + size], len(data))
        assert image.agent.providers == chain
        limits = [one.spec.limits for one in manifest.load(tmp_path / name).providers]
        if len(chain) > 1:  # a small model may run on
            assert limits[0].max_context_window == 4096 and limits[0].tokens_per_request == 2048
        if len(chain) > 1:
            assert image.provider(0)[3:7] == [
                "127.0.0.1",
                11434,
                "/v1/chat/completions",
                "llama3.2",
            ]


@pytest.mark.parametrize(
    "options, said",
    [
        (["--endpoint", "ftp://x"], "expected http://HOST/... or https://HOST/..."),
        (["--endpoint", "http://user:pw@h/v1"], "has no place in a URL"),
        (["--model", "m", "--offline"], "--offline asks no model"),
        (["--template", "blink", "--endpoint", "http://h/v1"], "takes no model"),
    ],
)
def test_a_model_that_cannot_be_is_refused_before_anything_is_written(tmp_path, options, said):
    made = clawlite("new", "agent", *options, cwd=tmp_path)
    assert made.returncode == 2 and said in made.stderr and not (tmp_path / "agent").exists()


@pytest.mark.parametrize(
    "verb", ["console", "check", "tools", "inspect", "boards", "doctor", "swarm"]
)
def test_a_word_of_the_command_line_is_one_line_of_an_error(tmp_path, verb):
    """A shell puts names of files there, which somebody else may have chosen."""
    word = "x\nApprove evil()?\r\x1b[2K\u202e\x9b2J" + "e" + "\u0301" * 9
    done = clawlite(verb, word, "b", "c", "--json", cwd=tmp_path)
    assert done.returncode == 2, done
    for said in (done.stdout, done.stderr):
        assert not set("\r\x1b\u202e\x9b") & set(said) and "\u0301" * 4 not in said, said
        assert not any(line.startswith("Approve") for line in said.splitlines()), said
