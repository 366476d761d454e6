"""The image: a compiled manifest, read in place.

    item                         bytes that a seal covers
    tag 55799 (RFC 8949 3.4.6)
    array(6)
      format       uint          1
      head         bstr          [compiler, requires, sources, companions, directory]
      body         bstr          the sections, one after the other, as the directory says
      crc          bstr .size 4  CRC-32 of all before it                 checked at every load
      digest       bstr .size 32 SHA-256 of all before it                checked when an image
                   arrives
      signature    bstr .size 32 HMAC-SHA256 of all before it, or null   checked where a device key
                   is set

1. A device never decodes all of it: it reads the head, the agent and the tool index at load, and a
   tool's record when the tool is called.
2. ``read(offset, length)`` is the only function that the storage must have.
3. Every offset is checked against its section; damage is an ``ImageError``, never another
   exception.
   exception.

header.py reads the parts that are read once.  ``clawlite/host/image/image.cddl`` is the grammar,
and ``clawlite/host/image/image_file.py`` writes images.
"""

import struct
from binascii import hexlify

from clawlite.core.formats import cbor
from clawlite.core.base.errors import ImageError, ImageMismatch
from clawlite.core.base.text import decode_utf8

(
    AGENT,
    TOOLS,
    RECORDS,
    RULES,
    AUTOMATA,
    PROSE,
    REFLEX,
    REPLAY,
    PINS,
    PROVIDERS,
    WIRE,
    SANDBOX,
    GUARD,
) = range(1, 14)
MEMORY, SKILLS, CHANNELS, TELEMETRY, LOCAL, CONTEXT, WORLDS, NETWORK, MCP = range(14, 23)
SWARM, SERVICES, STOPPED_WITH = 23, 24, 25
# positions in the section NETWORK, and of what it says of the gateway
NETWORK_GATEWAY, NETWORK_AUTHORITIES = range(2)
GATEWAY_HOST, GATEWAY_PORT, GATEWAY_IS_SECURE = range(3)
OBSERVER, SUPERVISED, AUTONOMOUS = 0, 1, 2  # the levels of an agent's autonomy
READ_ONLY, DESTRUCTIVE, IDEMPOTENT, OPEN_WORLD, GENERATOR, HAS_BOARD, HAS_SIDE_EFFECTS, ASKS = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
)
# who answers a tool: the registry, tools.py, a skill's instruction, a turn of the skill's own, an
BUILTIN, MAKER, SKILL, COMPOSITE, SERVED, SERVICE = range(6)
HANDLER_KIND, HANDLER_NAME = range(2)  # of ``Tool.handler``
# of a rule, see ``Image.rule``
(
    RULE_ID,
    RULE_ACTION,
    RULE_REASON,
    RULE_TIMEOUT_S,
    RULE_ALLOWS,
    RULE_ROOT,
    RULE_POLICY,
    RULE_RATE,
) = range(8)
_ROW_NAME, _ROW_OFFSET, _ROW_LENGTH, _ROW_ENTRY = range(4)  # of a tool's row in the index
_OFFSET, _LENGTH = range(2)  # of a part of a section
_DEPTH = 32  # of a section: reflex rules of eight levels are arrays of 30


class Tool:
    """One decoded tool record.

    name         str, the CKP name
    flags        READ_ONLY .. ASKS, or'ed; ASKS: its skill has approval_required
    category     str or None          label ``category``
    schema       check program        see core/formats/schema.py
    output       check program, or None
    timeout_ms   int >= 1, or 0 for none
    max_output   int, bytes of result text that are kept
    handler      (BUILTIN | MAKER, name), (SKILL | COMPOSITE, name of the skill), or
                 (SERVED, "SERVER/TOOL"), or (SERVICE, "SERVICE.TOOL")
    paths        list of names of arguments that hold a path
    policies     list of [policy name, entry]: what each policy says alone
    bound        entry of ``policy_ref``, or None
    about        (offset, length) of the description in PROSE
    retry        [attempts, backoff] (core/turns/retry.py), or None
    entry        what all policies say together, from the index
    constant     bool, one rule decides, whatever the arguments

    Two are set by what an image prepares its tools with (``Image``), where there is room:
    fits         function(arguments) -> bool, True only when they fit ``schema``; when it is False,
                 ``check`` decides
    decision     of a constant tool, as ``policy.decide`` returns it
    """

    fits = decision = None

    def __init__(self, record: list, entry):
        (
            self.name,
            self.flags,
            self.category,
            self.schema,
            self.output,
            self.timeout_ms,
            self.max_output,
            self.handler,
            self.paths,
            self.policies,
            self.bound,
            self.about,
            self.retry,
        ) = record
        self.entry = entry
        self.constant = isinstance(entry, int) and self.bound is None


