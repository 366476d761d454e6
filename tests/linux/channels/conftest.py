"""An agent at a Bot API server on loopback."""

import contextlib
import os

import pytest
from bot_server import TOKEN, BotServer
from channel_world import World


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Return a function(access_control, **more of the spec) -> (World, BotServer); all is closed
    at the end.
    """
    monkeypatch.setenv("SECRET", TOKEN)
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "secrets"))
    with contextlib.ExitStack() as stack:

        def start(control: dict, console: bool = False, settings: str = "", **more):
            server = stack.enter_context(BotServer(TOKEN))
            wake = os.pipe()
            stack.callback(lambda: [os.close(fd) for fd in wake])
            spec = dict(
                {"type": "telegram", "transport": "polling", "access_control": control}, **more
            )
            world = World(
                tmp_path,
                {"bot": spec},
                '[telegram]\nbase_url = "%s"\n' % server.url + settings,
                console=console,
                wake=wake,
            )
            stack.callback(lambda: world.channels.close())
            return world, server

        yield start
