"""Settings of web-search in clawlite.toml: the section [search]."""

from clawlite.core.base.errors import SandboxDenied
from clawlite.host.base.problems import enquote
from clawlite.host.models.common import Strict, Text
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import parse_url


class Search(Strict):
    """Where web-search asks: a URL with {query} in its path or query; header and credential: the
    name of a header and of the secret that it holds.
    """

    endpoint: Text
    header: Text | None = None
    credential: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        endpoint = value.get("endpoint")
        if isinstance(endpoint, str):
            try:
                scheme, host, _, target = parse_url(endpoint)
            except SandboxDenied:
                scheme = host = target = ""
            if "{query}" not in target:
                report(
                    ("endpoint",),
                    "",
                    "an http or https URL with {query} in its path or query",
                    enquote(endpoint),
                )
            elif "credential" in value and scheme != "https" and not is_loopback(address_of(host)):
                report(
                    ("credential",),
                    "a credential goes over https alone, or to this machine",
                    hint="write https in the endpoint",
                    key=True,
                )
        if ("header" in value) != ("credential" in value):
            report(
                ("header" if "header" in value else "credential",),
                "header and credential go together",
                hint="add the other one, or remove this one",
                key=True,
            )
