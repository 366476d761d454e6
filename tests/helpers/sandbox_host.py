"""A process with a sandbox engine in it, as another user or on a kernel that lacks something: jobs
come in as JSON lines.

    PYTHON sandbox_host.py PACKAGES '{"workspace", "hidden", "faults", "uid", "relaxed"}'

PACKAGES is the folder with clawlite.  Each line is {"profile": {...}, "job": [kind, arguments...]}
or {"report": true} or {"agent": true}; the answer is {"outcome": [bool, value]} and so on.  A line
{"start": ...} is not waited for, until {"wait": number}."""

import ctypes
import json
import os
import struct
import sys

sys.path[:0] = [sys.argv[1], os.path.dirname(os.path.abspath(__file__))]
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "arm": 0x40000028}
_NUMBERS = {
    "x86_64": {"clone": 56, "unshare": 272, "prctl": 157, "seccomp": 317, "mount": 165},
    "aarch64": {"clone": 220, "unshare": 97, "prctl": 167, "seccomp": 277, "mount": 40},
    "arm": {"clone": 120, "unshare": 337, "prctl": 172, "seccomp": 383, "mount": 21},
}
# the kernel's own name is the same for a 32-bit Python
_MACHINE = os.uname().machine if struct.calcsize("P") == 8 else "arm"
_COMMON = {"clone3": 435, "openat2": 437, "landlock": 444, "mount_setattr": 442, "memfd": 0}
NEWUSER = 0x10000000


def lack(faults: list):
    """Make the kernel lack *faults* for this process and all that it starts."""
    numbers = dict(_COMMON, **_NUMBERS[_MACHINE])
    code = [
        (0x20, 0, 0, 4),
        (0x15, 1, 0, _ARCH[_MACHINE]),
        (0x06, 0, 0, 0x7FFF0000),
        (0x20, 0, 0, 0),
    ]

    def refuse(name, errno, argument=None, mask=None, value=None):
        rest = [(0x06, 0, 0, 0x50000 | errno)]
        if mask is not None:
            rest = [(0x20, 0, 0, 16 + 8 * argument), (0x45, 0, 1, mask)] + rest + [(0x20, 0, 0, 0)]
        if value is not None:
            rest = [(0x20, 0, 0, 16 + 8 * argument), (0x15, 0, 1, value)] + rest + [(0x20, 0, 0, 0)]
        code.append((0x15, 0, len(rest), numbers[name]))
        code.extend(rest)

    for fault in faults:
        if fault == "userns":
            refuse("clone", 1, 0, NEWUSER)
            refuse("unshare", 1, 0, NEWUSER)
            refuse("clone3", 38)
        # a namespace of users alone, which a call takes for itself
        elif fault == "own_users":
            refuse("unshare", 1, 0, None, NEWUSER)
        elif fault == "landlock":
            refuse("landlock", 38)
        elif fault == "mount":
            refuse("mount", 1)
        elif fault == "openat2":
            refuse("openat2", 38)
        elif fault == "mount_setattr":
            refuse("mount_setattr", 38)
    if "seccomp" in faults:
        refuse("seccomp", 38)
        refuse("prctl", 22, 0, None, 22)
    code.append((0x06, 0, 0, 0x7FFF0000))
    libc = ctypes.CDLL(None, use_errno=True)
    data = ctypes.create_string_buffer(
        b"".join(struct.pack("<HBBI", *one) for one in code), 8 * len(code)
    )
    program = ctypes.create_string_buffer(struct.pack("HP", len(code), ctypes.addressof(data)))
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "faults")


class Door:
    """A proxy that answers whoever knocks with one line."""

    def __init__(self, rules):
        self._listener = None

    def serve(self, fd: int):
        import socket
        import threading

        self._listener = socket.socket(fileno=fd)
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self):
        try:
            while True:
                one, _ = self._listener.accept()
                one.sendall(b"door\n")
                one.close()
        except OSError:
            pass

    def close(self):
        self._listener.close()


def main():
    config = json.loads(sys.argv[2])
    if config["faults"]:
        lack(config["faults"])
    from sandboxes import Player, profile

    from clawlite.linux.sandbox import jobs
    from clawlite.linux.sandbox.engine import Engine
    from clawlite.linux.tools.builtin import Builtins

    engine = Engine(config["workspace"], config["hidden"], Door, **config.get("more", {}))
    player = Player(engine)
    kinds = {"command": jobs.Command, "function": jobs.Function, "builtin": jobs.Builtin}
    for line in sys.stdin:
        asked = json.loads(line)
        if "report" in asked:
            answer = engine.report()
        elif "agent" in asked:
            engine.prepare()
            answer = {
                "pid": os.getpid(),
                "server": engine._server[0],
                "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
            }
        elif "wait" in asked:
            good, value = player.wait(asked["wait"])
            answer = {
                "outcome": [
                    good,
                    value
                    if good
                    else [type(value).__name__, value.code, value.message, value.hint, value.data],
                ]
            }
        elif "cancel" in asked:
            engine.cancel(asked["cancel"])
            answer = {}
        else:
            kind, *arguments = asked["job"]
            if kind == "function":
                arguments[1] = arguments[1].encode()
            if kind == "file":
                job = Builtins(
                    profile(**asked["profile"]),
                    None,
                    config["workspace"],
                    config["workspace"],
                    config["hidden"],
                ).job(0, *arguments)
            else:
                job = kinds[kind](*arguments)
            job.files = asked.get("files", {})
            job.most = asked.get("most")
            number = player.start(profile(**asked["profile"]), job)
            answer = {"number": number}
            if "start" not in asked:
                good, value = player.wait(number)
                answer = {
                    "outcome": [
                        good,
                        value
                        if good
                        else [
                            type(value).__name__,
                            value.code,
                            value.message,
                            value.hint,
                            value.data,
                        ],
                    ]
                }
        print(json.dumps(answer), flush=True)
    engine.close()


if __name__ == "__main__":
    main()
