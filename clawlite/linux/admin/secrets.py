"""``clawlite secrets``: an agent's own store, from the command line.  A value comes from stdin
or a hidden prompt; none is ever shown.
"""

import os
import sys
from contextlib import contextmanager

from clawlite.core.base.errors import ClawError
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.admin.trace import image_of, mending
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line, print_note
from clawlite.linux.secrets import encrypted_store, secrets


def set_value(name: str, manifest, agent, as_json: bool, name_of):
    """Keep a secret.  Raises ``ClawError``, as the others.

    name_of  function(manifest or folder) -> the agent's name, for one that has no image yet; raises
             ``ClawError``
    """
    with _store(manifest, agent, name_of) as agent:
        secrets.check_name(name)
        secrets.set_secret(agent, name, _read_value(name))
        is_encrypted = encrypted_store.has_key()
        _print_result(
            {"agent": agent, "name": name, "encrypted": is_encrypted},
            as_json,
            "%s keeps %s%s" % (agent, name, ", encrypted" if is_encrypted else ""),
        )


def login(name: str, manifest, as_json: bool):
    """Sign a person in."""
    from clawlite.linux.mcp.sign_in import refresh_token
    from clawlite.protocols.net.device_flow import sign_in_text

    secrets.check_name(name)
    path = image_of(manifest or ".")
    if not os.path.exists(path):
        raise ClawError("%s: there is no such image" % path, "clawlite build makes it")

    def tell(*told):
        print_note(*sign_in_text(*told).split("\n"))

    with mending("the secret store"):
        image = files.open_image(path)
        agent = image.agent.name
        found = refresh_token(
            image, name, tell, lambda client: secrets.resolve(client, secrets.stores(agent))
        )
        with secrets.Renewal(agent, name) as renewal:  # a process of the agent may be at it
            renewal.take(waits=True)
            secrets.set_secret(agent, name, found)
    text = "%s may act as you: %s" % (agent, name)
    _print_result({"agent": agent, "name": name}, as_json, text)


def remove(name: str, manifest, agent, as_json: bool, name_of):
    """Forget a secret."""
    with _store(manifest, agent, name_of) as agent:
        secrets.remove(agent, name)
        text = "%s has forgotten %s" % (agent, name)
        _print_result({"agent": agent, "removed": name}, as_json, text)


def show_names(manifest, agent, as_json: bool, name_of):
    """List the names of the secrets."""
    with _store(manifest, agent, name_of) as agent:
        names = secrets.names(agent)
        found = [{"name": one, "encrypted": secrets.is_encrypted(agent, one)} for one in names]
    if as_json:
        print(document(found))
        return
    for one in found:
        print_line("%s%s" % (one["name"], "  encrypted" if one["encrypted"] else ""))
    if not found:
        print_note("%s has no secrets; set one with: clawlite secrets set NAME" % agent)


@contextmanager
def _store(manifest, agent, name_of):
    """Yield the name of the agent whose secrets are meant."""
    if agent is not None and (manifest or not agent.replace("-", "").isalnum()):
        raise BadUsage("expected at most one agent, by its name", "clawlite secrets --help")
    with mending("the secret store"):
        image = image_of(manifest or ".")
        if agent is None and os.path.exists(image):
            agent = files.open_image(image).agent.name
        yield agent or name_of(manifest or ".")


def _read_value(name: str) -> str:
    if os.isatty(0):
        from getpass import getpass

        return getpass("Value of %s (it is not shown): " % name)
    data = sys.stdin.buffer.read(secrets.MAX_VALUE + 3)
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    # raised outside: the exception of the codec holds the value
    raise ClawError("stdin: a secret is UTF-8 text", "save the secret as UTF-8, and give it again")


def _print_result(value: dict, as_json: bool, text: str):
    print(document(value)) if as_json else print_line(text)
