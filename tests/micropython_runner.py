"""Runs test modules ON MicroPython: ``micropython tests/micropython_runner.py test_cbor test_frame
...``

Each function whose name starts with ``test_`` is called, in name order.  A failure prints its
traceback; each module ends with one line for machines, ``@module NAME passed failed``.  The exit
code is 1 when anything failed."""

import gc
import sys


def run(name):
    """Import module *name*, call its tests and return (passed, failed)."""
    try:
        module = __import__(name)
    except Exception as error:
        print("FAILED %s: import" % name)
        sys.print_exception(error)
        return 0, 1
    passed = failed = 0
    for test in sorted(n for n in dir(module) if n.startswith("test_")):
        function = getattr(module, test)
        if not callable(function):  # a module that another one imported
            continue
        gc.collect()
        try:
            function()
            passed += 1
        except Exception as error:
            failed += 1
            print("FAILED %s.%s" % (name, test))
            sys.print_exception(error)
    if not passed + failed:
        print("FAILED %s: no test in it" % name)
        failed = 1
    return passed, failed


def main(names):
    failures = 0
    for name in names:
        passed, failed = run(name)
        failures += failed
        print("@module %s %d %d" % (name, passed, failed))
        gc.collect()
    sys.exit(1 if failures else 0)


main(sys.argv[1:])
