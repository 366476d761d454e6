"""``python -m clawlite``: dispatch with the standard library alone.

Device verbs (run, ask, serve) need no package, and this file may be started as ``python -I -S clawlite/__main__.py``;
the others load click and the host part.
"""
import sys

if __package__ in (None, ""):           # started as a file: put the package's parent where imports look
    sys.path[:0] = [__file__.rpartition("/")[0].rpartition("/")[0] or ".."]

DEVICE_VERBS = ("run", "ask", "serve")


def main() -> int:
    """Run the command line; return the exit code."""
    args = sys.argv[1:]
    if args and args[0] in DEVICE_VERBS:
        from clawlite.linux.verbs import main as device
        return device(args[0], args[1:])
    try:
        from clawlite.host.cli import main as host
    except ImportError as e:
        sys.stderr.write("clawlite: this command needs the host packages (%s is missing) - pip install 'clawlite[host]'\n" % e.name)
        return 2
    return host(args)


if __name__ == "__main__":
    sys.exit(main())
