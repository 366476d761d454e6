"""The first steps of a board after a round of its loop that ran out of memory or that an error
ended (docs/adr/0014).

The loop has unwound: nothing is left on its stack.  Memory that is dropped here is free before
oom_recover.py is loaded.
"""

import gc
import sys

from clawlite.core.base import effect as E
from unload import REMOTE, drop, stage

_PLACES = 128  # the most slots of the table behind sys.modules
_LOAD_BYTES = 4096  # as in main.py


def end_round(device, error):
    """Recover from a round that ran out of memory, or that *error* ended (Ctrl-C or a failure;
    None: neither).
    """
    if device.short:
        stage("oom_recover").recover(device)
        drop()
        device.short = 0
    if isinstance(error, KeyboardInterrupt):
        device.short = 1  # if memory runs out for that, everything is ended
        device.press()
        device.settle()
        device.short = 0
    elif error:
        device.recover(error)


def unwind(device):
    """Drop the work in progress.  The second time, also drop what waits for a person, and what is
    remembered but can be read again.
    """
    again, doing = device.short > 1, device.doing
    if doing and doing[E.KIND] > E.EXIT:
        device.doing = None  # the task that asked for it is gone
    elif again and doing and doing[E.KIND] == E.SEND and isinstance(doing[E.MESSAGE], dict):
        doing[E.MESSAGE].pop("result", None)
    doing = None
    if again:
        device.agent.idempotency = None  # calls that may not run twice are on record
    if device.console:
        device.console.history, device.agent.calls = None, []
    # nothing here allocates: there may be no memory before the tasks are gone
    for number in device.agent.tasks:
        task = device.agent.tasks[number]
        if again or not task.approval:
            task.close()
    device.agent.later.clear()  # none of these tasks waits for a person
    device.safe()
    if device.prepare and (again or not device.agent.waiting):
        if device.net:
            device.net.end()
        device.net = device.meter = device.agent.providers = None
        drop(REMOTE)
    drop()
    # an import that ran out of memory leaves its module where its name was (MicroPython 1.29)
    for place in range(_PLACES):
        sys.modules[place] = None
        del sys.modules[place]
    device.agent.effects[:] = [
        effect
        for effect in device.agent.effects
        if effect[E.KIND] <= E.EXIT or effect[E.KIND] == E.CANCEL or not effect[E.TASK]
    ]


def load_providers(device):
    """Load the code that reaches remote providers, and the meters of their use."""
    if device.net is None:
        gc.threshold(_LOAD_BYTES)
        from meters import Meters
        from net import Net

        device.meter = Meters(device.image, device.folder, device.clock.both).meter
        device.net = Net(
            device.agent, device.stdio.poll, device.folder, device.clock.both, device.name_server
        )
        gc.collect()
        gc.threshold(gc.mem_free() // 3)
