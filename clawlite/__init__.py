"""clawlite: Claw Kernel Protocol agents for boards that cost less than lunch."""

__version__ = "0.3.0"

try:
    from os import environ
except ImportError:  # MicroPython: no environment, and no extensions
    environ = {}  # type: ignore[assignment]

if environ.get("CLAWLITE_NO_EXT") == "1":
    # Look for sources only in the core's rooms, so that an extension that lies beside a source is
    # not taken.
    import sys
    from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
    from os import scandir

    if isinstance(__spec__.loader, SourceFileLoader):
        for _room in scandir(__path__[0] + "/core"):
            if _room.is_dir():
                sys.path_importer_cache[_room.path] = FileFinder(
                    _room.path, (SourceFileLoader, SOURCE_SUFFIXES)
                )
