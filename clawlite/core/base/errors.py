"""Errors of clawlite, and their CKP numbers.

    ClawError                      anything that clawlite itself raises on purpose
    +- RequestError                what a peer sent is wrong: its bytes, not our bug
    |  +- ParseError       -32700  not JSON
    |  +- InvalidRequest   -32600  not a JSON-RPC request, or not in this state
    |  +- MethodNotFound   -32601
    |  +- InvalidParams    -32602  bad arguments, unknown tool
    |  +- VersionError     -32001
    +- Denied                      a gate said no; nothing ran
    |  +- SandboxDenied    -32010
    |  +- PolicyDenied     -32011
    |  +- ApprovalTimeout  -32012
    |  +- ApprovalDenied   -32013
    +- ToolTimeout         -32014  the tool ran, was ended, and did not finish
    +- ProviderError       -32020  the provider could not be asked, or gave no answer
    |  +- TransientError   -32020  as above, but another attempt may succeed
    |  +- QuotaExceeded    -32021  a limit forbids the request
    +- StoreError          -32030  the memory behind a store cannot be reached or written
    |  +- QueryFailed      -32031  the store can be reached, but the query failed
    +- ImageError          -32060  the image (or a piece of CBOR in it) is damaged or of another
                           format
    |  +- CBORError        -32060
    |  +- ImageMismatch    -32060  the image is whole, but asks for what this device lacks
    +- InternalError       -32603  our bug, and it says so

Rules: 1. ``code`` is the number that goes on the wire (CKP 0.2.0, 9.4).
2. ``hint`` is one action that the reader can take.  3. ``data`` is what the wire's ``error.data``
   holds.
"""


class ClawError(Exception):
    """Root of the tree.

    message  what, where, found, expected: one sentence
    hint     one action, or "" when there is none
    data     dict for JSON-RPC ``error.data``, or None
    """

    code = -32603

    def __init__(self, message: str, hint: str = "", data: dict = None):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def __str__(self) -> str:
        return self.message  # code that passed the error on may have changed it

    def to_json(self) -> dict:
        """Return the JSON-RPC 2.0 error object: code, message and, when there is any, data."""
        error = {"code": self.code, "message": self.message}
        data = self.data
        if self.hint:
            data = dict(data) if data else {}
            data["hint"] = self.hint
        if data:
            error["data"] = data
        return error


class RequestError(ClawError):
    code = -32600


class ParseError(RequestError):
    """The line is not JSON: RFC 8259, strictly, with no duplicate keys, no NaN, at most 32
    levels (16 on a board), numbers of at most 40 characters.

    whole  the decoded value, when the only fault is half of a surrogate pair in a text; else None
    """

    code = -32700
    whole = None


class InvalidRequest(RequestError):
    """No JSON-RPC request, or not in this state (in ERROR with ``data.state`` and
    ``data.attempt_in_ms``); a line over the limit; a service's call that nobody made. Or too
    many are under way: calls that wait for a sandbox (16 run, 64 wait), programs of ``spawn``
    (5), requests of web tools (8), calls that are remembered and may not run twice
    (``data.retry_after_seconds``).
    """

    code = -32600


class MethodNotFound(RequestError):
    """No such method at this agent's level."""

    code = -32601


class InvalidParams(RequestError):
    """Wrong arguments, unknown tool, unknown identity, policy or sandbox in the context, a
    ``request_id`` that another call has used.
    """

    code = -32602


class VersionError(RequestError):
    """Another major protocol version; ``data.supported``."""

    code = -32001


class Denied(ClawError):
    code = -32011


class SandboxDenied(Denied):
    """A path, pin or mechanism that the tool may not have, or that this device lacks."""

    code = -32010


class PolicyDenied(Denied):
    """A rule, the implicit default, or the autonomy level ``observer`` said no, or
    ``tool_calls_per_minute`` is exceeded (``data.limit``); ``data.rule_id``, ``data.tool``,
    ``data.action``.
    """

    code = -32011


class ApprovalTimeout(Denied):
    """Nobody approved in time."""

    code = -32012


class ApprovalDenied(Denied):
    """A person said no."""

    code = -32013


class ToolTimeout(ClawError):
    """The tool, or a turn, took too long and was stopped (``data.timeout_ms``, of a turn
    ``data.total_timeout_ms``); or it began before a restart and may have run
    (``data.request_id``), or while a board ran out of memory.
    """

    code = -32014


class ProviderError(ClawError):
    """No provider could go on; its key is missing or cannot be used.

    *never*: no attempt will work before a person changes something: a key or a model's name.
    *status*: of the provider's answer, 0 when there was none; *codes*: what it calls the failure.
    *is_loading*: the provider still reads its model.
    *refuses*: the provider refused this very question, and would refuse it again.
    """

    code = -32020
    never = False
    status = 0
    codes = ()
    is_loading = False
    refuses = False


class TransientError(ProviderError):
    """A failure that another attempt may not meet.  ``wait_ms``: how long the provider asked us to
    wait, or None.
    """

    wait_ms = None


class QuotaExceeded(ProviderError):
    """A limit of a provider does not admit the request; nothing was sent."""

    code = -32021


class StoreError(ClawError):
    """The memory behind a store cannot be opened, read or written: a full or read-only disk, a
    damaged file, no room in a workspace; ``data.cause`` is SQLite's name for it. The request
    may be sent again.
    """

    code = -32030


class QueryFailed(StoreError):
    """The memory works, but the query failed."""

    code = -32031


class ImageError(ClawError):
    """A damaged image, or a piece of CBOR in it; or a manifest with problems
    (``data.problems``), in ``claw.initialize`` too, or one there where no compiler is.
    """

    code = -32060


class CBORError(ImageError):
    pass


class ImageMismatch(ImageError):
    """The image is whole, but needs what this device lacks, or the code beside it is another."""


class InternalError(ClawError):
    """A bug in clawlite, and it says so; a call that could not be put on record; a call that
    was under way when the agent failed.
    """

    code = -32603


# not empty: MemoryError goes up to the loop of a board's shell, which ends the work in progress
UNWINDING = []


def wrap_error(e) -> ClawError:
    """Return the error for an exception that is not ours: a board ran out of memory, or a bug."""
    if isinstance(e, MemoryError):
        if UNWINDING:
            raise e
        return InternalError(
            "out of memory: %s" % e, "ask for less at once, or build a smaller agent"
        )
    if isinstance(e, RuntimeError) and "recursion depth" in str(e):
        return InternalError(
            "the stack of this device ran out",
            "nest less in messages, arguments, schemas and rules",
        )
    return InternalError("%s: %s" % (type(e).__name__, e), "this is a bug in clawlite")
