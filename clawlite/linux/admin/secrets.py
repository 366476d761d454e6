"""``clawlite secrets``: an agent's own store, from the command line.  A value comes from stdin
or a hidden prompt; none is ever shown.
"""

import os
import sys

from clawlite.core.base.errors import ClawError
from clawlite.linux.admin.commands import print_error, print_failure
from clawlite.linux.admin.trace import image_of
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line, print_note
from clawlite.linux.secrets import encrypted_store, secrets

USAGE = (
    "usage: clawlite secrets set NAME | login NAME | list | remove NAME  [MANIFEST | IMAGE | "
    "--agent AGENT] [--json]"
)
HELP = (
    """The secrets that an agent keeps for itself, by the names that secret_ref gives.  set reads
the value from stdin, or asks for it without showing it; with $%s the store
is encrypted (aes-256-gcm).  login signs a person in at an MCP server ([mcp.NAME.oauth2]
flow = "device") and keeps what lasts of it under the name of its credential.
It needs the image: clawlite build.  Where a gateway calls the server, sign in on its machine, for
all devices or, with NAME.DEVICE, for one."""
    % encrypted_store.VARIABLE
)


def main(args: list, name_of) -> int:
    """Run the verb; return the exit code.

    name_of  function(manifest or folder) -> the agent's name, for one that has no image yet; raises
             ``ClawError``
    """
    if "--help" in args or "-h" in args:
        print(USAGE + "\n\n" + HELP)
        return 0
    as_json = "--json" in args
    words = [word for word in args if word != "--json"]
    agent = None
    if "--agent" in words:
        at = words.index("--agent")
        agent = "".join(words[at + 1 : at + 2])
        words = words[:at] + words[at + 2 :]
    verb = words.pop(0) if words else ""
    name = words.pop(0) if verb in ("set", "login", "remove") and words else None
    if (
        verb not in ("set", "login", "list", "remove")
        or verb != "list"
        and not name
        or len(words) > 1
        or "".join(words[:1]).startswith("-")
        or agent is not None
        and (words or verb == "login" or not agent.replace("-", "").isalnum())
    ):
        said = (
            "%s: expected the NAME of the secret" % verb
            if verb in ("set", "login", "remove") and not name
            else "expected set, login, list or remove, and at most one agent"
        )
        return print_failure(said, USAGE)
    try:
        if verb == "login":
            return _login(words[0] if words else ".", name, as_json)
        agent = agent or _agent(words[0] if words else ".", name_of)
        return {"set": _set, "remove": _remove, "list": _list}[verb](agent, name, as_json)
    except ClawError as e:
        return print_error(e, as_json, 1)
    except OSError as e:
        return print_error(
            ClawError("the secret store: %s" % e.strerror, files.mend(e)),
            as_json,
        )


def _agent(where: str, name_of) -> str:
    image = image_of(where)
    return files.open_image(image).agent.name if os.path.exists(image) else name_of(where)


def _set(agent: str, name: str, as_json: bool) -> int:
    secrets.check_name(name)
    if os.isatty(0):
        from getpass import getpass

        value = getpass("Value of %s (it is not shown): " % name)
    else:
        data = sys.stdin.buffer.read(secrets.MAX_VALUE + 3)
        try:
            value = data.decode()
        except UnicodeDecodeError:
            value = None
        if value is None:  # raised outside: the exception of the codec holds the value
            raise ClawError(
                "stdin: a secret is UTF-8 text", "save the secret as UTF-8, and give it again"
            )
    secrets.set_secret(agent, name, value)
    _print_result(
        {"agent": agent, "name": name, "encrypted": encrypted_store.has_key()},
        as_json,
        "%s keeps %s%s" % (agent, name, ", encrypted" if encrypted_store.has_key() else ""),
    )
    return 0


def _login(where: str, name: str, as_json: bool) -> int:
    secrets.check_name(name)
    path = image_of(where)
    if not os.path.exists(path):
        raise ClawError("%s: there is no such image" % path, "clawlite build makes it")
    image = files.open_image(path)
    from clawlite.core.net.device_flow import sign_in_text
    from clawlite.linux.mcp.sign_in import refresh_token

    def tell(*told):
        print_note(*sign_in_text(*told).split("\n"))

    agent = image.agent.name
    found = refresh_token(
        image, name, tell, lambda client: secrets.resolve(client, secrets.stores(agent))
    )
    with secrets.Renewal(agent, name) as renewal:  # a process of the agent may be at it
        renewal.take(waits=True)
        secrets.set_secret(agent, name, found)
    _print_result({"agent": agent, "name": name}, as_json, "%s may act as you: %s" % (agent, name))
    return 0


def _remove(agent: str, name: str, as_json: bool) -> int:
    secrets.remove(agent, name)
    _print_result({"agent": agent, "removed": name}, as_json, "%s has forgotten %s" % (agent, name))
    return 0


def _list(agent: str, _, as_json: bool) -> int:
    found = [
        {"name": name, "encrypted": secrets.is_encrypted(agent, name)}
        for name in secrets.names(agent)
    ]
    if as_json:
        print(document(found))
    for one in () if as_json else found:
        print_line("%s%s" % (one["name"], "  encrypted" if one["encrypted"] else ""))
    if not found and not as_json:
        print_note("%s has no secrets; set one with: clawlite secrets set NAME" % agent)
    return 0


def _print_result(value: dict, as_json: bool, text: str):
    print(document(value)) if as_json else print_line(text)
