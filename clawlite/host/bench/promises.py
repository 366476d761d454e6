"""What boards and their line are held to: rows of benchmarks/promises.py, which measures with
the tools of the tests.
"""

import json
import os
import subprocess
import sys

from clawlite.core.base.errors import ClawError


def boards(bench):
    """Yield its rows as they come; with ``bench.is_long`` also those that take minutes.  Raises
    ``ClawError``.
    """
    command = [sys.executable, bench.script("promises.py"), bench.make("promises")] + [
        "--long"
    ] * bench.is_long
    environment = dict(
        os.environ, PYTHONPATH=bench.package, CLAWLITE_STATE=os.path.join(bench.folder, "state")
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        for line in running.stdout:
            row = json.loads(line)
            yield bench.row(
                "boards",
                row["case"],
                row["unit"],
                row["samples"],
                row["value"],
                row["target"],
                row["note"],
            )
    if running.returncode:
        raise ClawError(f"promises.py ended with {running.returncode}")
