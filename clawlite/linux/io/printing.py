"""What a command of a device prints: lines, in which strangers' words may stand."""

import os
import sys

from clawlite.core.base.printable import join_lines


def print_line(*lines: str):
    """Print *lines* on stdout, each as one line, whatever strangers have written into it."""
    _write(1, sys.stdout, lines)


def print_note(*lines: str):
    """Print *lines* on stderr, as ``print_line`` does."""
    _write(2, sys.stderr, lines)


def _write(number: int, stream, lines):
    if stream is not None:
        stream.flush()
    data = join_lines(lines).encode("utf-8", "replace") + b"\n"
    while data:
        data = data[os.write(number, data) :]
