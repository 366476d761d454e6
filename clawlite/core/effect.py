"""Effects: what the core asks of its shell, as tuples that begin with one of these numbers.

    (SAY, text)                            show a line to the person on the console
    (PROMPT, text)                         the console waits for a line
    (SEND, message)                        a JSON-RPC message (dict or list) for the operator
    (LOG, event)                           a dict for the log: never stdout
    (RUN, task, tool, arguments, due_ms)   run a tool's handler; answer with ``Agent.done(task, outcome, now_ms)``
    (CANCEL, task)                         end the handler of a task, which nobody waits for any more
    (RESOLVE, task, path)                  resolve links of a virtual path; answer with ``done`` and the real virtual path
    (EXIT, code)                           leave, with an exit code

    outcome   (True, value) or (False, exception); of RESOLVE, the value is a normalised absolute path
    due_ms    monotonic time at which the handler's work is ended, or None

The generators of a turn and of a tool call yield RUN and RESOLVE without the task; the agent adds it.  They also
yield two that never leave the core:

    (ASK, messages)                        what does the provider say?
    (APPROVE, approval)                    wait for a person
"""
SAY, PROMPT, SEND, LOG, RUN, CANCEL, RESOLVE, EXIT, ASK, APPROVE = range(1, 11)
