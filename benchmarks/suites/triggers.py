"""Suite of the triggers: what benchmarks/triggers.py measures of schedules, and of a queue where
there is a broker (``make mosquitto``).
"""

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.bench.run import spawn

WAIT_S = 20
_SPEC = """claw: "0.3.0"
kind: Claw
metadata: { name: %s, version: "1.0.0" }
spec:
  identity: { inline: { personality: x } }
  providers: [ { inline: { protocol: custom, endpoint: "builtin:reflex", model: r, auth: { type: none } } } ]
  channels:
%s
"""  # noqa: E501
_CRON = """    - inline: { name: tick-%d, type: cron, transport: polling, auth: { secret_ref: NONE },
                trigger: { schedule: "* * * * *", overlap_policy: queue } }
"""  # noqa: E501
_QUEUE = """    - inline: { name: jobs, type: queue, transport: polling, auth: { secret_ref: NONE }, access_control: { mode: open },
                trigger: { queue_name: t/jobs, overlap_policy: queue } }
"""  # noqa: E501
_SETTINGS = 'reflex = "reflex.toml"\n[cron]\nmissed = "all"\n'
_MQTT = '[mqtt]\naddress = "mqtt://127.0.0.1:%d"\nreplies = { jobs = "t/said" }\n'
_RULES = '[[rule]]\nwhen = ["echo {words:text}", "{words:text}"]\nsay = "You said: {words}"\n'


def triggers(bench):
    """Yield rows: runs of schedules, and of messages of a queue, from being due to being done."""
    image = _agent(bench, "ticks", "".join(_CRON % number for number in range(10)), _SETTINGS)
    yield _row(
        bench,
        "a run of a schedule",
        _measured(bench, image, "cron"),
        "10 schedules, 100 runs each, overlap_policy queue",
    )
    command, environment = broker(bench)
    if command is None:
        return
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    image = _agent(bench, "jobs", _QUEUE, _SETTINGS + _MQTT % port)
    file = os.path.join(bench.make("broker"), "mosquitto.conf")
    with open(file, "w", encoding="utf-8") as said:
        said.write(
            "listener %d 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nuser "
            "root\nlog_dest none\n" % port
        )
    process = subprocess.Popen(
        [command, "-c", file], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _listens(process, port)
        yield _row(
            bench,
            "a message of a queue",
            _measured(bench, image, "queue", str(port)),
            "QoS 1, on record, a reply each, overlap_policy queue",
        )
    finally:
        process.terminate()
        process.wait()


def broker(bench) -> tuple:
    """Return (path of mosquitto, None where there is none; the environment that it needs)."""
    found = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin")
    unpacked = os.path.join(bench.package, "build", "mosquitto", "usr")
    if found is None and os.path.exists(os.path.join(unpacked, "sbin", "mosquitto")):
        found = os.path.join(unpacked, "sbin", "mosquitto")
    return found, bench.environment(
        LD_LIBRARY_PATH=":".join(glob.glob(os.path.join(unpacked, "lib", "*-linux-*")))
    )


def _agent(bench, name: str, channels: str, settings: str) -> str:
    from clawlite.host.builder.build import build_beside

    folder = bench.make(name)
    for file, text in (
        ("claw.yaml", _SPEC % (name, channels)),
        ("clawlite.toml", settings),
        ("reflex.toml", _RULES),
    ):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as made:
            made.write(text)
    return build_beside(folder)


def _measured(bench, image: str, kind: str, *more: str) -> list:
    return json.loads(
        spawn(
            [sys.executable, bench.script("triggers.py"), image, kind, str(bench.rounds), *more],
            bench.environment(),
        )
    )


def _row(bench, case: str, ns: list, note: str) -> dict:
    return bench.row("triggers", case, "us", [one / 1e3 for one in ns], note=note)


def _listens(process, port: int) -> None:
    due = time.monotonic() + WAIT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > due:
                raise ClawError("mosquitto does not start") from None
