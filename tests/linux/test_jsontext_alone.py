"""The JSON decoder as a device runs it: in a process that has not imported ``json``."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
sys.path[:0] = [{root!r}, {core!r}]
from clawlite.linux import jsontext
from clawlite.core.errors import ParseError
assert "json" not in sys.modules and "re" not in sys.modules, "importing it is what this module is there to avoid"
assert jsontext.loads(b'[1]') == [1] and "json" not in sys.modules
import json_vectors
refused = 0
for data, verdict, value in json_vectors.VECTORS:
    sys.modules.pop("json.decoder", None)
    try:
        jsontext.loads(data)
    except ParseError as e:
        assert not verdict, data
        assert str(e).startswith("JSON byte "), e
        refused += 1
    else:
        assert verdict, data
print(refused)
"""


def test_vectors_hold_where_nothing_has_imported_json():
    script = SCRIPT.format(root=str(ROOT), core=str(ROOT / "tests" / "core"))
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100
