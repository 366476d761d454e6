"""A board that looks at beds and waters them, for tests of swarms: who is in the swarm, and the
board's tools.py.
"""

from swarm_team import BEDS

AGENTS = [
    {"identity_ref": "lead", "role": "leader"},
    {"identity_ref": "shed", "role": "worker"},
]
# where the bed is a folder on the board, each run leaves an x there, and waits for its file go
TOOLS = (
    BEDS
    + """\
def _wait(bed):
    where = "/" + bed
    if _is_there(where + "/waits"):
        with open(where + "/begun", "a") as file:
            file.write("x")
        while not _is_there(where + "/go"):
            yield 10


def _is_there(path):
    try:
        open(path).close()
        return True
    except OSError:
        return False
"""
)
