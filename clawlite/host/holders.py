"""Who has a file open: other processes' descriptors, as Linux tells them (proc(5), /proc/PID/fd)."""
import os


def openings(path: str) -> int:
    """Return how often *path* is open, in all processes that may be looked into, this one too."""
    return len(_open(path))


def holders(path: str) -> list[tuple[int, str]]:
    """Return (process id, its name) of each other process that has *path* open, sorted; [] where there is no /proc.

    path  of a device; links are followed
    Processes of other users are not seen, but by root.
    """
    return sorted({(pid, _name(pid)) for pid in _open(os.path.realpath(path)) if pid != os.getpid()})


def _open(path: str) -> list[int]:
    """Return the process of each descriptor that is open on *path*."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self/fd") else ()):
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:                 # gone, or another user's
            continue
        for fd in descriptors:
            try:
                if os.readlink(f"/proc/{pid}/fd/{fd}") == path:
                    found.append(int(pid))
            except OSError:
                pass
    return found


def _name(pid: int) -> str:
    """Return the program's name; the first word of its command line says more than "python3"."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = [word.decode(errors="replace") for word in file.read(4096).split(b"\0")]
        with open(f"/proc/{pid}/comm") as file:
            name = file.read().strip()
    except OSError:
        return "?"
    if name.startswith("python") and len(words) > 1:
        script = [word for word in words[1:] if word and not word.startswith("-")]
        name = os.path.basename(script[0]) if script else name
    return name
