"""A task that another one waits for: the answer of a provider that a handler asks, or the turn of
a composite tool.
"""

from clawlite.core.base.effect import ASK, KIND


def begin(agent, task, effect: tuple, now_ms: int):
    """Begin the child of *task* for its *effect*, ASK or RUN_SKILL; the task continues with its
    outcome.

    The turn of a composite tool may take the tool's ``timeout_ms``, or else as long as a turn, but
    no more than the task has left.  The time in which it waits for a person does not count.
    """
    due_ms, budget_ms = task.due_ms, None
    chain = task.chain or agent.chain()
    if effect[KIND] == ASK:
        _, prompt, most, place = effect
        work = chain.text(prompt, most, place)
    else:
        from clawlite.core.agent.skillturn import alone

        _, tool, arguments = effect
        work = alone(agent.setup, tool, arguments, chain)
        budget_ms = tool.timeout_ms or agent.image.agent.turn_ms
        if due_ms is not None:
            budget_ms = max(1, min(budget_ms, due_ms - now_ms))
            task.due_ms = None
    own = []  # the child, once it has begun

    def finish(value, error, at_ms):
        if task.child is None:  # it was cancelled
            return
        task.child = None
        if budget_ms is not None and due_ms is not None:
            task.due_ms = due_ms + (own[0].due_ms - now_ms - budget_ms if own else 0)
        agent.complete(task.number, (False, error) if error else (True, value), at_ms)

    task.child = 0
    number = agent.begin(work, finish, now_ms, budget_ms, None, task.chain)
    if task.child is not None:
        task.child = number
        own.append(agent.tasks[number])
