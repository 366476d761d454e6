"""What README.md says of costs is what was measured."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_tables_are_those_of_the_rows():
    spec = importlib.util.spec_from_file_location("readme", ROOT / "benchmarks/readme.py")
    readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme)
    _, _, rest = (ROOT / "README.md").read_text("utf-8").partition(readme.BEGIN)
    assert rest.partition(readme.END)[0] == readme.tables(), "python benchmarks/readme.py"
