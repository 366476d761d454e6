"""Effects: what the core asks of its shell, as tuples that begin with one of these numbers.

    (SAY, text)                            show a line to the person on the console
    (TELL, text)                           show a line about the turn that is no part of its answer:
                                           an error, a notice
    (WRITE, text)                          show text as it comes, without an end of line
    (VOID, count)                          so many characters of what was written last are void: an
                                           answer that broke off
    (PROMPT, text)                         the console waits for a line
    (SEND, message)                        a JSON-RPC message (dict or list) for the operator
    (LOG, event)                           a dict for the log: never stdout
    (EXIT, code)                           leave, with an exit code
    (RUN, task, tool, arguments, due_ms)   run a tool's handler                           -> done
    (RESUME, task, outcome)                go on with a handler that asked a provider: what it said,
                                           or an error  -> done
    (CANCEL, task)                         end the handler and the connection of a task, which
                                           nobody waits for any more
    (RESOLVE, task, path, opens)           resolve links of a virtual path; *opens*: it is one of
                                           the call's, not of a rule  -> done
    (SECRET, task, name)                   what a ``secret_ref`` names                    -> done
    (STORE, task, entries)                 add *entries* to the meters, which last over a restart
                                           (core/policy/ledger.py)  -> done
    (KEEP, task, kind, key, payload)       put on record, for this process and the next
                                           (core/idempotency/idempotency_record.py); of BEGIN, the
                                           value is what other processes have put on record since,
                                           with *key*
                                           among it: nothing is then  -> done
    (REMEMBER, task, verb, store, part, details)           ask the memory (core/image/memories.py;
                                                           linux/memory/memory.py has the verbs)
                                                           -> done
    (OPEN, task, scheme, host, port, parts, timeout_ms)    connect, and send *parts*: bytes, or
                                                           [offset, length] in the image's WIRE
    (CLOSE, task)                          end the connection of a task

    -> done    answered by ``Agent.done(task, outcome, now_ms)``
    outcome    (True, value) or (False, exception); of a handler that has not ended, and goes on
               (RESUME) with the answer: (ASKS_PROVIDER, (prompt, most)) or
               (ASKS_PERSON, linux/mcp/question.py ``Question``)
               of RESOLVE, the value is a normalised absolute path; of STORE, whether limits admit
               the entries, and when there are none, what is used today (``Ledger.today``)
    due_ms     monotonic time at which the handler's work is ended, or None
    what a connection receives goes to ``Agent.received(task, outcome, now_ms)``: bytes, b"" at its
    end

The generators of a turn and of a tool call yield those with a task without it; the agent adds it.
They also yield six that never leave the core:

    (ASK, prompt, most, place)             a provider's answer to *prompt*, of at most so many
                                           tokens: of the one at *place*, None: of the first that
                                           can (``ProviderOrder.text``)  -> done
    (RUN_SKILL, tool, arguments)           of a composite tool: what its skill comes to, in a turn
                                           of its own (core/agent/skillturn.py)  -> done
    (APPROVE, approval)                    wait for a person
    (JOIN, numbers)                        wait until the task is told: its number is added to
                                           *numbers*
    (RECEIVE, timeout_ms)                  wait for bytes of the task's connection
    (SLEEP, ms)                            wait
"""

(
    SAY,
    TELL,
    WRITE,
    VOID,
    PROMPT,
    SEND,
    LOG,
    STORE,
    EXIT,
    RUN,
    RESUME,
    CANCEL,
    RESOLVE,
    SECRET,
    KEEP,
    OPEN,
    CLOSE,
    ASK,
    APPROVE,
    JOIN,
    RECEIVE,
    SLEEP,
    REMEMBER,
    RUN_SKILL,
) = range(1, 25)
# positions in an effect
KIND = 0
TEXT = 1  # SAY, TELL, PROMPT, WRITE
COUNT = 1  # VOID
EVENT = MESSAGE = APPROVAL = 1  # LOG, SEND, APPROVE
TOOL = 1  # RUN, as a task yields it
TASK = 1  # of those with a task, as a shell gets them
RUN_TOOL, RUN_ARGUMENTS = 2, 3  # RUN, as a shell gets it
IS_OK, VALUE = range(2)  # of an outcome
# in an outcome, in place of True or False; every kind from ASKS_PROVIDER on has not ended
ASKS_PROVIDER, ASKS_PERSON = 2, 3


class Result:
    """What a tool gave.

    text            str, at most the tool's ``max_output`` bytes of UTF-8
    is_error        bool, the tool ran and failed
    value           what the handler returned, None after an error: reflex rules read its fields
    original_bytes  int, bytes before the cut, or 0 when nothing was cut
    size            int, bytes of the text, or 0 where nobody has counted them
    skill           ``skill.Skill`` whose instruction this is, or None
    """

    skill = None

    def __init__(
        self, text: str, is_error: bool, value=None, original_bytes: int = 0, size: int = 0
    ):
        self.text = text
        self.is_error = is_error
        self.value = value
        self.original_bytes = original_bytes
        self.size = size

    def to_json(self) -> dict:
        """Return the result of ``claw.tool.call`` (CKP 0.2.0, 9.3.2), the cut made explicit."""
        result = {"content": [{"type": "text", "text": self.text}], "isError": self.is_error}
        if self.original_bytes:
            result["truncated"] = True
            result["original_bytes"] = self.original_bytes
        return result
