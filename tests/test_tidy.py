"""What a newcomer meets first, and what must not be in the repository."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from later import Later

ROOT = Path(__file__).resolve().parents[1]
ADR_WORDS = 1000
# Each takes a tenth of a second and more.
LONG_TO_IMPORT = set("a2a anthropic authlib flask httpx mcp openai pydantic starlette".split())
IMPORT_AT_ONCE = re.compile(r"^(?:from|import) (\w+)", re.M)  # at the top of a file
COLUMNS = 100  # ruff holds the Python files to it
# Written in pieces, so that this file does not find itself.
FORBIDDEN = {
    "a host of a package registry": re.compile(
        "|".join(
            (
                "py" r"pi\.org",
                "python" r"hosted\.org",
                "np" r"mjs\.(org|com)",
                "deb" r"ian\.org",
                "raspberrypi" r"\.(org|com)/debian",
                "proxy" r"\.golang\.org",
                "crat" r"es\.io",
            )
        )
    ),
    "a path of somebody's machine": re.compile(r"(?<![\w.~/-])/(wor" r"k|roo" r"t)(?![\w-])"),
    "a mark of a merge that nobody finished": re.compile(r"^(<{7}|>{7}|\|{7}) |^={7}$"),
    # Closed again, or after a failed close, it may be another file's: SQLite's, with a journal's
    # lines written into it.
    "a descriptor that is closed while its number is kept": re.compile(r"\bos\.close\(se" r"lf\."),
    "an unfinished mark": re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b"),
}


def _tracked() -> list:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def _findings(text: str, pattern: re.Pattern) -> list:
    return [number for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_no_tracked_file_holds(what):
    found = []
    for name in _tracked():
        try:
            text = (ROOT / name).read_bytes().decode()
        except UnicodeDecodeError:  # not text
            continue
        found += ["%s:%d" % (name, line) for line in _findings(text, FORBIDDEN[what])]
    assert found == []


@pytest.mark.parametrize(
    "what, bad, good",
    [
        (
            "a host of a package registry",
            "see https://py" + "pi.org/project/x",
            "see https://json-schema.org/",
        ),
        (
            "a path of somebody's machine",
            "cd /wor" + "k/main",
            "path_within /workspace/notes, a/wor" + "k, paperwork",
        ),
        (
            "a mark of a merge that nobody finished",
            "<" + "<<<<<< HEAD",
            "<<<<< five, ======== eight",
        ),
        ("a mark of a merge that nobody finished", ">" + ">>>>>> 6e94817 (a commit)", ">>> 6"),
        ("a mark of a merge that nobody finished", "=" + "======", "a ======="),
        (
            "a descriptor that is closed while its number is kept",
            "os.close(se" + "lf._fd)",
            "fd, self._fd = self._fd, -1; os.close(fd)",
        ),
        ("an unfinished mark", "# TO" + "DO: later", "# to do it later"),
    ],
)
def test_patterns_bite(what, bad, good):
    assert _findings(bad, FORBIDDEN[what]) == [1]
    assert _findings(good, FORBIDDEN[what]) == []


def _long_lines(name: str, text: str) -> list:
    """The numbers of the lines over COLUMNS, of those that can be broken.

    In Markdown a heading, a row of a table and a line of a fenced block cannot, and in a Makefile
    we hold comments alone.
    """
    found, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        start = line.lstrip()
        if name.endswith(".md"):
            if start.startswith("```"):
                fenced = not fenced
            if fenced or start.startswith(("#", "|")):
                continue
        elif name == "Makefile" and not line.startswith("#"):
            continue
        if len(line) > COLUMNS and " " in start:  # one long address has nowhere to be broken
            found.append(number)
    return found


def test_lines_of_prose_are_short():
    found = [
        f"{name}:{number}: over {COLUMNS} columns; break the line, the rendered page stays the same"
        for name in _tracked()
        if name.endswith(".md") or name == "Makefile" or name.startswith("boards/")
        for number in _long_lines(name, (ROOT / name).read_text())
    ]
    assert found == []


def test_long_lines_are_found():
    words = "word " * 30
    assert _long_lines("a.md", f"short\n{words}\n- {words}\n    {words}") == [2, 3, 4]
    assert _long_lines("a.md", f"# {words}\n| {words} |\nhttps://{'a' * 100}") == []
    assert _long_lines("a.md", f"```sh\n{words}\n```\n{words}") == [4]
    assert _long_lines("Makefile", f"\t{words}\n# {words}") == [2]
    assert _long_lines("boards/mine.toml", f"sources = ['{words}']") == [1]


LINK = re.compile(r"\]\(([^)\s]+)\)")
DOCUMENT = re.compile(r"(?<![\w/.-])(docs/[\w/-]+\.md)(?:#([\w-]+))?")  # as code and hints name it


def _anchors(text: str) -> set:
    """Return the anchors of the headings of a Markdown file, as GitHub makes them."""
    titles = [LINK.sub("]", title) for title in re.findall(r"^#+ (.*)$", text, re.M)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _broken(name: str, targets: list) -> list:
    """Return the targets (a path from the file *name*, and an anchor) that lead nowhere."""
    found = []
    for path, anchor in targets:
        file = (ROOT / name).parent / path if path else ROOT / name
        if not file.exists():
            found.append(f"{name}: {path} is not there")
        elif anchor and anchor not in _anchors(file.read_text()):
            found.append(f"{name}: {path} has no heading #{anchor}")
    return found


def test_links_of_documents_lead_somewhere():
    """Also after a heading was renamed, or a file moved."""
    found = []
    for name in _tracked():
        if name.endswith(".md"):
            links = LINK.findall((ROOT / name).read_text())
            local = [link.partition("#") for link in links if "://" not in link]
            found += _broken(name, [(path.replace("\\", ""), anchor) for path, _, anchor in local])
    assert found == []


def test_the_index_lists_every_document():
    """A maker finds each by what they want to do; so does one who adds a document."""
    index = (ROOT / "docs/README.md").read_text()
    names = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert sorted(name for name in names if "](%s)" % name not in index) == []


def test_documents_that_code_names_are_there():
    """A hint that says ``docs/swarm.md`` sends a person to a file that is there."""
    found = []
    for name in _tracked():
        if name.startswith(("clawlite/", "firmware-host/")) and name.endswith(".py"):
            named = DOCUMENT.findall((ROOT / name).read_text())
            found += _broken(name, [(str(ROOT / path), anchor) for path, anchor in named])
    assert found == []


def test_broken_links_are_found():
    assert _anchors("# A `b`, c\n## [D](e.md): f\n") == {"a-b-c", "d-f"}
    missing = [("no.md", ""), ("README.md", "nowhere"), ("", "where-to-go-next")]
    assert len(_broken("README.md", missing)) == 2


def test_the_map_names_functions_that_are_there():
    """Of "Where to look first" in docs/layout.md: a function, and the file that it is in."""
    text = (ROOT / "docs/layout.md").read_text().partition("## Where to look first")[2]
    rows = re.findall(r"`(\w+)` in\s+\[\S+\]\(\.\./(\S+)\)", text.partition("\n## ")[0])
    assert len(rows) > 9, rows
    absent = [row for row in rows if not re.search(r"^ *def %s\(" % row[0], _text(row[1]), re.M)]
    assert absent == []


def _text(name: str) -> str:
    return (ROOT / name).read_text()


# ``module.Class`` in a comment or a docstring
REFERENCE = re.compile(r"``([a-z_][a-z0-9_]*)\.([A-Z]\w*)")
ELSEWHERE = {"machine", "network", "serial"}  # of MicroPython, and of pyserial


def test_classes_that_texts_name_are_there():
    """A reader who looks for ``module.Class`` finds it, also after somebody renamed either."""
    texts = {
        Path(name): (ROOT / name).read_text()
        for name in _tracked()
        if name.startswith(("clawlite/", "firmware-host/")) and name.endswith(".py")
    }
    named = [
        (path, module, name)
        for path, text in texts.items()
        for module, name in REFERENCE.findall(text)
        if module not in ELSEWHERE and module not in sys.stdlib_module_names
    ]
    known = {module: set() for _, module, _ in named}
    for path, text in texts.items():
        if path.stem in known:
            known[path.stem].update(
                getattr(node, "name", None) or getattr(node, "id", None)
                for node in ast.walk(ast.parse(text))
                if isinstance(node, (ast.ClassDef, ast.Name, ast.alias))
            )
    missing = [
        f"{path}: ``{module}.{name}``" for path, module, name in named if name not in known[module]
    ]
    assert missing == []


def test_readme_starts_with_the_two_commands():
    """The first code block, within the first screen: one command to run it, one to test it."""
    top = (ROOT / "README.md").read_text().splitlines()[:25]
    fences = [i for i, line in enumerate(top) if line.startswith("```")]
    assert len(fences) >= 2, "no code block within the first 25 lines"
    commands = [line.split("#")[0].strip() for line in top[fences[0] + 1 : fences[1]]]
    assert [c for c in commands if c] == ["make run", "make test"]


def test_changelog_and_licence_are_there():
    assert "## " in (ROOT / "CHANGELOG.md").read_text()
    assert "Apache License" in (ROOT / "LICENSE").read_text().splitlines()[0]


def test_decisions_are_numbered_and_short():
    names = sorted(p.name for p in (ROOT / "docs/adr").iterdir() if p.name != "README.md")
    assert [n for n in names if not re.fullmatch(r"\d{4}-[a-z0-9]+(-[a-z0-9]+)*\.md", n)] == []
    numbers = [n[:4] for n in names]
    assert len(set(numbers)) == len(numbers) and numbers[0] == "0001"
    long = {n: len((ROOT / "docs/adr" / n).read_text().split()) for n in names}
    assert {n: count for n, count in long.items() if count > ADR_WORDS} == {}


def test_every_decision_is_in_the_index():
    index = (ROOT / "docs/adr/README.md").read_text()
    for path in (ROOT / "docs/adr").glob("[0-9]*.md"):
        title = path.read_text().splitlines()[0]
        assert title.startswith("# %s: " % path.name[:4]), path.name
        assert "| [%s](%s) | %s |" % (path.name[:4], path.name, title[8:]) in index, path.name


def test_ci_runs_everything():
    script = (ROOT / ".ci/run").read_text()
    assert "CLAWLITE_REQUIRE_ALL=1 make test" in script and "|| true" not in script
    assert script.splitlines()[-1] == "make bench-gate"


def test_no_test_loads_an_sdk_before_it_is_played():
    """Every process of a run imports all files of tests: tests/helpers/later.py."""
    left, seen, found = sorted((ROOT / "tests").glob("**/test_*.py")), set(), []
    while left:
        path = left.pop()
        names = set(IMPORT_AT_ONCE.findall(path.read_text()))
        found += ["%s: %s" % (path.name, name) for name in sorted(names & LONG_TO_IMPORT)]
        helpers = {ROOT / "tests" / "helpers" / (name + ".py") for name in names - seen}
        seen |= names
        left += [helper for helper in helpers if helper.is_file()]
    assert found == []


def test_what_pytest_asks_of_each_object_imports_nothing():
    module = Later("a module that is nowhere")
    assert (
        getattr(module, "_pytestfixturefunction", None) is None and inspect.unwrap(module) is module
    )
    with pytest.raises(ModuleNotFoundError):
        module.client
