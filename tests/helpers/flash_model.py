"""The files of a board's disk, as a flash sees them: its steps without a board, for those who
carry them out elsewhere.
"""

import base64
import zlib

from clawlite.host.flash.plan import BoardState, Contents, digest, newest, plan, record


class Model:
    """The files of a disk, as a flash sees them."""

    def __init__(self):
        self.files, self.folders = {}, set()

    def read_state(self) -> BoardState:
        whole = [slot for slot in "ab" if f"/claw-{slot}.cbor" in self.files]
        records = [
            self.files[name] for name in ("/claw.boot", "/claw.boot.new") if name in self.files
        ]
        return BoardState(
            {path: digest(data) for path, data in self.files.items()},
            tuple(whole),
            tuple(records),
            None,
            tuple(self.folders),
        )

    def flash(self, want: Contents, steps: int = None) -> list:
        """Carry out the first *steps* of the plan; return them as ``disk_board.py`` wants them."""
        script = []
        for step in [step for step in plan(self.read_state(), want).steps if step[0] != "verify"][
            :steps
        ]:
            if step[0] == "mkdir":
                self.folders.add(step[1])
            elif step[0] == "rename":
                self.files[step[2]] = self.files.pop(step[1])
            elif step[0] == "remove":
                del self.files[step[1]]
            else:
                self.files[step[1]] = step[2]
            script.append(
                [step[0], step[1], base64.b64encode(step[2]).decode()]
                if step[0] in ("write", "copy")
                else list(step)
            )
        return script

    def boot(self) -> list:
        """The agent was READY."""
        counter, slot, _, _ = newest([self.files["/claw.boot"]])
        data = bytearray(record(counter + 2, slot)[:11])
        data[10] = 1
        self.files["/claw.boot"] = bytes(data) + zlib.crc32(data).to_bytes(4, "big")
        return [["boot"]]
