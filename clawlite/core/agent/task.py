"""A task: one generator under way (a turn, or one tool call), and whoever waits for its end."""

from clawlite.core.turns.handlers import end


class Task:
    """One generator under way.

    ended     function(value, error, now_ms), called once at its end
    once      ``IdempotentRequest`` of an operator's request, or None
    approval  what it waits for, or None
    answer    how the last approval was answered, until its call has ended, or None
    tool      name of the tool whose handler runs, or None
    began     name of the tool whose handler began last
    ran_ms    monotonic time at which the first handler of a call began, or None
    wake_ms   monotonic time at which it goes on with ``wake``, or None
    wake      an outcome; or how many seconds its connection was silent then, which is an error
    due_ms    monotonic time at which it is ended, or None; while it waits for a person, that time
              stands still
    budget_ms how long that was at its beginning
    child     number of the task that asks a provider for it, or None
    receives  bool, it waits for bytes of its connection
    outer     the generators that wait for ``generator``, the outermost first: on a board, where
              ``Agent.drive`` resumes each itself
    """

    # here, not in each: a thousand may wait for a person
    approval = answer = tool = began = ran_ms = wake_ms = wake = due_ms = budget_ms = child = None
    receives = False
    outer = ()

    def __init__(self, number: int, generator, ended, once=None):
        self.number = number
        self.generator = generator
        self.ended = ended
        self.once = once

    def close(self):
        """End the work, the innermost generator first, whatever they raise: the others have to
        end, too.
        """
        while self.generator:
            end(self.generator)
            self.generator = self.outer.pop() if self.outer else None
