"""A device and a gateway whose images differ: the device goes on under what it runs, or is told
so; it never gets the rules of another.
"""

import asyncio
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

from agents import Agent, linux
from gateways import HEAP, KEY, Peer, flashed, gateway, process_of, project, says, script
from llm_server import Server, say
from sims import needs_micropython, needs_mpy_cross

from clawlite.host.gateway import gateway as gateways
from clawlite.host.gateway import images as gateway_images
from clawlite.host.gateway.images import Images
from clawlite.host.gateway.store import Store
from clawlite.host.sim.sim import Sim


def digest_of(image: str) -> str:
    return Images([image], print)._found.popitem()[0]


class Bed:
    """A project that is changed, a board's flash, and a server for each of two versions of the
    project.
    """

    def __init__(self, tmp_path, one: Server, two: Server):
        self.path, self.servers = tmp_path, (one, two)
        self.firmware = tmp_path / "firmware"
        self.firmware.mkdir()

    def build(self, version: int) -> str:
        """Make the project be its *version*, 0 or 1; return the digest."""
        limits = "limits: { tokens_per_day: 200 }, " if version == 0 else ""
        return digest_of(
            project(self.path / "garden", self.servers[version].endpoint, limits=limits)
        )

    def flash(self) -> Path:
        """Put what the project is now on the board."""
        return flashed(str(self.path / "garden/claw.cbor"), self.path / "flash", self.firmware)

    def counts(self) -> list:
        return [len(server.requests) for server in self.servers]

    def board(self) -> Sim:
        return Sim(folder=str(self.path / "flash"), heap=HEAP)

    def serve(self, port: str):
        return gateway(self.path, self.path / "garden", "--port", port)


@needs_micropython
@needs_mpy_cross
def test_a_board_is_held_to_the_image_that_it_runs(tmp_path, state):
    with (
        Server([say("One."), say("One again."), say("One at last.")]) as one,
        Server([say("Two."), say("Two again.")]) as two,
    ):
        bed = Bed(tmp_path, one, two)
        first = bed.build(0)
        bed.flash()
        with bed.board() as sim:
            id = sim.facts["id"]
            running = bed.serve(id)
            assert says(running, "runs garden\n") and script(tmp_path, id, "x") == "One.\n"
            # built, and not flashed: the board starts anew with what it has
            second = bed.build(1)
            os.kill(process_of(sim), signal.SIGKILL)
            assert says(running, "runs garden\n", 2) and script(tmp_path, id, "x") == "One again.\n"
        with running:
            assert says(running, "went away")
            bed.flash()
            with bed.board():  # flashed while it was away
                assert says(running, "connected again") and says(running, "runs garden\n", 3)
                assert script(tmp_path, id, "x" * 100) == "Two.\n" and bed.counts() == [2, 1]
            running.signal(signal.SIGKILL)
            running.wait()
        bed.build(0)
        bed.flash()
        bed.build(1)
        with bed.board() as sim:
            # a gateway that has read the second alone, and saw the first run
            with bed.serve(id) as running:
                assert says(running, f"runs garden, as it was before: image {first[:12]}")
                assert script(tmp_path, id, "x") == "One at last.\n" and bed.counts() == [3, 1]
                assert "tokens_per_day is 200" in script(
                    tmp_path, id, "x" * 300
                ) and bed.counts() == [3, 1]
            shutil.rmtree(state / ".gateway/images")
            with bed.serve(id) as running:
                assert says(running, "runs an image that no project has")
                said = script(tmp_path, id, "x")
                for words in (
                    first[:12],
                    second[:12],
                    "By rule.",
                    f"clawlite flash {tmp_path / 'garden'} --port {id}",
                ):
                    assert words in said and (words == "By rule." or words in running.errors())
                assert bed.counts() == [3, 1]
                command = re.search("end the gateway, and clawlite (.*?);", running.errors()).group(
                    1
                )
            with Agent(
                linux(*shlex.split(command), "--yes"),
                tmp_path / "mends",
                cwd=tmp_path,
                env={"CLAWLITE_STATE": state},
            ) as mends:
                assert mends.wait(120) == 0, mends.errors()
            with bed.serve(id) as running:
                assert (
                    says(running, "runs garden\n")
                    and script(tmp_path, id, "x" * 300) == "Two again.\n"
                )
        assert bed.counts() == [3, 2]


