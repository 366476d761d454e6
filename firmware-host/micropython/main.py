"""What a MicroPython board starts: the image beside this file, on the console.

On the unix port: ``micropython main.py IMAGE [--stdio]``.
"""
import gc
import sys

_LOAD_BYTES = 4096              # while modules load: what stays lies together then, below what was only of use to load it


def open_device(path: str, folder: str, operator: bool):
    """Return the ``device.Device`` for the image at *path*; what only loading needs is out of memory again.

    Raises ``OSError``, ``ImageError``, ``ImageMismatch``.
    """
    gc.threshold(_LOAD_BYTES)
    from loader import load
    from memory import drop
    image, maker = load(path, folder)
    del load
    drop()
    from device import Device
    device = Device(image, maker, folder, operator)
    drop()
    gc.threshold(-1)
    return device


def main(args: list) -> int:
    """Return the exit code: 0 done, 1 out of memory, 2 bad image or one that does not fit, 130 interrupted."""
    from clawlite.core.errors import ClawError
    names = [arg for arg in args if arg != "--stdio"]
    path = names[0] if names else "claw.cbor"
    try:
        device = open_device(path, path.rpartition("/")[0] or ".", "--stdio" in args)
    except OSError as e:
        sys.stderr.write("clawlite: %s cannot be read: %s - name an image: main.py IMAGE, or put it here as claw.cbor\n" % (path, e))
        return 2
    except ClawError as e:
        sys.stderr.write("clawlite: %s%s\n" % (e.message, " - " + e.hint if e.hint else ""))
        return 2
    except MemoryError as e:
        sys.stderr.write("clawlite: %s does not fit into this board's memory: %s - build a smaller agent\n" % (path, e))
        return 2
    try:
        return device.run()
    except MemoryError as e:            # where no turn and no record could take the blame
        sys.stderr.write("clawlite: out of memory: %s - start again, or build a smaller agent\n" % e)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
