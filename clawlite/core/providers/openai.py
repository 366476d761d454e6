"""The OpenAI-compatible wire format: POST {endpoint}/chat/completions, complete answers and streams
of chunks.

Source  The Chat Completions API reference; docs/providers.md describes how other servers differ.
"""

from clawlite.core.providers.wire import Codec as Shared, field, text_of, tokens

_STOPS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refused",
}


class Codec(Shared):
    def messages(self, messages: list) -> list:
        """Return one JSON text for each ``turn.Message``.

        A call whose arguments were no JSON object is sent back with ``{}``: servers parse the
        history, and would refuse all of it."""
        texts = []
        for message in messages:
            text = '{"role":"%s","content":%s' % (message.role, self.dumps(message.text))
            if message.role == "tool":
                text += ',"tool_call_id":' + self.dumps(message.id)
            elif message.role == "assistant" and message.calls:
                calls = []
                for key, name, raw in message.calls:
                    if self.arguments(raw) is None:
                        raw = "{}"
                    calls.append(
                        '{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}'
                        % (self.dumps(key), self.dumps(name), self.dumps(raw))
                    )
                text += ',"tool_calls":[%s]' % ",".join(calls)
            texts.append(text + "}")
        return texts

    def add(self, stream, obj: dict, whole: bool) -> str:
        """Add an answer, or one chunk of a stream, to *stream*; return its text."""
        answer = stream.answer
        answer.model = field(obj, "model", str) or answer.model
        usage = obj.get("usage")
        if isinstance(usage, dict) and usage:
            answer.input_tokens = tokens(usage, "prompt_tokens")
            answer.output_tokens = tokens(usage, "completion_tokens")
        choices = field(obj, "choices", list)
        if not choices:
            return ""
        choice = choices[0]
        # some servers put a message into a stream, or a delta into a whole answer
        said = field(choice, "message" if whole else "delta", dict)
        if said is None:
            said = field(choice, "delta" if whole else "message", dict) or {}
        reason = field(choice, "finish_reason", str)
        if choice.get("error") or reason == "error" or reason and "malformed" in reason.lower():
            raise self.failure(choice, reason or "error")
        stream.has_begun = not whole or bool(said)
        calls = field(said, "tool_calls", list) or ()
        for position in range(len(calls)):
            function = field(calls[position], "function", dict) or {}
            stream.call(
                position if whole else calls[position].get("index"),
                field(calls[position], "id", str),
                field(function, "name", str),
                function.get("arguments"),
            )
        if reason:
            answer.stop = _STOPS.get(reason, "other")
        refusal = field(said, "refusal", str)
        if refusal:
            answer.stop = "refused"
        return stream.text(text_of(said.get("content")) or refusal)
