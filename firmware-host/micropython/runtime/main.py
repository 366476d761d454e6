"""The entry point on a MicroPython board: it runs an image on the console.

On the unix port: ``micropython main.py IMAGE [--stdio]``.  A board with slots calls ``attempt`` and
``run`` (boot/bootwindow.py)."""

import gc
import sys

# allocation threshold while modules load, so that what stays in memory lies close together
_LOAD_BYTES = 4096
_ENOENT = 2
_FLASH = "flash it again: clawlite flash"


def open_device(
    path: str, folder: str, operator: bool, state: str = None, seal: bool = False, key=None
):
    """Return the ``device.Device`` for the image at *path*.  Modules that only loading needs have
    been dropped.

    folder, seal, key  as in loader.py
    operator           see device.py
    state              where the log, the meters and secrets lie; None: in *folder*
    Raises ``OSError``, ``ImageError``, ``ImageMismatch``.
    """
    gc.threshold(_LOAD_BYTES)
    from loader import load
    from unload import drop, know

    file = open(path, "rb")
    image, maker = load(reading(file), file.seek(0, 2), folder, seal, key)
    del load
    drop()
    from device import Device

    # the modules that are needed when memory has run out, and those of a person's commands then
    know("oom_recover denials refusing" if operator else "oom_recover denials commands")
    device = Device(image, maker, state or folder, operator)
    drop()
    gc.threshold(-1)
    return device


def reading(file):
    """Return the function that reads an image from *file*."""

    def read(offset: int, length: int) -> bytes:
        file.seek(offset)
        return file.read(length)

    return read


def attempt(*arguments) -> tuple:
    """Return (``Device``, ""), or (None, reason); the arguments are those of ``open_device``."""
    try:
        from clawlite.core.base.errors import ClawError
    except MemoryError as e:
        return None, "clawlite does not fit into this board's memory: %s" % e
    except RuntimeError as e:
        return None, ran_out(e)
    try:
        return open_device(*arguments), ""
    except OSError as e:
        hint = "name an image: main.py IMAGE, or put it here as claw.cbor"
        if e.args[0] != _ENOENT:
            hint = "look at the flash"
        why = "%s cannot be read: %s - %s" % (arguments[0], e, hint)
    except ClawError as e:
        why = "%s - %s" % (e.message, e.hint or _FLASH)
    except ImportError as e:
        why = "a file of clawlite is missing: %s - %s" % (e, _FLASH)
    except MemoryError as e:
        why = "%s does not fit into this board's memory: %s - build a smaller agent" % (
            arguments[0],
            e,
        )
    except RuntimeError as e:
        why = "%s is not loaded: %s, or nest less in rules and schemas" % (
            arguments[0],
            ran_out(e),
        )
    return None, why


def ran_out(e) -> str:
    """Return the message when *e* says that the stack ran out outside of any turn or record.
    Raises *e* otherwise.
    """
    if "recursion depth" not in str(e):
        raise e
    return "the stack of this device ran out - take a board with more stack"


def watch(device, watchdog_ms: int):
    """Let the hardware reset the board when the loop of ``run`` stands still for *watchdog_ms*,
    1000..8388.
    """
    device.watchdog_ms = watchdog_ms


def run(device, ready) -> int:
    """Serve until the end; return the exit code: that of ``Device.run``, or 1 when memory or the
    stack ran out.

    ready  function() or None, called when the agent is READY for the first time
    """
    try:
        return device.run(ready)
    except MemoryError as e:  # outside of any turn or record
        sys.stderr.write(
            "clawlite: out of memory: %s - start again, or build a smaller agent\n" % e
        )
    except RuntimeError as e:
        sys.stderr.write("clawlite: %s\n" % ran_out(e))
    return 1


def main(args: list) -> int:
    """Return the exit code: that of ``run``, or 2 when the image cannot be opened here."""
    try:
        device = _prepare(args)
    except RuntimeError as e:  # the linker loads it here, and first what it imports
        sys.stderr.write("clawlite: %s\n" % ran_out(e))
        return 2
    return run(device, None) if device else 2


def _prepare(args: list):
    """Return the ``Device`` for the arguments, or None, with the reason on stderr."""
    path = ([arg for arg in args if arg != "--stdio"] + ["claw.cbor"])[0]
    device, why = attempt(path, path.rpartition("/")[0] or ".", "--stdio" in args)
    if device is None:
        sys.stderr.write("clawlite: %s\n" % why)
    return device
