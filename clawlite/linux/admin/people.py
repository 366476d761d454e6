"""``clawlite people``: who may use an agent beyond stdio, by the page or as an operator, and with
which role (docs/page.md).
"""

import os
from contextlib import ExitStack

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.admin.trace import image_of, mending
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line, print_note
from clawlite.linux.secrets import people
from clawlite.linux.secrets.gateway_tokens import FOLDER
from clawlite.protocols.secrets.people import MAX_NAME, is_name

_GATEWAY = "the gateway"


def add(name: str, role: str, manifest, agents, gateway: bool, as_json: bool, name_of):
    """Let a person use agents, and show their token, this once.  Raises ``ClawError``, as the
    others.
    """
    if not is_name(name):
        raise BadUsage(
            "NAME: expected 1 to %d letters, digits, dots, hyphens or underscores, found %s"
            % (MAX_NAME, name[:80]),
            "such as ann",
        )
    token, digest = people.make_token(name)
    places, before = _places(manifest, agents, gateway, name_of), []
    for place, folder in places:
        if people.add(folder, name, role, digest):
            before.append(place)
    if as_json:
        print(document({"name": name, "role": role, "token": token, "of": _names(places)}))
    else:
        print_line(token)
        print_note(
            "%s is %s %s of %s. The token is shown this once; log in with all of it at the page "
            "(clawlite page), or send it as Bearer."
            % (name, "an" if role == "admin" else "a", role, ", ".join(_names(places)))
        )
    for place in before:
        print_note("The token that %s had for %s is no longer valid." % (name, place))


def show(manifest, agents, gateway: bool, as_json: bool, name_of):
    """List the people, without tokens."""
    rows = [
        {"name": one.name, "role": one.role, "of": place, "since": iso8601(one.since_s)}
        for place, folder in _places(manifest, agents, gateway, name_of)
        for one in people.read(folder)
    ]
    if as_json:
        print(document(rows))
        return
    for row in rows:
        print_line("%-24s %-7s %-24s since %s" % tuple(row.values()))
    if not rows:
        print_note("Nobody is known; add somebody with: clawlite people add NAME --role user")


def remove(name: str, manifest, agents, gateway: bool, as_json: bool, name_of):
    """Forget a person, whose token and sessions end."""
    places = _places(manifest, agents, gateway, name_of)
    found = [place for place, folder in places if people.remove(folder, name)]
    if not found:
        raise ClawError(
            "%s: nobody of that name is known to %s" % (name[:80], ", ".join(_names(places))),
            "clawlite people list shows who is",
        )
    if as_json:
        print(document({"removed": name, "of": found}))
    else:
        print_line("%s may no longer use %s" % (name, ", ".join(found)))


def _names(places: list) -> list:
    return [place for place, _ in places]


def _places(manifest, agents, gateway: bool, name_of) -> list:
    """Return [(name of an agent, its state folder), ...] of whom is meant."""
    if manifest and (agents or gateway):
        raise BadUsage(
            "expected a manifest, or --agent and --gateway, found both", "clawlite people --help"
        )
    with ExitStack() as stack:
        stack.enter_context(mending("the list of people"))
        if not agents and not gateway:
            image = image_of(manifest or ".")
            is_there = os.path.exists(image)
            agents = [files.open_image(image).agent.name if is_there else name_of(manifest or ".")]
        found = [(agent, files.state_folder(agent)) for agent in dict.fromkeys(agents)]
        if gateway:
            found.append((_GATEWAY, os.path.join(files.state_root(), FOLDER)))
    return found
