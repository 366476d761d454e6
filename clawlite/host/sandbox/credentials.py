"""Secrets that tools use: the tables ``[[credentials]]`` of clawlite.toml.  CKP has a field for the
mode (``secrets.injection``), but none for which tool uses which secret; docs/adr/0023.

    name     of the secret, as a secret_ref would name it
    tools    those that get it, in the environment of their process or as a file, as the sandbox
             declares: ``injection: environment`` or ``file-mount``
    hosts    those to which web-fetch sends it, in *header* ("Authorization"), in the form *format*
             ("Bearer {}")
"""

import re

from clawlite.host.base.problems import enquote, one_of
from clawlite.host.models.common import Strict, Text

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_FORMAT = re.compile(r"[ -~]*\{\}[ -~]*")


class Credential(Strict):
    name: Text
    tools: list[Text] | None = None
    hosts: list[Text] | None = None
    header: Text | None = None
    format: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for field, form, wanted in (
            ("name", _NAME, "1 to 128 of A-Z a-z 0-9 _ . -"),
            ("header", _HEADER, "the name of a header"),
            ("format", _FORMAT, "a text with {} in it"),
        ):
            if isinstance(value.get(field), str) and not form.fullmatch(value[field]):
                report((field,), "", wanted, enquote(value[field]))
        for index, host in enumerate(
            value["hosts"] if isinstance(value.get("hosts"), list) else ()
        ):
            if isinstance(host, str) and not _HOST.fullmatch(host):
                report(
                    ("hosts", index),
                    "a credential belongs to one host",
                    "a name in lower case, no pattern",
                    enquote(host),
                )
        if "hosts" not in value and "tools" not in value:
            report((), "nobody uses it", hint="add tools = [...] or hosts = [...]")
        if ("header" in value or "format" in value) and "hosts" not in value:
            report(
                ("header" if "header" in value else "format",),
                "it is for hosts, and there are none",
                hint="add hosts, or remove it",
                key=True,
            )


def records(manifest) -> list:
    """Return [[name, [tool, ...], [host, ...], header, format], ...]; what cannot be done is a
    problem of *manifest*.
    """
    found = []
    can = manifest.sandbox and manifest.sandbox.spec.capabilities
    mode = can and can.secrets and can.secrets.injection or "host-boundary"
    names = [tool.name for tool in manifest.tools]
    for index, credential in enumerate(manifest.settings.credentials):
        for at, tool in enumerate(credential.tools or ()):
            path = ("credentials", index, "tools", at)
            if tool not in names:
                manifest.problems.add(
                    manifest.settings.place,
                    path,
                    f"{enquote(tool)} is no tool of this agent",
                    hint=f"tools here: {one_of(names)}",
                )
            elif manifest.sandbox and manifest.sandbox.spec.level == "none":
                if mode == "host-boundary":  # sandbox_errors.py refuses the others
                    manifest.problems.add(
                        manifest.settings.place,
                        path,
                        "at level none a tool has no process of its own that could be given a "
                        "secret",
                        hint="declare a Sandbox of level process with injection: environment or "
                        "file-mount under capabilities.secrets, or name hosts",
                    )
            elif mode == "host-boundary":
                manifest.problems.add(
                    manifest.settings.place,
                    path,
                    "the sandbox says injection: host-boundary, and that gives no secret to a "
                    "process",
                    hint="say injection: environment or file-mount under "
                    "capabilities.secrets of the Sandbox, or name hosts",
                )
            elif at == 0 and credential.name.strip(".") == "":
                manifest.problems.add(
                    manifest.settings.place,
                    ("credentials", index, "name"),
                    "",
                    "a name that a file can have",
                    enquote(credential.name),
                )
        found.append(
            [
                credential.name,
                list(credential.tools or []),
                list(credential.hosts or []),
                credential.header or "Authorization",
                credential.format or "Bearer {}",
            ]
        )
    return found
