"""Ports for servers that begin later."""

import random
import socket

# The kernel takes ports of connections from 32768 on: there, until a server has its port, a
# connection of another test may get it, or one to this port itself.
PORTS = range(20000, 32000)
_DICE = random.SystemRandom()  # tests may seed the other one


def free_port() -> int:
    """Return a port at which nobody listens, and that no connection gets."""
    while True:
        port = _DICE.choice(PORTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            pass
