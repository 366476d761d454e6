"""A network of its own for a test, where public addresses are this machine's and names are what
the test says.
"""

import ctypes
import os
import socket
import subprocess
import threading

import pytest

from clawlite.linux.net import stream

PUBLIC, OTHER, PUBLIC6 = "93.184.216.34", "93.184.216.35", "2606:2800:220:1::1"
_CLONE_NEWNET = 0x40000000


class Names:
    """In the place of ``getaddrinfo``: name -> list of answers, each a list of addresses; the
    last one stays.  asked: in order.
    """

    def __init__(self):
        self.of, self.asked = {}, []

    def __call__(self, name, port, family=0, kind=0, protocol=0, flags=0):
        if flags & socket.AI_NUMERICHOST:
            return socket.getaddrinfo(name, port, family, kind, protocol, flags)
        name = name.decode()
        self.asked.append(name)
        answers = self.of.get(name)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            socket.getaddrinfo(address, port, 0, kind, 0, socket.AI_NUMERICHOST)[0]
            for address in answer
        ]


@pytest.fixture
def names(monkeypatch):
    made = Names()
    monkeypatch.setattr(stream, "getaddrinfo", made)
    return made


def inside(test, public=True):
    """Run ``test()`` in a thread whose network is new: a network belongs to a thread, and goes with
    its last one.

    public  it has the addresses above, and a private one; else nothing but loopback
    """
    failed = []

    def body():
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "unshare")
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            for address in (
                (PUBLIC + "/32", OTHER + "/32", PUBLIC6 + "/128", "10.20.30.40/32")
                if public
                else ()
            ):
                subprocess.run(
                    ["ip", "addr", "add", address, "dev", "lo"] + ["nodad"] * (":" in address),
                    check=True,
                )
            test()
        except BaseException as e:
            failed.append(e)

    if os.geteuid():
        pytest.skip("a network of its own needs root")
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
