"""``python -m clawlite``: dispatch with the standard library alone.

Device verbs (run, ask, serve) need no package, and this file may be started as ``python -I -S clawlite/__main__.py``;
the others load click and the host part.  A device verb over a manifest compiles it here, with the host part, and then
becomes the runtime (exec), so that no agent ever carries the compiler in its memory.
"""
import sys

if __package__ in (None, ""):           # started as a file: put the package's parent where imports look
    sys.path[:0] = [__file__.rpartition("/")[0].rpartition("/")[0] or ".."]

DEVICE_VERBS = ("run", "ask", "serve")


def main() -> int:
    """Run the command line; return the exit code."""
    args = sys.argv[1:]
    if args == ["--version"]:
        from clawlite import __version__
        print("clawlite " + __version__)
        return 0
    if args and args[0] in DEVICE_VERBS:
        return device(args[0], args[1:])
    try:
        from clawlite.host.cli import main as host
    except ImportError as e:
        return _missing(e)
    return host(args)


def device(verb: str, args: list) -> int:
    """Run a device verb, its manifest compiled first when it was given one."""
    from clawlite.linux import verbs
    command = verbs.parse(verb, args)
    if isinstance(command, int):
        return command
    if command.is_image:
        return verbs.run(command)
    try:
        from clawlite.host.build import build_beside
        from clawlite.host.ui import failed
    except ImportError as e:
        return _missing(e)
    import os

    from clawlite.core.errors import ClawError
    try:
        image = build_beside(command.name)
    except ClawError as e:
        return failed(e, False)
    os.execv(sys.executable, [sys.executable, os.path.abspath(__file__)] + command.with_image(image))


def _missing(e: ImportError) -> int:
    sys.stderr.write("clawlite: this needs the host packages (%s is missing) - pip install 'clawlite[host]', "
                     "or use an image that was built elsewhere\n" % e.name)
    return 2


if __name__ == "__main__":
    sys.exit(main())
