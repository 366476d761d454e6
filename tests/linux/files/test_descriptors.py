"""A number that was given back may belong to another file: nobody uses it again."""

import os

import pytest

from clawlite.linux.mcp.server_process import PlainServer
from clawlite.linux.swarm_engines.mqtt_log import KeptLog


def kept_log(folder):
    return KeptLog(str(folder)).close


def server_process(folder):
    return PlainServer(["/bin/true"], {}, str(folder)).end


@pytest.mark.parametrize("make", [kept_log, server_process])
def test_what_is_ended_twice_closes_no_other_file(tmp_path, make):
    end = make(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    end()
    count = before - len(os.listdir("/proc/self/fd"))
    assert count > 0
    others = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) for _ in range(count)]
    end()
    for fd in others:
        os.close(fd)  # OSError: it was closed already


def test_a_close_that_fails_gives_the_number_back_all_the_same(tmp_path, monkeypatch):
    """close(2): the number is free, also after EIO."""
    log = KeptLog(str(tmp_path))
    close = os.close

    def fails(fd):
        close(fd)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "close", fails)
    with pytest.raises(OSError, match="Input/output error"):
        log.close()
    monkeypatch.undo()
    other = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    log.close()
    os.close(other)
