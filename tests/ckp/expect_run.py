"""Entries of ``expect`` that speak of a run as a whole: its order, what really ran, notifications,
records, the process.

Each function returns what is wrong, or "".  What a run cannot see it has no method for, and that
fails too."""

from ckp.process import NOT_JSON, WAIT_S

# a heartbeat that was on its way when a request was sent came before it
IN_FLIGHT_S = 0.05
NOT_WAITED_MS = 4500


def problem(seen, entry: dict) -> str:
    word = [key for key in RUN if key in entry][0]
    value = entry.pop(word)
    assert set(entry) <= WITH.get(word, set()), "a word that nobody checks: %s" % sorted(entry)
    return RUN[word](seen, value, entry)


def unknown(entry: dict) -> set:
    word = [key for key in RUN if key in entry]
    return set(entry) - set(word[:1]) - WITH.get(word[0], set()) if word else set(entry)


def _not(bad, what: str) -> str:
    return what if bad else ""


def _executed(seen, wanted, _):
    ran = seen.ledger()
    return _not(any(ran.count(name) != count for name, count in wanted.items()), "ran: %s" % ran)


def _index(seen, id):
    ids = [message.get("id") for _, message in seen.replies()]
    assert id in ids, "no reply to %r: %s" % (id, seen)
    return ids.index(id)


def _order(seen, ids, _):
    places = [_index(seen, id) for id in ids]
    return _not(places != sorted(places), "another order")


def _within(seen, value, _):
    """Cases with a bound have a tool of 5 s under way: an answer before that waited for nobody,
    and a busy machine is not to blame for the rest.
    """
    id, ms = value
    ms = max(ms, NOT_WAITED_MS)
    took = [
        (at - seen.operator.sent[str(id)]) * 1000
        for at, message in seen.replies()
        if message.get("id") == id
    ]
    return _not(not took or took[0] > ms, "took %s ms" % took)


def _ends(seen, code, entry):
    # what hangs never ends, and what ends may need longer on a busy machine
    found = seen.operator.ended(max(entry["within_ms"] / 1000, WAIT_S))
    return _not(found is None or code is not True and found != code, "exit code %s" % found)


def _notifications(seen, wanted, _):
    after = (
        seen.operator.sent[str(wanted["after_request"])] + IN_FLIGHT_S
        if "after_request" in wanted
        else 0
    )
    count = len(
        [
            1
            for at, message in seen.operator.messages()
            if message.get("method") == wanted["method"] and at > after
        ]
    )
    assert set(wanted) <= {"method", "min", "max", "after_request"}
    return _not(
        not wanted.get("min", 0) <= count <= wanted.get("max", count), "%d notifications" % count
    )


def _batch_ids(seen, ids, _):
    batches = [value for _, value in seen.operator.came if isinstance(value, list)]
    return _not(
        [sorted(one["id"] for one in batch) for batch in batches] != [ids], "batches: %s" % batches
    )


def _all_errors(seen, wanted, _):
    assert wanted == {"message": "nonempty string"}
    errors = [message["error"] for _, message in seen.replies() if "error" in message]
    return _not(
        not errors
        or any(not isinstance(one.get("message"), str) or not one["message"] for one in errors),
        "errors: %s" % errors,
    )


def _same_result(seen, ids, _):
    found = [
        [
            (message.get("result"), message.get("error"))
            for _, message in seen.replies()
            if message.get("id") == id
        ]
        for id in ids
    ]
    return _not(any(len(one) != 1 or one != found[0] for one in found), "they differ")


def _records_with(seen, wanted: dict) -> list:
    return [
        record
        for record in seen.records()
        if all(record.get(key) == value for key, value in wanted.items())
    ]


