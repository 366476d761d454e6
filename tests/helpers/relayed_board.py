"""A board whose channels its gateway carries: a garden with a pump, on real MicroPython, and a
gateway.
"""

import json

from agents import eventually
from gateways import HEAP, flashed, gateway

from clawlite.host.builder.build import build_beside
from clawlite.host.sim.sim import Sim

ADMIN, USER = 9001, 7001
CLAW = {
    "identity": {"inline": {"name": "keeper", "personality": "x", "autonomy": "autonomous"}},
    "providers": [
        {
            "inline": {
                "protocol": "custom",
                "endpoint": "builtin:reflex",
                "model": "r",
                "auth": {"type": "none"},
            }
        }
    ],
    "sandbox": {"inline": {"level": "none"}},
    "policies": [
        {
            "inline": {
                "rules": [
                    {
                        "id": "ask",
                        "action": "require-approval",
                        "scope": "tool",
                        "match": {"name": "water"},
                        "approval": {"timeout_seconds": 300},
                    },
                    {"id": "all", "action": "allow", "scope": "all"},
                ]
            }
        }
    ],
}
PINS = """
[[pins]]
name = "pump"
pin = 15
kind = "output"
"""
TOOLS = '''
def water(board, seconds: int) -> str:
    """Run the pump for some seconds."""
    board.write("pump", 1)
    with open("pump", "a") as file:
        file.write("%d" % board.read("pump"))
    try:
        yield seconds * 1000
    finally:
        board.write("pump", 0)
    return "Watered for %d s." % seconds


def fill(board) -> str:
    """Fill the tank: it takes until the file full is there."""
    with open("filled", "a") as file:
        file.write("x")
    while True:
        yield 20
        try:
            open("full").close()
            return "The tank is full."
        except OSError:
            pass
'''
RULES = """
[[rule]]
when = "water the beds"
call = "water"
arguments = { seconds = 1 }

  [[rule.then]]
  say = "Done. {result}"

[[rule]]
when = "fill"
call = "fill"

[[rule]]
when = "echo {words:text}"
say = "You said: {words}"
"""


def write_project(
    folder,
    channels: dict,
    toml: str = "",
    roles: str = '["user", "admin"]',
    rules: str = "",
    **spec,
):
    """Write the garden with *channels* {name: spec} and more *rules*, and build it; return its
    image.
    """
    folder.mkdir(parents=True, exist_ok=True)
    named = [
        {"inline": {"name": name, "auth": {"secret_ref": "SECRET"}, **one}}
        for name, one in channels.items()
    ]
    document = {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "garden"}}
    document["spec"] = {**CLAW, "channels": named, **spec}
    (folder / "claw.yaml").write_text(json.dumps(document))
    head = f'reflex = "reflex.toml"\n[gateway]\n{f"roles = {roles}" if roles else ""}\n'
    (folder / "clawlite.toml").write_text(head + toml + PINS)
    (folder / "reflex.toml").write_text(RULES + rules)
    (folder / "tools.py").write_text(TOOLS)
    return build_beside(str(folder))


class Garden:
    """The board, with its flash in ``flash``, and its gateway, which is started by ``serve``."""

    def __init__(self, tmp_path, firmware, channels: dict, toml: str = "", **options):
        self.path, self.project = tmp_path, tmp_path / "garden"
        image = write_project(self.project, channels, toml, **options)
        self.flash = flashed(image, tmp_path / "flash", firmware)
        self.sims = []

    def board(self) -> Sim:
        """Start the virtual board, each time with the same flash."""
        self.sims.append(Sim(folder=str(self.flash), heap=HEAP).__enter__())
        return self.sims[-1]

    def serve(self, sim, secret: str):
        """Start the gateway of *sim*, with the secret of its channels."""
        return gateway(self.path, self.project, "--port", sim.path, SECRET=secret)

    def read(self, name: str) -> str:
        """Return what the tools have written to a file on the board's flash."""
        return (self.flash / name).read_text() if (self.flash / name).exists() else ""

    def write(self, name: str):
        (self.flash / name).touch()

    def end(self):
        for sim in self.sims:
            sim.__exit__()


def wait(holds, *about):
    """Wait until *holds*(); else fail with what the functions *about* return."""
    try:
        eventually(holds, 60)
    except AssertionError:
        raise AssertionError([one() for one in about]) from None
