"""Makes the site of the documents: ``make docs``.

    python docs/site/site.py

1. The pages are copies of the files, at the same places, so that links lead where they lead in a
   checkout.  A link to what is no page (a source file) is shown as its text.
2. Nothing is fetched, when it is made and when it is read: fonts are the reader's, and the search
   works from files.
3. `mkdocs.yml` has the navigation: tutorials, how-to, reference, explanation.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "build/docs-pages"
SITE = ROOT / "build/docs-site"
CONFIG = Path(__file__).with_name("mkdocs.yml")
ALONE = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"]
FETCHED = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def read_navigation() -> dict:
    """Return {kind: names of its pages} of the navigation; "" has those above all kinds."""
    import yaml

    kinds = {"": []}
    for entry in yaml.safe_load(CONFIG.read_text())["nav"]:
        if isinstance(entry, str):
            kinds[""].append(entry)
        else:
            kinds.update(entry)
    return kinds


def list_pages() -> list:
    """Return the names of all files that are pages."""
    found = [path for path in (ROOT / "docs").rglob("*.md")]
    return sorted([*ALONE, *(str(path.relative_to(ROOT)) for path in found)])


def adapt_links(name: str, text: str, pages: list) -> str:
    """Return the *text* of the page *name* without links to what is no page."""

    def adapt(match):
        path = match[2].partition("#")[0]
        file = os.path.normpath(os.path.join(os.path.dirname(name), path))
        is_page = "://" in match[2] or not path or file in pages or file.startswith("docs/images")
        return match[0] if is_page else match[1]

    return LINK.sub(adapt, text)


def write_pages() -> None:
    """Write the pages, and what they show, below PAGES."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs/images", PAGES / "docs/images")
    pages = list_pages()
    for name in pages:
        file = PAGES / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(adapt_links(name, (ROOT / name).read_text("utf-8"), pages), "utf-8")


def keep_local() -> None:
    """Put frame_worker.js into each page, in the place of the script that the theme fetches."""
    script = "<script>%s</script>" % Path(__file__).with_name("frame_worker.js").read_text()
    for path in SITE.rglob("*.html"):
        path.write_text(path.read_text("utf-8").replace(FETCHED, script), "utf-8")


def main() -> int:
    write_pages()
    words = ["mkdocs", "build", "--quiet", "--strict", "--clean", "-f", str(CONFIG)]
    code = subprocess.run([sys.executable, "-m", *words]).returncode
    keep_local()
    return code


if __name__ == "__main__":
    sys.exit(main())
