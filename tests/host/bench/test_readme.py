"""What README.md says of costs is what was measured."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[3]


def test_the_tables_are_those_of_the_rows():
    spec = importlib.util.spec_from_file_location("readme", ROOT / "benchmarks/readme.py")
    readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme)
    _, _, rest = (ROOT / "README.md").read_text("utf-8").partition(readme.BEGIN)
    assert rest.partition(readme.END)[0] == readme.tables(), "python benchmarks/readme.py"


def test_the_picture_shows_the_rows(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    picture = importlib.import_module("picture")
    drawn = picture.draw()
    assert picture.FILE.read_text("utf-8") == drawn, "python benchmarks/picture.py"
    said = "\n".join(ElementTree.fromstring(drawn).itertext())
    assert all(name in said for name in (*picture.readme.AGENTS, *picture.readme.TITLES))
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