class AgentInfo:
    """The image's description of its agent: decoded once, at load."""

    def __init__(self, record: list):
        (
            self.name,
            self.version,
            self.identity,
            self.autonomy,
            self.level,
            self.heartbeat_ms,
            self.providers,
            self.max_rounds,
            self.max_message,
            self.sandbox,
            self.isolation,
            self.personality,
            self.prompt,
            self.turn_ms,
            self.tokens_per_hour,
            self.cost_per_day,
            self.calls_per_minute,
            self.rates,
        ) = record
        # the policy has limits, so calls are counted by a meter
        self.counts = self.calls_per_minute is not None or self.rates > 0


class Image:
    """An image behind ``read(offset, length) -> bytes``.

    size     int, bytes of the whole file, at most 16 MiB
    keep     how many decoded tools and rules stay in memory: 0 on a board, many on Linux
    prepare  function(image, tool), called once for each tool that is kept, or None
    Raises ``ImageError``.  Cost: the head and two small sections decoded, the file read once for
    its CRC."""

    def __init__(self, read, size: int, keep: int = 0, prepare=None):
        from clawlite.core.image.header import index, parse

        self._read = read
        self.keep = keep
        self._tools = {}
        self._rules = {}
        # number -> the table, or True on a board, which reads it again
        self._automata = {}
        self._prepare = prepare
        head, self._where, self.seal_at = parse(read, size, keep)
        self.compiler, self.requires, self.sources, self.companions, _ = head
        # identifies the manifest: the log names it, so that rule numbers can be looked up
        self.id = str(hexlify(self.sources[:4]), "utf-8")
        self.agent = AgentInfo(self.section(AGENT))
        # two strings for all tools: twenty take 400 bytes, not 3 KB
        self._index, self._rows = index(self.part(TOOLS, 0, self.size_of(TOOLS)))
        self.has_tools = len(self._index) > 1

    def read(self, offset: int, length: int) -> bytes:
        """Return exactly *length* bytes; a short read is an ``ImageError``."""
        data = self._read(offset, length)
        if len(data) != length:
            raise _cut(offset, length, len(data))
        return data

    def part(self, section: int, offset: int, length: int) -> bytes:
        """Return *length* bytes at *offset* of a section, checked against its size."""
        start, size = self._where.get(section, (0, 0))
        if offset < 0 or length < 0 or offset > size or length > size - offset:
            raise _outside(section, size, offset, length)
        return self.read(start + offset, length)

    def sections(self) -> list:
        """Return the numbers of the sections that this image has, sorted."""
        return sorted(self._where)

    def size_of(self, section: int) -> int:
        """Return the bytes of a section; 0 when the image has none."""
        return self._where.get(section, (0, 0))[_LENGTH]

    def section(self, section: int):
        """Return a whole section, decoded; None when the image has none.  The sections that
        header.py knows are checked against their shape.
        """
        value = None
        if section in self._where:
            length = self._where[section][_LENGTH]
            value = cbor.decode(self.part(section, 0, length), 0, length, _DEPTH)
        if section == AGENT or value is not None and section == PINS:
            from clawlite.core.image.header import section_of

            section_of(section, value)
        return value

    @property
    def names(self) -> list:
        """The names of the tools, in the manifest's order."""
        return self._index[1:-1].split("\n") if self.has_tools else []

    def row(self, name: str):
        """Return the row of the tool *name* in the index, [name, offset, length, entry], or
        None.
        """
        at = self._index.find("\n%s\n" % name)
        if at < 0:
            return None
        at = 4 * self._index.count("\n", 0, at)
        start, end = struct.unpack(">II", self._rows[at : at + 8])
        row = cbor.decode(self.part(TOOLS, start, end - start))
        # a *name* that contains a line end can match two names: it is no tool
        return row if row[_ROW_NAME] == name else None

    def _row(self, section: int, number: int) -> bytes:
        """Return row *number* of a table: (rows + 1) big-endian u32 offsets, then the rows."""
        start, end = struct.unpack(">II", self.part(section, 4 * number, 8))
        return self.part(section, start, end - start)

    def tool(self, name: str) -> Tool | None:
        """Return the tool *name*, or None.  ``read_file`` and ``read-file`` name the same tool, and
        ``desk__trade`` is how providers, who refuse dots, call ``desk.trade``.
        """
        tool = self._tools.get(name)
        if tool is None:
            row = (
                self.row(name)
                or self.row(name.replace("_", "-"))
                or self.row(name.replace("__", ".", 1))
            )
            if row is None:
                return None
            name = row[_ROW_NAME]
            record = cbor.decode(self.part(RECORDS, row[_ROW_OFFSET], row[_ROW_LENGTH]))
            # a board has no memory for this check: there, only the call with a bad record fails
            if self.keep:
                from clawlite.core.image.header import TOOL, check_shape

                check_shape(record, TOOL, "tool " + name)
            tool = Tool(record, row[_ROW_ENTRY])
            if len(self._tools) < self.keep:
                self._tools[name] = tool
                if self._prepare:
                    self._prepare(self, tool)
        return tool

    def rule(self, number: int) -> list:
        """Return rule *number*: [id, action, reason, timeout_s, allow_on_timeout, root or None,
        policy, rate or None].
        """
        rule = self._rules.get(number)
        if rule is None:
            rule = cbor.decode(self._row(RULES, number))
            if self.keep:
                from clawlite.core.image.header import RULE, check_shape

                check_shape(rule, RULE, "rule %d" % number)
            if len(self._rules) < self.keep:
                self._rules[number] = rule
        return rule

    def provider(self, number: int) -> list:
        """Return row *number* of the remote providers (core/providers/provider.py)."""
        return cbor.decode(self._row(PROVIDERS, number))

    def automaton(self, number: int) -> bytes:
        """Return the table of automaton *number*, its bounds checked once
        (core/formats/automaton.py).
        """
        table = self._automata.get(number)
        if not isinstance(table, bytes):
            known = table is not None
            table = self._row(AUTOMATA, number)
            if not known:
                from clawlite.core.formats.automaton import validate

                validate(table)
                self._automata[number] = table if self.keep else True
        return table

    def prose(self, where: list) -> str:
        """Return the text at [offset, length] of PROSE.  Raises ``ImageError``."""
        try:
            return decode_utf8(self.part(PROSE, where[_OFFSET], where[_LENGTH]))
        except ValueError as e:
            raise ImageError(
                "image: the text at byte %d of section %d: %s" % (where[_OFFSET], PROSE, e)
            )

    def missing(self, abilities) -> list:
        """Return what the image requires and *abilities* lacks, in the image's order."""
        return [name for name in self.requires if name not in abilities]

    def require(self, abilities, device: str):
        """Raise ``ImageMismatch`` when the image needs what *device* lacks."""
        missing = self.missing(abilities)
        if missing:
            raise ImageMismatch(
                "image: needs %s, which %s does not have" % (", ".join(missing), device),
                "build it for this device, or run it on one that has it",
            )


def _cut(offset: int, length: int, got: int):
    return ImageError(
        "image: truncated: wanted %d bytes at offset %d, got %d" % (length, offset, got),
        "the file is cut or damaged; build or flash it again",
    )


def _outside(section: int, size: int, offset: int, length: int):
    return ImageError(
        "image: section %d has %d bytes, wanted %d at offset %d" % (section, size, length, offset)
    )
