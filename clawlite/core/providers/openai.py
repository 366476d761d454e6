"""The OpenAI-compatible wire format: POST {endpoint}/chat/completions, complete answers and streams
of chunks.

Source  The Chat Completions API reference; docs/providers.md describes how other servers differ.
"""

from clawlite.core.base.dialect import const
from clawlite.core.providers.wire import Codec as Shared, field, text_of, tokens

# fields of an answer, and of a call in it, that are read here; others may be kept (opaque.py)
_READ = " role content refusal tool_calls index id type function "
_USER = const(26)  # bytes of {"role":"user","content":"


class Codec(Shared):
    FIELDS = (("stream_options", '{"include_usage":true}', True, False),)

    def messages(self, messages: list) -> list:
        """Return one JSON text for each ``turn.Message``.

        A call whose arguments were no JSON object is sent back with ``{}``: servers parse the
        history, and would refuse all of it."""
        texts = []
        for message in messages:
            text = '{"role":"%s","content":%s' % (message.role, self.dumps(message.text))
            if message.role == "tool":
                text += ',"tool_call_id":' + self.dumps(message.id)
            elif message.role == "assistant":
                text += self._members(message, -1, "reasoning_content")
                if message.calls:
                    text += ',"tool_calls":[%s]' % ",".join(self._calls(message))
            texts.append(text + "}")
        if self.change("system") == "user" and texts:  # the system prompt begins this message
            texts[0] = "\\n\\n" + texts[0][_USER:]
        return texts

    def _calls(self, message) -> list:
        calls = []
        for number in range(len(message.calls)):
            key, name, raw = message.calls[number]
            if self.arguments(raw) is None:
                raw = "{}"
            calls.append(
                '{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}%s}'
                % (
                    self.dumps(key),
                    self.dumps(name),
                    self.dumps(raw),
                    self._members(message, number, "extra_content"),
                )
            )
        return calls

    def _members(self, message, place: int, demanded: str) -> str:
        if not message.opaque and not self.changes:
            return ""
        from clawlite.core.providers.opaque import members

        return members(self, message, place, demanded)

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
            number = stream.call(
                position if whole else calls[position].get("index"),
                field(calls[position], "id", str),
                field(function, "name", str),
                function.get("arguments"),
            )
            _keep(stream, number, calls[position])
        _keep(stream, -1, said)
        stream.take_reason(reason)
        refusal = field(said, "refusal", str)
        if refusal:
            answer.stop = "refused"
        return stream.text(text_of(said.get("content")) or refusal)


def _keep(stream, place: int, found: dict) -> None:
    for name in found:
        if " %s " % name not in _READ and found[name] is not None:
            stream.open_kept().take(place, name, found[name])