def _events(seen, wanted, _):
    assert set(wanted) <= {"category", "sequence", "includes", "fields"}
    events = _records_with(seen, {"event": wanted["category"]})
    steps = [[event.get("from"), event.get("to")] for event in events]
    lacking = [
        field for field in wanted.get("fields", ()) if any(field not in event for event in events)
    ]
    wrong = steps != wanted.get("sequence", steps) or not all(
        step in steps for step in wanted.get("includes", ())
    )
    return _not(
        wrong or lacking or not events, "transitions %s, without the fields %s" % (steps, lacking)
    )


def _replies(seen, count, _):
    return _not(len(seen.replies()) != count, "%d replies" % len(seen.replies()))


def _first_reply(seen, id, _):
    ids = [message.get("id") for _, message in seen.replies()]
    return _not(ids[:1] != [id], "replies to %s" % ids)


def _alive(seen, _, __):
    return _not(
        seen.operator.process.poll() is not None, "it ended with %s" % seen.operator.process.poll()
    )


def _telemetry(seen, wanted, _):
    told, at_full_rate = seen.telemetry(), seen.telemetry_at_full_rate()
    return _not(
        told != wanted or not at_full_rate, "told: %s, at full rate: %s" % (told, at_full_rate)
    )


def _quiet(seen, most, _):
    seen.operator.ended(WAIT_S)
    return _not(
        len(seen.operator.errors()) > most, "stderr has %d characters" % len(seen.operator.errors())
    )


def _only_json(seen) -> bool:
    return all(value is not NOT_JSON for _, value in seen.operator.came)


# word -> function(seen, value, the entry's other words)
RUN = {
    "exit": _ends,
    "exit_any": _ends,
    "executed": _executed,
    "order": _order,
    "within_ms": _within,
    "notifications": _notifications,
    "replies": _replies,
    "no_reply_before": _first_reply,
    "batch_ids": _batch_ids,
    "all_errors": _all_errors,
    "same_result": _same_result,
    "events": _events,
    "audit": lambda seen, wanted, _: _not(not _records_with(seen, wanted), "no such record"),
    "alive": lambda seen, _, __: (
        _alive(seen, _, __) or _not(not _only_json(seen), "a line of stdout is no JSON")
    ),
    "stderr_max_bytes": _quiet,
    "absent_text": lambda seen, text, _: _not(text.encode() in seen.operator.seen, "it shows"),
    "connects": lambda seen, count, _: _not(
        len(seen.connects()) != count, "connected to %s" % seen.connects()
    ),
    "mcp_log_excludes": lambda seen, words, _: _not(
        set(words) & set(seen.world.lines("mcp.log")), "it was asked"
    ),
    "telemetry_events": _telemetry,
    "telemetry_some": lambda seen, _, __: _not(not seen.telemetry(), "nothing was told"),
    "pending": lambda seen, count, _: _not(seen.pending() != count, "another number waits"),
    # of turns and triggers
    "reply": lambda seen, text, _: _not(seen.reply() != text, "it said %r" % seen.reply()),
    "provider_order": lambda seen, names, _: _not(
        seen.provider_order() != names, "asked: %s" % seen.provider_order()
    ),
    "provider_calls": lambda seen, count, _: _not(
        seen.provider_calls() != count, "asked %d times" % seen.provider_calls()
    ),
    "channel_out_contains": lambda seen, words, _: _not(
        any(word not in seen.channel_out() for word in words), "it said %r" % seen.channel_out()
    ),
    "handled": lambda seen, wanted, _: _not(
        seen.handled() != wanted, "handled: %s" % seen.handled()
    ),
    "max_concurrent": lambda seen, count, _: _not(
        seen.most_at_once != count, "%d at once" % seen.most_at_once
    ),
    "started": lambda seen, count, _: _not(seen.started != count, "%d started" % seen.started),
    "skipped": lambda seen, count, _: _not(seen.skipped() != count, "%d skipped" % seen.skipped()),
    "values": lambda seen, values, _: _not(seen.values() != values, "read: %s" % seen.values()),
}
WITH = {"exit": {"within_ms"}, "exit_any": {"within_ms"}}
