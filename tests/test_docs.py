"""What holds of README and docs/ as text: navigation, spelling, size, length of sentences."""

import subprocess
import sys

import documents
import pytest
from agents import ROOT


def test_each_page_has_one_place_in_the_navigation():
    """Of `make docs`: four kinds are kept apart, and decisions are reached from their index."""
    site = documents.load_site()
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
    assert documents.load_site().adapt_links("docs/a.md", text, pages) == shown


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
    changed = [
        str(path.relative_to(ROOT)) for path in documents.load_site("reference").list_changes()
    ]
    assert changed == [], "the sources have changed: make reference"


WORDS = 60000  # of README, CHANGELOG and docs/, without what is generated
SENTENCE = 25  # words
LONG_SENTENCES = 0.03  # of all


def test_documents_have_at_most_so_many_words():
    count = sum(len(documents.read_written(path).split()) for path in documents.list_documents())
    assert count <= WORDS, "delete what neither a maker nor a changer needs"


def test_sentences_are_short():
    """One idea each; decisions are for those who change the code, and not counted."""
    sentences = [
        (path.name, one)
        for path in documents.list_documents()
        if path.parent.name != "adr"
        for one in documents.list_sentences(documents.read_written(path))
    ]
    long = [(name, one) for name, one in sentences if len(one.split()) > SENTENCE]
    assert len(sentences) > 1500 and len(long) <= LONG_SENTENCES * len(sentences), long


def test_sentences_and_generated_text_are_told_apart():
    text = (
        "# Title\n\nOne, e.g. `a.py`. Two\nlines! It is 3. End\n\n- item one\n- item two. More\n\n"
        "| a | b |\n\n```\ncode. Code\n```\n\n    more. Code\n"
    )
    parts = ["One, e.g. `a.py`.", "Two lines!", "It is 3.", "End", "item one", "item two.", "More"]
    assert documents.list_sentences(text) == parts
    made = "kept\n<!-- written by x -->\nmade\n<!-- end of what it wrote -->\nkept\n"
    assert documents.GENERATED.sub("", made) == "kept\n\nkept\n"
    assert documents.GENERATED.sub("", "a\n<!-- written by x -->\nall of it\n") == "a\n"
