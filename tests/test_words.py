"""Functions begin with a verb, and files have the field's word for a name (CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# participles that do not end in "ed", and a private word
WORDS = set(
    "begun bound bought broken brought built caught chosen dealt done drawn driven fallen felt "
    "forgotten fought found frozen given gone got grown heard heed held hidden hurt kept known "
    "laid led left lent lost made meant paid proven risen rung said seen sent shown shut slept "
    "sold spent spoken stolen stuck sunk swept sworn taken thrown told torn understood withdrawn "
    "woken won worn wound written".split()
)
# verbs that end in "ed", or have the form of a participle
VERBS = set("bind bound embed feed found need seed shed shut speed".split())
# share of a layer's functions that may begin with such a word
BOUNDS = {
    "clawlite": 0.025,
    "clawlite/core": 0.02,
    "clawlite/protocols": 0.02,
    "clawlite/scan": 0.02,
    "firmware-host/micropython": 0.02,
    "clawlite/linux": 0.02,
    "clawlite/host": 0.02,
}
RETIRED = set(
    "accept chance circle combined desk door holders inside kept_content kept_state lead mended "
    "misfit named orders places said_times seen stand_in tally together trial waiting "
    "watched".split()
)


def names(source: str):
    """Yield the name of each function in *source*, but for ``__init__`` and the like."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("__"):
                yield node.name


def is_participle(name: str) -> bool:
    word = name.strip("_").split("_")[0]
    return word not in VERBS and (word.endswith("ed") or word in WORDS)


@pytest.mark.parametrize("layer", BOUNDS)
def test_functions_begin_with_a_verb(layer):
    files = (ROOT / layer).glob("*.py" if layer == "clawlite" else "**/*.py")
    found = [(file, name) for file in sorted(files) for name in names(file.read_text())]
    wrong = [
        "%s: %s" % (file.relative_to(ROOT), name) for file, name in found if is_participle(name)
    ]
    assert found and len(wrong) < BOUNDS[layer] * len(found), "\n".join(wrong)


def test_no_file_has_a_name_that_was_given_up():
    files = [file for top in ("clawlite", "firmware-host") for file in (ROOT / top).rglob("*.py")]
    assert files
    assert [str(file.relative_to(ROOT)) for file in files if file.stem in RETIRED] == []


def test_a_participle_is_seen():
    source = "class A:\n    async def _told(self): pass\ndef feed(): pass\ndef ended_by(): pass\n"
    assert [name for name in names(source) if is_participle(name)] == ["ended_by", "_told"]
