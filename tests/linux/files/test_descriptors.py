"""A number that was given back may belong to another file: nobody uses it again."""

import os

from clawlite.linux.mcp.server_process import PlainServer


def test_what_is_ended_twice_closes_no_other_file(tmp_path):
    end = PlainServer(["/bin/true"], {}, str(tmp_path)).end
    before = len(os.listdir("/proc/self/fd"))
    end()
    count = before - len(os.listdir("/proc/self/fd"))
    assert count > 0
    others = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) for _ in range(count)]
    end()
    for fd in others:
        os.close(fd)  # OSError: it was closed already
