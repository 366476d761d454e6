"""What the reasons mean for which servers say that an answer ended.

Only those in this table mean that it is whole, or why it is not; any other reason means that it was
cut.  Loaded when a reason is none of the usual ones (wire.py)."""

# (what it means, words of servers)
ENDS = (
    ("stop", " stop end_turn stop_sequence eos eos_token complete "),
    ("tools", " tool_calls tool_call tool_use function_call "),
    ("length", " length max_tokens model_length model_context_window_exceeded "),
    ("refused", " content_filter refusal safety recitation prohibited_content blocklist "),
    ("refused", " sensitive "),
)


def meaning(reason: str) -> str:
    """Return "stop", "tools", "length", "refused" or "cut" for a server's *reason*."""
    word = " %s " % reason.lower().split(":")[0]  # Gemini: content_filter: PROHIBITED_CONTENT
    for meant, words in ENDS:
        if word in words:
            return meant
    return "cut"
