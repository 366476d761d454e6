"""[approvals] of clawlite.toml: who is asked for approvals, and where a notice is sent
(linux/approvals).
"""

from typing import Annotated

from msgspec import Meta

from clawlite.core.base.errors import SandboxDenied
from clawlite.host.base.problems import enquote, one_of
from clawlite.host.channels import channels
from clawlite.host.models.common import Name, Strict, Text
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import parse_url

_BODY = "{agent}: {tool} waits {seconds} s for approval. Asked for by {who}. {link}"


class Notify(Strict):
    """A POST for each call that waits.

    url         a topic of ntfy, or any other URL; over https when a credential goes with it, or on
                this machine
    body        {agent}, {tool}, {who}, {seconds} and {link} are put in, as parts of JSON strings
                where it begins with { and a quote, or with [
    credential  name of the secret that goes there as "Authorization: Bearer ..."
    link        where a person answers: the address of the page
    """

    url: Text
    body: Annotated[str, Meta(min_length=1, max_length=4096)] = _BODY
    credential: Text | None = None
    link: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for field in ("url", "link"):
            url = value.get(field)
            parsed = _parse(url) if isinstance(url, str) else None
            if isinstance(url, str) and parsed is None:
                report((field,), "", "an http or https URL", enquote(url))
            elif parsed and field == "url" and "credential" in value and not _is_safe(parsed):
                report(
                    ("credential",),
                    "a credential goes over https alone, or to this machine",
                    hint="write https in the URL",
                    key=True,
                )


class Approvals(Strict):
    """Who is asked for approvals beside the console.

    to  names of the channels whose admins are asked, None: of all
    """

    to: list[Name] | None = None
    notify: Notify | None = None


def _parse(url: str):
    try:
        return parse_url(url)
    except SandboxDenied:
        return None


def _is_safe(parsed: tuple) -> bool:
    return parsed[0] == "https" or is_loopback(address_of(parsed[1]))


def check(manifest) -> None:
    """Add a problem for each Channel of ``to`` in which nobody can be asked."""
    able = [one.type for one in channels.TYPES.values() if one.kind.carries and one.is_remote]
    askable = [one.name for one in manifest.channels if one.spec.type in able]
    for index, name in enumerate(manifest.settings.approvals.to or ()):
        if name not in askable:
            manifest.problems.add(
                manifest.settings.place,
                ("approvals", "to", index),
                "nobody can be asked there",
                one_of(askable) if askable else f"a Channel of type {' or '.join(able)}",
                enquote(name),
            )


def section(manifest) -> list | None:
    """Return [names of channels or None, what ``notify.Notify`` is given or None, and True where a
    gateway may speak for admins]; None when nothing is said.
    """
    said, gateway = manifest.settings.approvals, manifest.settings.gateway
    may_admin = "admin" in (gateway and gateway.roles or ())
    if said.to is None and said.notify is None and not may_admin:
        return None
    one = said.notify
    found = [said.to, one and [one.url, one.body, one.credential, one.link or ""]]
    return found + [True] * may_admin
