"""What a board reads from its console, interrupted by Ctrl-C at any byte: the rest of a record
is never taken for a person's text.
"""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios

from agents import DEADLINE_S, board, eventually, make_bench


def test_ctrl_c_in_a_record_does_not_make_text_of_its_rest(micropython):
    words, env = board(start="import inside_board; inside_board.interrupt_a_record()", inside=True)
    with open(os.devnull) as nothing:  # always ready to be read
        done = subprocess.run(
            words, stdin=nothing, capture_output=True, text=True, timeout=300, env=env
        )
    assert done.stdout == "all 49\n", done.stdout + done.stderr


def held(end: int) -> int:
    """Return how many bytes wait in a pipe."""
    return struct.unpack("i", fcntl.ioctl(end, termios.FIONREAD, b"\0" * 4))[0]


def read_until(output: int, wanted: bytes, seen: bytes = b"") -> bytes:
    while wanted not in seen:
        assert select.select([output], [], [], DEADLINE_S)[0], seen[-2000:]
        seen += os.read(output, 65536)
    return seen


def test_output_that_a_port_does_not_take_is_told(micropython, tmp_path):
    """A pipe that nobody reads takes no more, like the USB of rp2 after its 500 ms; here it says
    so at once.
    """
    image = make_bench(tmp_path)
    words, env = board(image)
    stdin, given = os.pipe()
    output, stdout = os.pipe()
    os.set_blocking(stdout, False)
    room = fcntl.fcntl(stdout, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen(
        words, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, cwd=tmp_path, env=env
    ) as process:
        os.close(stdin)
        os.close(stdout)
        read_until(output, b"> ")
        for number in range(2 * room // 20):
            os.write(given, b"echo number %04d\n" % number)
        eventually(lambda: held(given) == 0)
        seen = read_until(output, b"> ")
        while select.select([output], [], [], 0)[0] and held(output):
            seen += os.read(output, 65536)
        os.write(given, b"echo the end\n")
        seen = read_until(output, b"You said: the end\n> ", seen)
        told = re.findall(
            rb"\nclawlite: (\d+) bytes of output are lost: nobody read them in "
            rb"time\n",
            seen,
        )
        assert told and int(told[0]) > 0
        os.close(given)
        assert process.wait(DEADLINE_S) == 0 and process.stderr.read() == b""
        os.close(output)
