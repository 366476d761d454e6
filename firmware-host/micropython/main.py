"""What a MicroPython board starts: the image beside this file, on the console.

On the unix port: ``micropython main.py IMAGE [--stdio]``.
"""
import sys


def main(args: list) -> int:
    """Return the exit code: 0 done, 2 bad image, 130 interrupted."""
    from clawlite.core.errors import ClawError
    names = [arg for arg in args if arg != "--stdio"]
    path = names[0] if names else "claw.cbor"
    folder = path.rpartition("/")[0] or "."
    try:
        from loader import drop, load
        image, maker = load(path, folder)
        drop()
        from device import Device
        device = Device(image, maker, folder, "--stdio" in args, drop)
    except OSError as e:
        sys.stderr.write("clawlite: %s cannot be read: %s\n" % (path, e))
        return 2
    except ClawError as e:
        sys.stderr.write("clawlite: %s%s\n" % (e.message, " - " + e.hint if e.hint else ""))
        return 2
    return device.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
