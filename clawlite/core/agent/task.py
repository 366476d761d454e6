"""A task: one running generator (a turn, or one tool call), and the code that waits for its end."""

from clawlite.core.turns.handlers import end


class Task:
    """One running generator.

    ended     function(value, error, now_ms), called once at its end
    once      ``IdempotentRequest`` of an operator's request, or None
    approval  the ``Approval`` that it waits for, or None
    answer    how the last approval was answered, until the call has ended, or None
    tool      name of the tool whose handler runs, or None
    began     name of the tool whose handler began last
    ran_ms    monotonic time at which the first handler of a call began, or None
    wake_ms   monotonic time at which it continues, or at which its connection fails, or None
    silence_s seconds without a byte after which its connection fails
    due_ms    monotonic time at which it is ended, or None; the time in which it waits for a person
              does not count
    budget_ms milliseconds until ``due_ms`` at its beginning, or None
    child     number of the task that it waits for (child.py), or None
    chain     ``ProviderOrder`` that its children ask, or None: the agent's
    receives  bool, it waits for bytes of its connection
    outer     the generators that wait for ``generator``, the outermost first: on a board, where
              ``Agent.drive`` resumes each itself
    """

    # class attributes, not one set in each task: a thousand may wait for a person
    approval = answer = tool = began = ran_ms = wake_ms = silence_s = None
    due_ms = budget_ms = child = chain = None
    receives = False
    outer = ()

    def __init__(self, number: int, generator, ended, once=None):
        self.number = number
        self.generator = generator
        self.ended = ended
        self.once = once

    def close(self):
        """End the work, the innermost generator first.  An exception from one does not stop the
        others from being ended.
        """
        while self.generator:
            end(self.generator)
            self.generator = self.outer.pop() if self.outer else None
