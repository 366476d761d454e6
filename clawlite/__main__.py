"""``python -m clawlite``; may be started as ``python -I -S clawlite/__main__.py`` too.

Short, because Python compiles a script anew at each start: the work is in command.py.
"""

import sys

# started as a file: put the package's parent where imports look
if __package__ in (None, ""):
    _here = __file__.replace("\\", "/") if sys.platform == "win32" else __file__
    sys.path[:0] = [_here.rpartition("/")[0].rpartition("/")[0] or ".."]

try:
    from clawlite.command import main
except KeyboardInterrupt:  # Ctrl-C while Python still starts
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
