"""The audit of policies (CKP 0.2.0, 5.8) to its part of the section GUARD, and ``[audit]`` of
clawlite.toml: where copies of it go.

A policy says ``destination: webhook`` or ``syslog`` and has no field for an address: that is the
maker's machine's business.

    webhook     the URL that gets the records; over https when a credential goes with it, or on this
                machine
    credential  name of the secret that goes there as "Authorization: Bearer ..."
    syslog      "/dev/log" (the default), another socket's path, or "udp://HOST:PORT"

    max_size_mb MiB that the audit may have on Linux: its oldest records go then; 0: no bound; 64
    when it is left out (linux/audit/audit.py)
"""

from typing import Annotated

from msgspec import Meta

from clawlite.core.base.errors import SandboxDenied
from clawlite.host.base.problems import enquote
from clawlite.host.models.common import Strict, Text
from clawlite.protocols.net.netaddress import address_of, is_loopback
from clawlite.protocols.net.netrules import parse_url

LEAST_SIZE_MB, MOST_SIZE_MB = 8, 1 << 20  # two segments; 1 TiB
SYSLOG = "/dev/log"
_SYSLOG_PORT = 514
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class AuditSettings(Strict):
    webhook: Text | None = None
    credential: Text | None = None
    syslog: Text | None = None
    max_size_mb: Annotated[int, Meta(ge=0, le=MOST_SIZE_MB)] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        size = value.get("max_size_mb")
        if isinstance(size, int) and 0 < size < LEAST_SIZE_MB:
            report(("max_size_mb",), "", f"at least {LEAST_SIZE_MB}, or 0 for no bound", size)
        url, place = value.get("webhook"), value.get("syslog")
        if isinstance(url, str):
            parsed = _url(url)
            if parsed is None:
                report(("webhook",), "", "an http or https URL", enquote(url))
            elif (
                "credential" in value
                and parsed[0] != "https"
                and not is_loopback(address_of(parsed[1]))
            ):
                report(
                    ("credential",),
                    "a credential goes over https alone, or to this machine",
                    hint="write https in the URL of the webhook",
                    key=True,
                )
        if "credential" in value and "webhook" not in value:
            report(
                ("credential",),
                "it is for the webhook, and there is none",
                hint="add webhook, or remove it",
                key=True,
            )
        if isinstance(place, str) and not place.startswith("/") and udp(place) is None:
            report(("syslog",), "", 'an absolute path, or "udp://HOST:PORT"', enquote(place))


def udp(place: str) -> tuple | None:
    """Return (host, port) of "udp://HOST:PORT" (the port may be left out: 514), None for
    anything else.
    """
    if not place.startswith("udp://"):
        return None
    rest = place[6:]
    parsed = _url(
        "http://" + (rest if ":" in rest.rpartition("]")[2] else "%s:%d" % (rest, _SYSLOG_PORT))
    )
    return parsed[1:3] if parsed and parsed[3] == "/" else None


def _url(text: str) -> tuple | None:
    try:
        return parse_url(text)
    except SandboxDenied:
        return None


def record(manifest, blocks: list) -> list | None:
    """Return [inputs, outputs, approvals, seconds that records are kept or None, destination,
    [target, credential] or None], and at its end ``max_size_mb`` where clawlite.toml has it.

    blocks  [(policy, its audit), ...]; what cannot be is a problem of *manifest*
    """
    if not blocks:
        return None
    first = blocks[0][1].destination or "file"
    for policy, block in blocks:
        if (block.destination or "file") != first:
            manifest.problem(
                policy,
                ("audit", "destination"),
                f"an agent has one audit, and policy {blocks[0][0].name} wants another destination",
                hint="give both policies the same destination",
            )
    target = _target(manifest, blocks[0][0], first)
    blocks = [block for _, block in blocks]
    kept = [_seconds(block.retention) for block in blocks]
    size = manifest.settings.audit.max_size_mb
    return [
        any(block.log_inputs is not False for block in blocks),
        any(block.log_outputs is True for block in blocks),
        any(block.log_approvals is not False for block in blocks),
        None if None in kept else max(kept),
        first,
        target,
        *([] if size is None else [size]),
    ]


def _target(manifest, policy, destination: str) -> list | None:
    said = manifest.settings.audit
    if destination == "webhook":
        if said.webhook is None:
            manifest.problem(
                policy,
                ("audit", "destination"),
                "nothing says where that is",
                hint='add [audit] and webhook = "https://..." to clawlite.toml',
            )
        return [said.webhook or "", said.credential or ""]
    if destination != "syslog":
        return None
    if said.syslog is None or said.syslog.startswith("/"):
        return [said.syslog or SYSLOG, ""]
    return ["udp://%s:%d" % udp(said.syslog), ""] if udp(said.syslog) else ["", ""]


def _seconds(duration: str | None) -> int | None:
    return int(duration[:-1]) * _SECONDS[duration[-1]] if duration else None
