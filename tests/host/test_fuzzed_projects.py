"""Whatever stands in claw.yaml, clawlite.toml or tools.py, ``check`` says what is wrong with it and never ends in a traceback.

A slice here; `make soak` plays 100,000 variants of each file, with a seed.
"""
import os
import re
import shutil
from pathlib import Path

import pytest
from mutations import mutated

from clawlite.core.errors import ClawError
from clawlite.host import check, new

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
FILES = {"yaml": ("claw.yaml", "policy.yaml", "tools/water.yaml"), "toml": ("clawlite.toml", "reflex.toml"), "py": ("tools.py",)}
# Found by this fuzz, or by hand: what each of these came to was a traceback.
FOUND = [
    ("claw.yaml", lambda text: text + "{{ a: 1 }}: 2\n"),
    ("claw.yaml", lambda text: text + "? [{a: 1}, {? {b: 1} : 2}]\n: 2\n"),
    ("claw.yaml", lambda text: re.sub("description: .*", r'description: "\\ud800"', text)),
    ("tools.py", lambda text: text + '\n\ndef bad(x: int) -> int:\n    "Say \\ud800 it."\n    return x\n'),
    ("tools.py", lambda text: text + '\n\ndef bad(x: str = "\\udfff") -> int:\n    "Say it."\n    return x\n'),
]


@pytest.fixture(scope="module")
def greenhouse(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed") / "greenhouse"
    new.new(str(folder))
    return folder


def play(project: Path, folder: Path, kind: str, seeds) -> int:
    """Check *project* with one file of *kind* broken by each of *seeds*; return how many variants were still valid."""
    shutil.copytree(project, folder)
    texts = {name: (project / name).read_text() for name in FILES[kind]}
    valid = 0
    for seed in seeds:
        name = FILES[kind][seed % len(FILES[kind])]
        text = mutated(texts[name], kind, seed)
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            check.check(str(folder))
            valid += 1
        except ClawError as e:
            str(e).encode()             # what is printed has no lone surrogate either
        except BaseException as e:
            e.add_note(f"seed {seed} of {name}: what broke it:\n{text}")
            raise
        (folder / name).write_text(texts[name])
    return valid


@pytest.mark.parametrize("kind", FILES)
def test_no_variant_ends_in_a_traceback(greenhouse, tmp_path, kind):
    first = SEED * 1_000_000
    valid = play(greenhouse, tmp_path / "g", kind, range(first, first + 150))
    assert 0 < valid < 150              # some are harmless, most are not: else this tests nothing


@pytest.mark.soak
@pytest.mark.parametrize("kind", FILES)
def test_no_variant_of_many_ends_in_a_traceback(greenhouse, tmp_path, kind):
    first = SEED * 1_000_000
    assert play(greenhouse, tmp_path / "g", kind, range(first, first + 100_000)) > 0


@pytest.mark.parametrize("name, broken", FOUND)
def test_what_was_found_is_told(greenhouse, tmp_path, name, broken):
    shutil.copytree(greenhouse, tmp_path / "g")
    (tmp_path / "g" / name).write_text(broken((tmp_path / "g" / name).read_text()))
    with pytest.raises(ClawError):
        check.check(str(tmp_path / "g"))
