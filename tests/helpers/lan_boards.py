"""What tests of boards share whose gateway is on the LAN: the gateway, the board, and a wire in
between that can be cut.
"""

import os
import select
import socket
import threading

from agents import Agent, board, clawlite, eventually, linux
from gateways import KEY

from clawlite.host.builder.build import build_beside


class Relay:
    """A port that leads to another one.

    ``is_mute``: nothing passes that comes from there; ``marks``: what comes from there is cut
    behind the first, then behind the next"""

    def __init__(self, port: int):
        self._to, self.is_mute, self.seen, self._pairs, self.marks = (
            port,
            False,
            bytearray(),
            [],
            [],
        )
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.write(self._wake[1], b"x")
        self._thread.join()
        self._server.close()
        self.cut()
        for fd in self._wake:
            os.close(fd)

    def cut(self):
        for pair in self._pairs:
            for one in pair:
                one.close()
        self._pairs = []

    def _run(self):
        while True:
            ends = {
                one: (pair[1 - at], at)
                for pair in list(self._pairs)
                for at, one in enumerate(pair)
                if one.fileno() >= 0
            }
            ready = select.select([self._server, self._wake[0], *ends], [], [], 0.02)[0]
            if self._wake[0] in ready:
                return
            for one in ready:
                try:
                    if one is self._server:
                        near = one.accept()[0]
                        self._pairs.append(
                            (near, socket.create_connection(("127.0.0.1", self._to), 60))
                        )
                    else:
                        self._pass(one, *ends[one])
                except OSError:
                    if one is self._server:
                        near.close()

    def _pass(self, one, other, at: int):
        data = one.recv(65536)
        self.seen += data
        if not data:
            one.close()
            other.close()
        elif at == 1 and self.marks and self.marks[0] in data:
            other.sendall(data[: data.index(self.marks[0]) + len(self.marks.pop(0))])
            self.cut()
        elif not (self.is_mute and at == 1):
            other.sendall(data)


def token(tmp_path, name: str = "shed") -> str:
    return clawlite(
        "gateway", "token", name, cwd=tmp_path, CLAWLITE_STATE=tmp_path / "state"
    ).stdout.strip()


def gateway(tmp_path, port: int, *words, **secrets) -> Agent:
    started = Agent(
        linux("gateway", tmp_path / "garden", "--listen", f"127.0.0.1:{port}", *words),
        tmp_path / "home",
        cwd=tmp_path,
        env={"CLAWLITE_STATE": tmp_path / "state", "GARDEN_KEY": KEY, **secrets},
    )
    eventually(lambda: "listens on" in started.errors(), 20)
    return started


def device(tmp_path, image: str, secret: str, *folders, **env) -> Agent:
    words, more = board(image, stand_ins=folders)
    return Agent(words, tmp_path / "home", env={**more, "GATEWAY_TOKEN": secret, **env})


def mediated(agent, wire: Relay) -> str:
    """Return the image of *agent*, whose gateway is at the other end of *wire*."""
    lan = f'[gateway]\nwire = "tcp"\naddress = "127.0.0.1:{wire.port}"\n'
    settings = agent / "clawlite.toml"
    settings.write_text(settings.read_text() + 'mode = "mediated"\n' + lan)
    return build_beside(str(agent))


def linux_shed(tmp_path, state, *command, **how) -> Agent:
    """Return the device shed, an agent on Linux that runs *command*."""
    secrets = {"CLAWLITE_STATE": state, "GATEWAY_TOKEN": token(tmp_path)}
    how["env"] = {**how.get("env", {}), **secrets}
    return Agent(linux(*command), tmp_path, **how)
