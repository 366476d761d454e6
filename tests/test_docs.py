"""What holds of README and docs/ as text: navigation, spelling, size, length of sentences."""

import importlib.util
import subprocess
import sys

import documents
import pytest
from agents import ROOT


def load_site(name: str = "site"):
    spec = importlib.util.spec_from_file_location("docs_" + name, ROOT / f"docs/site/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_page_has_one_place_in_the_navigation():
    """Of `make docs`: four kinds are kept apart, and decisions are reached from their index."""
    site = load_site()
    kinds = site.read_navigation()
    assert list(kinds) == ["", "Tutorials", "How-to", "Reference", "Explanation"]
    placed = [page for pages in kinds.values() for page in pages]
    wanted = [one for one in site.list_pages() if not one.startswith("docs/adr/0")]
    assert sorted(placed) == sorted(wanted)
    for kind, folder in (("Tutorials", "docs/tutorials/"), ("How-to", "docs/howto/")):
        assert {one for one in placed if one.startswith(folder)} <= set(kinds[kind]), kind


def test_a_link_to_a_source_file_is_text_on_the_site():
    pages = ["docs/a.md", "README.md"]
    text = "[x](../clawlite/x.py), [a](a.md#b), [r](../README.md), [w](https://w.org/)"
    shown = "x, [a](a.md#b), [r](../README.md), [w](https://w.org/)"
    assert load_site().adapt_links("docs/a.md", text, pages) == shown


def test_words_are_spelt_right():
    pytest.importorskip("codespell_lib")
    names = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs"]
    words = [sys.executable, "-m", "codespell_lib", "--ignore-words-list=te", *names]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_list_stands_apart_from_the_paragraph_above():
    """Markdown of the site shows it as a list only then."""
    found = []
    for path in documents.list_documents():
        before, fenced = "", False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            if not fenced and before and documents.ITEM.match(line) and not line.startswith(" "):
                if not documents.ITEM.match(before) and not before.startswith("  "):
                    found.append("%s:%d" % (path.relative_to(ROOT), number))
            before = line.strip() and line
    assert found == []


def test_the_reference_is_current():
    """Tables of tools, methods, boards, rooms, settings, events and limits."""
    changed = [str(path.relative_to(ROOT)) for path in load_site("reference").list_changes()]
    assert changed == [], "the sources have changed: make reference"
