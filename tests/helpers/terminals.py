"""A command whose stderr is a terminal."""

import os
import pty
import subprocess


def on_terminal(words: list, **more) -> tuple:
    """Run *words* to their end; return (exit code, what they write to the terminal that is their
    stderr, their stdout).  With ``stdout=None`` in *more*, stdout is that terminal, too.
    """
    ours, theirs = pty.openpty()
    is_both = "stdout" in more and more.pop("stdout") is None
    try:
        with subprocess.Popen(
            words, stdout=theirs if is_both else subprocess.PIPE, stderr=theirs, **more
        ) as running:
            os.close(theirs)
            said, part = b"", b"-"
            while part:
                try:
                    part = os.read(ours, 4096)
                except OSError:  # on Linux: the other end of the terminal is closed
                    part = b""
                said += part
            out = b"" if is_both else running.stdout.read()
    finally:
        os.close(ours)
    return running.returncode, said, out
