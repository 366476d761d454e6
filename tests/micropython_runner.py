"""Runs test modules ON MicroPython: ``micropython tests/micropython_runner.py test_cbor test_frame
...``

Each function whose name starts with ``test_`` is called, in name order, in the stack of a board
where one is asked for, except those that a module's ``WHOLE_STACK`` names.  A failure prints its
traceback; each module ends with one line for machines, ``@module NAME passed failed``.  The exit
code is 1 when anything failed."""

import gc
import sys


def run(name, call):
    """Import module *name*, have *call* call its tests and return (passed, failed)."""
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
            if test in getattr(module, "WHOLE_STACK", ()):
                function()
            else:
                call(function)
            passed += 1
        except Exception as error:
            failed += 1
            print("FAILED %s.%s" % (name, test))
            sys.print_exception(error)
    if not passed + failed:
        print("FAILED %s: no test in it" % name)
        failed = 1
    return passed, failed


def main(names, call=lambda test: test()):
    failures = 0
    for name in names:
        passed, failed = run(name, call)
        failures += failed
        print("@module %s %d %d" % (name, passed, failed))
        gc.collect()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
