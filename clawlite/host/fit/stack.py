"""The stack of a board on MicroPython's unix port, which has 80,000 bytes where an RP2040 has 7,936
(docs/adr/0080).

1. A program runs below so many nested calls that the rest of the stack is as large as a board's.
2. On 64 bits a call takes 400 bytes where an RP2040's takes 256: the sizes of boards are scaled by
   that.
3. An import takes 5,056 bytes here, because the unix port keeps 4,096 for a path where boards keep
   128. So an import runs in a thread of its own, whose stack is what its caller has left plus
   that difference.  Modules of a board's firmware are in C: their import checks no stack.
4. SIGINT must not come while such a thread runs: the unix port raises ``KeyboardInterrupt`` in the
   code that waits for the thread, and the thread goes on beside it.
"""

FRAME, BOARD_FRAME = 400, 256  # bytes of a plain call: 64-bit unix port, RP2040; both measured
RESERVE_PERCENT = 25  # of a board's stack stay free: another compiler makes other frames
PICO = 7936  # bytes: 8 KB without the 256 that MicroPython keeps for itself
LEAST = 4096  # bytes: with less nothing starts

# It runs on MicroPython.  Few names, short frames: one with more than 11 words would lie on the
# heap.
FUNCTIONS = """
import builtins as _builtins, gc as _gc, micropython as _mp, sys as _sys, _thread
_WHOLE, _PATHS, _IMPORT, _THREAD = 80000, 4096 - 128, 5056 + 384, 90112     # bytes; ports/unix/main.c has 80,000
_GIVEN = "array binascii collections errno gc hashlib json machine micropython network os re select socket struct sys time tls".split()
_limit = [_WHOLE]
_import = __import__

def _deeper(used, run):
    if _mp.stack_use() + 384 <= used:
        found = _deeper(used, run)
        return found
    if _mp.stack_use() + 240 <= used:
        return next(_between(run))
    return run()

def _between(run):
    yield run()

def _load(name, *more):
    if name in _sys.modules and ("." not in name or len(more) > 2 and more[2]):
        return _sys.modules[name]
    was = _limit[0]
    left = _THREAD - 8192 if name in _GIVEN else was - _mp.stack_use() + _PATHS
    if left < _IMPORT:
        raise RuntimeError("maximum recursion depth exceeded")
    found = [None, None]                # no more is allocated when memory is at an end
    done = _thread.allocate_lock()
    def load():
        found[0] = _import(name, *more)
    def thread():
        _limit[0] = _THREAD - 8192
        try:
            _deeper(_limit[0] - left, load)
        except BaseException as e:
            found[1] = e
        finally:
            done.release()
    done.acquire()
    try:
        _thread.stack_size(_THREAD)
        _thread.start_new_thread(thread, ())
        done.acquire()
    finally:
        _limit[0] = was
    if found[1]:
        raise found[1]
    return found[0]

def _shallow(free, run):
    _builtins.__import__ = _load
    _gc.collect()                       # below all these frames would lie what compiling this has left
    try:
        return _deeper(_WHOLE - free, run)
    finally:
        _builtins.__import__ = _import
"""  # noqa: E501
_SCRIPT = (
    FUNCTIONS
    + """
def _run():
    try:
        execfile(_sys.argv[0])
    except SystemExit as e:
        return e.args[0] if e.args else 0
    except BaseException as e:
        _sys.print_exception(e, _sys.stderr)
        return 1

_free = int(_sys.argv[1])
del _sys.argv[:2]
_sys.path[0] = _sys.argv[0].rpartition("/")[0] or "."
_sys.exit(_shallow(_free, _run))
"""
)


def scale(stack_bytes: int, reserve_percent: int = RESERVE_PERCENT) -> int:
    """Return the bytes of the unix port's stack that are a board's *stack_bytes* without the
    reserve.
    """
    return stack_bytes * (100 - reserve_percent) // 100 * FRAME // BOARD_FRAME


def arguments(free: int) -> list[str]:
    """Return what stands before a script's path on ``micropython``'s command line, so that it
    has *free* bytes of stack.
    """
    return ["-c", _SCRIPT, str(free)]
