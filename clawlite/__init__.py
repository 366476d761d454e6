"""clawlite: Claw Kernel Protocol agents for boards that cost less than lunch."""

__version__ = "0.1.0"

try:
    from os import environ
except ImportError:  # MicroPython: no environment, and no extensions
    environ = {}

if environ.get("CLAWLITE_NO_EXT") == "1":
    # Look for sources only in the core's folder, so that an extension that lies beside a source is
    # not taken.
    import sys
    from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader

    if isinstance(__spec__.loader, SourceFileLoader):
        _core = __path__[0] + "/core"
        sys.path_importer_cache[_core] = FileFinder(_core, (SourceFileLoader, SOURCE_SUFFIXES))
