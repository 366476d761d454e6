"""Write images/: the benchmarks' agent, compiled, for devices that have no compiler.  ``python
benchmarks/images.py``
"""

import shutil
import tempfile
from pathlib import Path

from clawlite.host.bench.run import Bench

HERE = Path(__file__).resolve().parent / "images"

with tempfile.TemporaryDirectory() as folder:
    run = Bench(folder, 2)
    for own_tools in (True, False):
        path = Path(run.agent(own_tools))
        shutil.copy(path, HERE / (path.parent.name + ".cbor"))
