"""The pictures of layout.md: test_docs.py holds them to the sources, and here a message goes the
way that one of them shows.
"""

import subprocess
import sys

from agents import ROOT, clawlite, environment
from documents import load_site

# writes "FILE: FUNCTION" when a function of clawlite is entered for the first time
TRACE = """
import os, runpy, sys
seen, out, top = set(), open("entered", "w", 1), os.path.join(sys.argv[1], "clawlite", "")
def note(frame, event, _):
    code = frame.f_code
    step = code.co_filename[len(top):] + ": " + code.co_name
    if event == "call" and code.co_filename.startswith(top) and step not in seen:
        seen.add(step)
        out.write(step + "\\n")
sys.argv = ["clawlite", "ask", "is the soil dry?", "claw.cbor", "--approve"]
sys.setprofile(note)
runpy.run_module("clawlite", run_name="__main__")
"""


def test_a_message_goes_the_way_of_the_picture(tmp_path):
    assert clawlite("new", "garden", "--offline", cwd=tmp_path).returncode == 0
    folder = tmp_path / "garden"
    assert clawlite("build", cwd=folder).returncode == 0
    env = dict(environment(tmp_path), CLAWLITE_NO_EXT="1", PYTHONPATH=str(ROOT))
    words = [sys.executable, "-c", TRACE, str(ROOT)]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("Watered for 3 s.\n"), done.stderr
    entered = (folder / "entered").read_text().splitlines()
    steps = ["%s: %s" % (path, name) for _, path, name in load_site("diagrams").MESSAGE]
    assert [one for one in entered if one in steps] == steps
