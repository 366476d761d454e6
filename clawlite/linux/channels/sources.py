"""The channels of a shell's agent, with the clocks, the folder and the wake pipe of this
machine.
"""

import os

from clawlite.linux.channels.channels import Channels
from clawlite.linux.files.files import state_folder
from clawlite.linux.io import signals
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.memory.memory import wall_ms


def channels_of(agent, tells: bool) -> Channels:
    """Return the channels of *agent*; *tells*: a person reads its console."""
    folder = os.path.join(state_folder(agent.image.agent.name), "channels")
    return Channels(agent, now_ms, wall_ms, os.urandom, folder, signals.waker(), tells)
