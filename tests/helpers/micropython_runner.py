"""Runs a test module ON MicroPython, in the stack of a board (run_core_micropython.py).

Each function whose name starts with ``test_`` is called, in name order, except those that the
module's ``ONLY_ON_HOSTS`` names.  A failure prints its traceback; at the end comes one line for
machines, ``@module NAME passed failed``.  The exit code is 1 when anything failed."""

import gc
import sys


def run(names, call):
    """Import modules *names*, have *call* call the tests of the last one and return (passed,
    failed).
    """
    name = names[-1]
    try:
        call(lambda: [__import__(name) for name in names])
        module = sys.modules[name]
    except Exception as error:
        print("FAILED %s: import" % name)
        sys.print_exception(error)
        return 0, 1
    passed = failed = 0
    for test in sorted(n for n in dir(module) if n.startswith("test_")):
        function = getattr(module, test)
        if not callable(function):  # a module that another one imported
            continue
        if test in getattr(module, "ONLY_ON_HOSTS", ()):
            continue
        gc.collect()
        try:
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


def main(names, call):
    """names: the modules that the last one needs, in an order in which imports do not nest."""
    passed, failed = run(names, call)
    print("@module %s %d %d" % (names[-1], passed, failed))
    return 1 if failed else 0
