"""Drivers that are packages in folders, and a tools.py that imports them in each way.  In the stack
of a Pico an import may have one more import in it, and no third."""

PACKAGES = {
    "deep": {
        "deep/__init__.py": '"""A package."""\nfrom .one import six\n\nSEVEN = 7\n',
        "deep/one.py": "def six():\n    return 6\n",
        "deep/inner/__init__.py": "from . import leaf\n",
        "deep/inner/leaf.py": "def seven():\n    return 7\n",
    },
    "flat.simple": {"flat/simple.py": "EIGHT = 8\n"},
}
OF_PACKAGES = '''\
import deep
import flat.simple
from deep.inner import leaf
from flat import simple


def look() -> str:
    """Look."""
    same = simple is flat.simple and leaf is deep.inner.leaf
    return "%d %d %d %s" % (deep.six(), leaf.seven(), simple.EIGHT, same)
'''
