"""Each part that stands at a seam has the methods that the seam declares, with its parameters."""

import inspect

import pytest
import seams

from clawlite.linux.audit import files, sqlite
from clawlite.linux.channels.cron import Cron
from clawlite.linux.channels.mqtt import Mqtt
from clawlite.linux.channels.telegram import Telegram
from clawlite.linux.channels.webhook import Webhook
from clawlite.linux.memory.stores import Stores
from clawlite.linux.net.connections import Connections

PARTS = [
    *((seams.Source, source) for source in (Cron, Webhook, Telegram, Mqtt)),
    *((seams.Recipients, source) for source in (Telegram, Mqtt)),
    (seams.AuditStore, files.FileStore),
    (seams.AuditStore, sqlite.SQLiteStore),
    (seams.Connections, Connections),
    (seams.MemoryStores, Stores),
]


def missing(seam, part) -> list[str]:
    """Return the methods of *seam* that *part* lacks, or that cannot be called as it says."""
    found = []
    for name, declared in vars(seam).items():
        if name.startswith("_") or not inspect.isfunction(declared):
            continue
        own = inspect.getattr_static(part, name, None)
        is_static = isinstance(own, staticmethod)
        own = own.__func__ if is_static else own
        arguments = list(inspect.signature(declared).parameters.values())[is_static:]
        given = [argument for argument in arguments if argument.name != "self"]
        try:
            inspect.signature(own).bind(*([None] * len(arguments)))
        except TypeError as e:
            found.append(f"{name}({', '.join(map(str, given))}): {e}")
    return found


@pytest.mark.parametrize("seam, part", PARTS, ids=lambda one: one.__name__)
def test_a_part_has_what_its_seam_declares(seam, part):
    assert missing(seam, part) == []


def test_a_part_that_lacks_something_is_found():
    class Deaf:
        def poll(self, often):
            pass

        def close(self):
            pass

    assert [text.partition("(")[0] for text in missing(seams.Source, Deaf)] == [
        "poll",
        "deadline",
        "reply",
    ]
