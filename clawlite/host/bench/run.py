"""One run of ``clawlite bench`` and its rows: n samples of one case, their spread, and what was
measured where.
"""

import bisect
import os
import platform
import shutil
import subprocess
import sys

from clawlite.core.base.errors import ClawError

# the collector of MicroPython is conservative: where the heap lies decides what it keeps
TRIES = 3
KEYS = (
    "suite",
    "case",
    "unit",
    "n",
    "min",
    "p50",
    "p90",
    "p99",
    "max",
    "value",
    "target",
    "met",
    "heap_peak",
    "board",
    "clock_mhz",
    "firmware",
    "python",
    "core",
    "commit",
    "load",
    "note",
)


class Bench:
    """One run: a folder for its files, and what is the same in all of its rows.

    folder  empty folder, the caller's to remove
    rounds  int >= 2, samples of each case
    is_long  also what takes minutes
    is_here  with what this device has: the agent's image was compiled elsewhere
    """

    target_for = None  # function(suite, case, core) -> {"limit": ...} or None; None judges nothing

    def __init__(self, folder: str, rounds: int, is_long: bool = False, is_here: bool = False):
        self.folder = folder
        self.is_long, self.is_here = is_long, is_here
        # None: the load of this machine says nothing of the one that was measured
        self.load = _load
        self.rounds = rounds
        self.package = os.path.dirname(
            os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        )
        self.board, self.clock_mhz = _board()
        self.firmware = f"{platform.system()} {platform.release()}"
        self.python = f"{platform.python_implementation()} {platform.python_version()}"
        self.commit = _commit(self.package)

    def row(
        self,
        suite: str,
        case: str,
        unit: str,
        samples: list,
        value: float = None,
        note: str = "",
        core: str = "pure",
        python: str = None,
        heap_peak: int = None,
    ) -> dict:
        """Return one row.

        samples    one number or more, in *unit*; ``value`` is their median unless *value* says what
                   the target is about
        heap_peak  bytes, or None where it was not looked at
        """
        ordered = sorted(samples)
        value = quantile(ordered, 0.5) if value is None else value
        held = self.target_for and self.target_for(suite, case, core)
        target = held["limit"] if held else None
        found = dict.fromkeys(KEYS)
        found.update(
            suite=suite,
            case=case,
            unit=unit,
            n=len(ordered),
            min=ordered[0],
            max=ordered[-1],
            target=target,
            value=value,
            met=None if target is None else value <= target,
            heap_peak=heap_peak,
            board=self.board,
            clock_mhz=self.clock_mhz,
            firmware=self.firmware,
            python=python or self.python,
            core=core,
            commit=self.commit,
            load=self.load() if self.load else None,
            note=note,
        )
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
            found[name] = quantile(ordered, share)
        return {
            key: _round(number) if isinstance(number, float) else number
            for key, number in found.items()
        }

    def environment(self, **more: str) -> dict:
        """Return the environment of a process that runs this package, its state inside the run's
        folder.
        """
        keep = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("PYTHON", "CLAWLITE"))
        }
        return dict(
            keep, PYTHONPATH=self.package, CLAWLITE_STATE=os.path.join(self.folder, "state"), **more
        )

    def extensions(self) -> str | None:
        """Return the folder of the package with its extensions, or None: nobody built them."""
        path = os.path.join(self.package, "build", "accel")
        return path if os.path.isdir(path) else None

    def make(self, name: str) -> str:
        """Return the path of a new folder *name*, with a number where another suite has one."""
        path, number = os.path.join(self.folder, name), 1
        while os.path.lexists(path):
            number += 1
            path = os.path.join(self.folder, f"{name}-{number}")
        os.mkdir(path)
        return path

    def agent(self, own_tools: bool = True) -> str:
        """Return the image of the benchmarks' agent (agent.py), built once a run, with the
        operator's lines beside it.  When the build failed, each further call fails, too.
        """
        from clawlite.host.base import data
        from clawlite.host.bench import agent as bench_agent

        name = "agent" if own_tools else "agent-of-the-registry"
        path = os.path.join(self.folder, name, "claw.cbor")
        if not os.path.exists(path):
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)  # of one that failed
            folder = bench_agent.write(self.make(name), own_tools)
            with open(os.path.join(folder, "lines"), "wb") as file:
                file.write(bench_agent.opening() + bench_agent.call_line())
            if self.is_here:
                shutil.copy(data.benchmarks_dir() / "images" / (name + ".cbor"), path)
            else:
                build(folder)
        return path

    def script(self, name: str) -> str:
        """Return the path of a script of ``benchmarks/``.  Raises ``ClawError`` where that
        folder is missing.
        """
        from clawlite.host.base import data

        path = data.benchmarks_dir() / name
        if not path.exists():
            raise ClawError(
                f"{path} is missing: this suite needs a checkout",
                "run it there, or without one: clawlite bench --here",
            )
        return str(path)


def build(folder: str) -> str:
    """Build the agent in *folder*; return its image, which lies there."""
    from clawlite.host.builder.build import build_beside  # a device has no compiler

    return build_beside(folder)


def find_smallest(works, step: int, most: int, least: int = 0) -> int:
    """Return the smallest multiple of *step* above *least* for which ``works(size)`` holds in
    ``TRIES`` of as many runs, by bisection; *most*, a multiple of *step*, when none below it does.
    """
    sizes = range(least // step * step + step, most, step)
    at = bisect.bisect_left(sizes, True, key=lambda size: all(works(size) for _ in range(TRIES)))
    return sizes[at] if at < len(sizes) else most


def _round(number: float) -> float:
    """Return *number* with four decimals; below 1 with four digits, as ratios may be small."""
    return round(number, 4) if abs(number) >= 1 else float(f"{number:.4g}")


def quantile(ordered: list, share: float) -> float:
    """Return the value at *share* (0..1) of the sorted *ordered*; the lower one of two."""
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


def spawn(command: list, environment: dict, stdin=None) -> str:
    """Run *command*; return its stdout.  Raises ``ClawError`` with its own last words."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=stdin)
    if done.returncode:
        raise ClawError(
            "%s ended with %d: %s"
            % (" ".join(command[:4]), done.returncode, (done.stderr or done.stdout)[-600:].strip())
        )
    return done.stdout


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0


def _commit(folder: str):
    if not os.path.exists(os.path.join(folder, ".git")):
        return None  # installed: a checkout around it is another one
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=folder,
            capture_output=True,
            text=True,
        )
    except OSError:
        return None
    return done.stdout.strip() or None


def _board() -> tuple:
    """Return (what machine this is, clock in MHz or None)."""
    try:
        with open("/proc/device-tree/model", encoding="utf-8") as file:
            return file.read().strip("\0\n"), _clock()
    except OSError:
        return (
            f"{platform.machine()}, {os.cpu_count()} cores, {sys.platform} "
            f"{platform.release().partition('-')[0]}",
            _clock(),
        )


def _clock():
    try:
        with open(
            "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", encoding="ascii"
        ) as file:
            return int(file.read()) // 1000
    except (OSError, ValueError):
        pass
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            clocks = [line.rpartition(":")[2] for line in file if line.startswith("cpu MHz")]
        return int(float(clocks[0])) if clocks else None
    except (OSError, ValueError):
        return None