def test_what_devices_ran_is_kept_for_agents_of_the_projects_alone(tmp_path, state, monkeypatch):
    monkeypatch.setattr(gateway_images, "MAX_IMAGES", 2)
    notes, seen = [], state / ".gateway/images"
    folder, other = tmp_path / "garden", tmp_path / "house"
    digests = []
    for number in range(3):
        digests.append(digest_of(project(folder, f"http://127.0.0.1:{9 + number}/v1")))
        Images([str(folder)], notes.append, seen=str(seen)).ran(digests[-1])
    assert sorted(path.name for path in seen.iterdir()) == sorted(digests[1:])
    images = Images([str(folder)], notes.append, seen=str(seen))
    assert images.find(digests[0]) is None and images.find(digests[1]).agent.name == "garden"
    assert [images.is_now(digest) for digest in digests] == [False, False, True]
    project(other, "http://127.0.0.1:9/v1", name="house")
    assert Images([str(other)], notes.append, seen=str(seen)).find(digests[1]) is None
    assert Images([str(tmp_path)], notes.append, seen=str(seen)).find(digests[1]) is not None
    for name in ("../garden.db", "x", "A" * 64, ""):
        assert images.find(name) is None
    assert notes == []
    path = seen / digests[1]
    path.write_bytes((seen / digests[2]).read_bytes())  # another image under its name
    assert (
        Images([str(folder)], notes.append, seen=str(seen)).find(digests[1]) is None and notes == []
    )
    path.write_bytes(b"nonsense")
    assert (
        Images([str(folder)], notes.append, seen=str(seen)).find(digests[1]) is None
        and "image" in notes.pop()
    )
    shutil.rmtree(seen)
    seen.write_bytes(b"")
    Images([str(folder)], notes.append, seen=str(seen)).ran(digests[2])
    assert len(notes) == 1 and digests[2] in notes[0]


def test_an_image_whose_digest_is_not_its_own_is_none(tmp_path):
    """A digest is what a device is known by: the file must have it by right, its checksums
    notwithstanding.
    """
    import binascii

    notes = []
    image = Path(project(tmp_path / "garden", "http://127.0.0.1:9/v1"))
    data = bytearray(image.read_bytes())
    at = data.index(b"You keep a garden.")
    data[at] ^= 1
    seal = len(data) - 40
    data[seal + 1 : seal + 5] = binascii.crc32(data[:seal]).to_bytes(4, "big")
    image.write_bytes(data)
    assert Images([str(image)], notes.append).agents() == [] and "bad digest" in notes[0]


def test_a_device_on_the_lan_is_told_both_images_and_heard_again_when_its_own_is_there(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(gateway_images, "_AGAIN_S", 0)
    notes = []

    async def talk(server):
        before = digest_of(project(tmp_path / "garden", server.endpoint))
        project(tmp_path / "garden", server.endpoint, limits="limits: { tokens_per_day: 10 }, ")
        images = Images([str(tmp_path / "garden")], notes.append, seen=str(tmp_path / "seen"))
        now = images._now[str(tmp_path / "garden")][1]
        it = gateways.Gateway(
            images,
            await Store.open(os.path.join(gateways.folder(), "gateway.db"), notes.append),
            lambda agent, name: KEY,
            notes.append,
        )
        peer = Peer("shed", gateways.make_token("shed"), before)
        await peer.connect(await it.listen("127.0.0.1:0"))
        error = (await peer.end(peer.begin("hello")))["error"]
        assert error["code"] == -32020 and server.requests == []
        assert error["message"].startswith(
            f"this device runs image {before[:12]} of garden, and "
            f"the gateway knows none of garden but {now[:12]} - "
        )
        assert (
            f"clawlite flash {tmp_path / 'garden'};" in error["message"]
            and "--port" not in error["message"]
        )
        project(tmp_path / "garden", server.endpoint)  # what it was
        assert (await peer.end(peer.begin("hello")))["result"]["stop"] == "stop" and len(
            server.requests
        ) == 1
        peer.close()
        await it.close()

    with Server([say("Fine.")]) as server:
        asyncio.run(talk(server))


def test_what_was_built_and_flashed_a_moment_after_the_start_is_known(tmp_path):
    project(tmp_path / "garden", "http://127.0.0.1:9/v1")
    now = [0]
    images = Images([str(tmp_path / "garden")], print, lambda: now[0])
    later = [
        digest_of(project(tmp_path / "garden", f"http://127.0.0.1:{port}/v1")) for port in (10, 11)
    ]
    assert images.find(later[1]) is not None and images.find(later[0]) is None
    project(tmp_path / "garden", "http://127.0.0.1:10/v1")
    assert images.find(later[0]) is None  # everything was read a moment ago
    now[0] = gateway_images._AGAIN_S
    assert images.find(later[0]) is not None
