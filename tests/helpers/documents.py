"""The documents of the project, as text that is counted: words, sentences, commands.

1. Documents are README, CHANGELOG and what is below docs/.  A page that a command writes, and the
   part of a page between ``<!-- written by ... -->`` and ``<!-- end of what it wrote -->``, is
   generated.
2. Sentences are those of paragraphs and of items of lists.  Tables, headings and code are not.
"""

import importlib.util
import re

from agents import ROOT

GENERATED = re.compile(r"<!-- written by .*?(?:<!-- end of what it wrote -->|\Z)", re.S)
FENCE = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +")
# code that is indented, but not what goes on in an item of a list
INDENTED = re.compile(r"(?:\A|\n\n)(?: {4}(?![-*] |\d+\. ).*\n?)+")
# an end of a sentence, but not that of "e.g." or of a name such as tools.py
END = re.compile(r"(?<!e\.g)(?<!i\.e)[.!?][)\"*_]*(?=\s+[\"(*_`\[]*(?:[A-Z0-9`/.-]|clawlite)|\s*$)")


def load_site(name: str = "site"):
    """Return the module *name* of docs/site."""
    spec = importlib.util.spec_from_file_location("docs_" + name, ROOT / f"docs/site/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list_documents() -> list:
    """Return the paths of all documents."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read_written(path) -> str:
    """Return what people wrote of a document."""
    return GENERATED.sub("", path.read_text("utf-8"))


def list_sentences(text: str) -> list:
    """Return the sentences of a document, without marks of links and emphasis."""
    text = INDENTED.sub("\n\n", FENCE.sub("\n", text))
    blocks, block = [], []
    for line in [*text.splitlines(), ""]:
        other = not line.strip() or line.lstrip().startswith(("#", "|", "![", "<!--"))
        if other or ITEM.match(line):
            blocks.append(" ".join(block))
            block = []
        if not other:
            block.append(ITEM.sub("", line).strip())
    blocks.append(" ".join(block))
    plain = [re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", one) for one in blocks if one]
    return [part.strip() for one in plain for part in split_sentences(one) if part.strip()]


def split_sentences(text: str) -> list:
    found, start = [], 0
    for match in END.finditer(text):
        found.append(text[start : match.end()])
        start = match.end()
    return [*found, text[start:]]
