"""Effects: what the core asks of its shell, as tuples that begin with one of these numbers.

    (SAY, text)                            show a line to the person on the console
    (TELL, text)                           show a line about the turn that is not part of its
                                           answer: an error or a notice
    (WRITE, text)                          show a piece of text as it arrives, without a line end
    (VOID, count)                          the last *count* characters that were written are void,
                                           because the answer broke off
    (PROMPT, text)                         show a prompt: the console waits for a line
    (SEND, message)                        a JSON-RPC message (dict or list) for the operator
    (SEND_TO, message, line)               the same, for an operator on another line than the
                                           shell's (linux/tasks/operator_line.py)
    (LOG, event)                           a dict for the log: never stdout
    (EXIT, code)                           leave, with an exit code
    (RECORD, task, tool, arguments)        write all waiting records of log and audit, and one
                                           that *tool*, which has side effects, begins.  When that
                                           fails, the agent goes to ERROR, and no outcome is handed
                                           in  -> done
    (RUN, task, tool, arguments, due_ms)   run a tool's handler                           -> done
    (RESUME, task, outcome)                continue a handler that asked a provider or a person;
                                           *outcome* is the answer or an error  -> done
    (CANCEL, task)                         end the handler and the connection of a task whose result
                                           nobody waits for any more
    (RESOLVE, task, path, opens)           resolve links of a virtual path; *opens*: the path is an
                                           argument of the call, not the root of a rule  -> done
    (SECRET, task, name)                   what a ``secret_ref`` names                    -> done
    (STORE, task, entries)                 add *entries* to the meters, which last over a restart
                                           (core/policy/ledger.py)  -> done
    (KEEP, task, kind, key, payload)       put on record, for this process and the next
                                           (core/idempotency/idempotency_record.py).  For BEGIN, the
                                           value lists what other processes have put on record
                                           since; when *key* is among it, nothing was recorded here
                                           -> done
    (REMEMBER, task, verb, store, part, details)           ask the memory (core/image/memories.py;
                                                           linux/memory/memory.py has the verbs)
                                                           -> done
    (OPEN, task, scheme, host, port, parts, timeout_ms)    connect, and send *parts*: bytes, or
                                                           [offset, length] in the image's WIRE
    (CLOSE, task)                          end the connection of a task

    -> done    answered by ``Agent.complete(task, outcome, now_ms)``
    outcome    (True, value) or (False, exception).  A handler that asks for something has not
               ended: (ASKS_PROVIDER, (prompt, most)) or
               (ASKS_PERSON, linux/mcp/question.py ``Question``); RESUME brings it the answer.
               One that ends before its answer comes: the answer is (ENDED, its outcome).
               The value of RESOLVE is a normalised absolute path.  The value of STORE is whether
               the limits admit the entries; without entries, what is used today
               (``Ledger.read_use_of_day``)
    due_ms     monotonic time at which the handler is ended, or None
    The bytes that a connection receives go to ``Agent.receive(task, outcome, now_ms)``; b"" means
    that it has ended.

The generators of a turn and of a tool call yield these effects without the task; the agent adds it.
They also yield six effects that never leave the core:

    (ASK, prompt, most, place)             ask a provider to answer *prompt* with at most *most*
                                           tokens: the provider at *place*, or the first that can
                                           when it is None (``ProviderOrder.text``)  -> done
    (RUN_SKILL, tool, arguments)           run the skill of a composite tool in a turn of its own,
                                           and get its result (core/agent/skillturn.py)  -> done
    (APPROVE, approval)                    wait for a person
    (JOIN, numbers)                        wait until the agent resumes the task, whose number is
                                           added to *numbers*
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
    RECORD,
    SEND_TO,
) = range(1, 27)
# positions in an effect
KIND = 0
TEXT = 1  # SAY, TELL, PROMPT, WRITE
COUNT = 1  # VOID
EVENT = MESSAGE = APPROVAL = 1  # LOG, SEND, APPROVE
TOOL = 1  # RUN and RECORD, as a task yields them
TASK = 1  # of effects with a task, as a shell gets them
RUN_TOOL, RUN_ARGUMENTS = 2, 3  # RUN and RECORD, as a shell gets them
LINE = 2  # SEND_TO
IS_OK, VALUE = range(2)  # of an outcome
# in an outcome, in place of True or False: the handler has not ended, or before its answer came
ASKS_PROVIDER, ASKS_PERSON, ENDED = 2, 3, 4


class Result:
    """The result of a tool.

    text            str, at most the tool's ``max_output`` bytes of UTF-8
    is_error        bool, the tool ran and failed
    value           what the handler returned, None after an error: reflex rules read its fields
    original_bytes  int, bytes before the text was cut, or 0 when it was not
    size            int, bytes of the text, or 0 when they have not been counted
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
        """Return the result of ``claw.tool.call`` (CKP 0.2.0, 9.3.2), and whether it was cut."""
        result = {"content": [{"type": "text", "text": self.text}], "isError": self.is_error}
        if self.original_bytes:
            result["truncated"] = True
            result["original_bytes"] = self.original_bytes
        return result
