"""Find the processes that have a file open, from their descriptors in Linux's /proc/PID/fd
(proc(5)).
"""

import os


def open_count(path: str) -> int:
    """Return how often *path* is open, in all processes that may be looked into, this one too."""
    return len(_open([path])[path])


def holders(paths: list[str]) -> dict[str, list[tuple[int, str]]]:
    """Return {path: [(process id, its name)]} of the other processes that have each of *paths*
    open, sorted; not who made a pseudo-terminal.

    paths  of devices; links are followed
    Processes of other users are not seen, but by root; none is where there is no /proc.
    """
    real = {path: os.path.realpath(path) for path in paths}
    pids = _open(list(real.values())) if paths else {}
    return {
        path: sorted(
            {
                (pid, _name(pid))
                for pid in pids[real[path]]
                if pid != os.getpid() and not _is_board(pid, real[path])
            }
        )
        for path in paths
    }


def _is_board(pid: int, path: str) -> bool:
    """Return whether the process has the other end of the pseudo-terminal at *path*: it is the
    board.
    """
    number = path.removeprefix("/dev/pts/")
    try:
        for fd in os.listdir(f"/proc/{pid}/fdinfo") if number.isdigit() else ():
            with open(f"/proc/{pid}/fdinfo/{fd}") as file:
                if f"tty-index:\t{number}\n" in file.read():
                    return True
    except OSError:  # gone
        pass
    return False


def _open(paths: list[str]) -> dict[str, list[int]]:
    """Return {path: the process of each descriptor that is open on it}."""
    found = {path: [] for path in paths}
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self/fd") else ()):
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:  # gone, or another user's
            continue
        for fd in descriptors:
            try:
                found[os.readlink(f"/proc/{pid}/fd/{fd}")].append(int(pid))
            except (OSError, KeyError):
                pass
    return found


def _name(pid: int) -> str:
    """Return the program's name; the first word of its command line says more than "python3", and
    of clawlite the command does too: "clawlite gateway".
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = [word.decode(errors="replace") for word in file.read(4096).split(b"\0")]
        with open(f"/proc/{pid}/comm") as file:
            name = file.read().strip()
    except OSError:
        return "?"
    # a script that names its interpreter has its own name, but a command line like the others
    if name.startswith(("python", "clawlite")) and len(words) > 1:
        script = [word for word in words[1:] if word and (word == "-c" or not word.startswith("-"))]
        if script[:1] == ["clawlite"]:  # of python -m
            return " ".join(["clawlite", *_verb(words, "clawlite")])
        name = os.path.basename(script[0]) if script and script[0] != "-c" else name
        if script and (name == "clawlite" or script[0].endswith("/clawlite/__main__.py")):
            return " ".join(["clawlite", *_verb(words, script[0])])
    return name


def _verb(words: list, program: str) -> list:
    """Return [the word after *program* on a command line], [] without one."""
    after = words[words.index(program) + 1 :]
    return [word for word in after[:1] if word.isalpha()]
