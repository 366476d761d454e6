"""The Anthropic-native wire format: POST {endpoint}/messages, complete answers and streams of
events.

The system prompt is a field of its own: the code that prepares the request's other fields puts it
there.
Source  The Messages API reference: content blocks, streaming.
"""

from clawlite.core.base.errors import ClawError
from clawlite.core.providers.wire import Codec as Shared, field, tokens

_MESSAGE = '{"role":"%s","content":[%s]}'


class Codec(Shared):
    FIRST = b""  # the system message is no item of the list
    HEADERS = (("anthropic-version", "2023-06-01"),)
    KEY_HEADER = "x-api-key"
    # the API keeps the conversation as far as it goes
    FIELDS = (("cache_control", '{"type":"ephemeral"}', False, True),)

    def messages(self, messages: list) -> list:
        """Return the JSON texts of the API's messages.  User and assistant must alternate, so all
        results of a round are one message.

        A text of white space alone is left out (the API refuses it), and so is a message with
        nothing else in it."""
        texts = []
        blocks = []
        role = ""
        for message in messages:
            made = self._blocks(message)
            wanted = "assistant" if message.role == "assistant" else "user"
            if made and wanted != role:
                if blocks:
                    texts.append(_MESSAGE % (role, ",".join(blocks)))
                blocks = []
                role = wanted
            blocks.extend(made)
        if blocks:
            texts.append(_MESSAGE % (role, ",".join(blocks)))
        return texts

    def _blocks(self, message) -> list:
        if message.role == "tool":
            failed = isinstance(message.result, ClawError) or message.result.is_error
            return [
                '{"type":"tool_result","tool_use_id":%s,"content":%s%s}'
                % (
                    self.dumps(message.id),
                    self.dumps(message.text),
                    ',"is_error":true' if failed else "",
                )
            ]
        own, blocks = [], []
        if message.opaque:
            from clawlite.core.providers.opaque import blocks_of

            own = blocks_of(self, message)
            blocks = [block for place, block in own if place == 0]
        if message.text.strip():
            blocks.append('{"type":"text","text":%s}' % self.dumps(message.text))
        if message.role == "assistant":
            for number in range(len(message.calls)):
                key, name, raw = message.calls[number]
                # the model wrote no object; the call's result says so
                if self.arguments(raw) is None:
                    raw = "{}"
                if number:
                    blocks += [block for place, block in own if place == number]
                blocks.append(
                    '{"type":"tool_use","id":%s,"name":%s,"input":%s}'
                    % (self.dumps(key), self.dumps(name), raw)
                )
        return blocks

    def add(self, stream, obj: dict, whole: bool) -> str:
        """Add an answer, or one event of a stream, to *stream*; return its text."""
        kind = field(obj, "type", str)
        if whole or kind == "message_start":
            message = obj if whole else field(obj, "message", dict) or {}
            if isinstance(message.get("content"), str):  # as in a request
                message = dict(message, content=[{"type": "text", "text": message["content"]}])
            content = field(message, "content", list)
            stream.has_begun = content is not None
            stream.answer.model = field(message, "model", str)
            self._end(stream, message, message)
            return "".join([self._block(stream, i, content[i]) for i in range(len(content or ()))])
        if kind == "content_block_start":
            return self._block(stream, obj.get("index"), field(obj, "content_block", dict))
        if kind == "content_block_delta":
            delta = field(obj, "delta", dict)
            kind = field(delta, "type", str)
            if kind == "text_delta":
                return stream.text(field(delta, "text", str))
            if kind == "input_json_delta":
                stream.call(obj.get("index"), None, None, field(delta, "partial_json", str))
            elif kind in ("thinking_delta", "signature_delta"):
                stream.open_kept().think(stream.calls, obj.get("index"), delta)
        elif kind == "message_delta":
            self._end(stream, field(obj, "delta", dict), obj)
        elif kind == "message_stop":
            stream.is_done = True
        return ""

    def _block(self, stream, index, block) -> str:
        kind = field(block, "type", str)
        if kind == "tool_use":
            stream.call(
                index, field(block, "id", str), field(block, "name", str), block.get("input")
            )
        elif kind == "thinking":
            stream.open_kept().think(stream.calls, index, block)
        elif kind == "redacted_thinking":
            stream.open_kept().keep(stream.calls, kind, [block])
        return stream.text(field(block, "text", str)) if kind == "text" else ""

    def _end(self, stream, part, holder: dict) -> None:
        """Read the reason to stop from *part* and the numbers of tokens from *holder*.  Each event
        has the totals so far, so the last one counts.
        """
        answer = stream.answer
        stream.take_reason(field(part, "stop_reason", str))
        usage = holder.get("usage")
        if not isinstance(usage, dict):
            usage = {}
        if tokens(usage, "input_tokens") is not None:
            # tokens from the provider's cache were read too
            answer.input_tokens = sum(
                [
                    tokens(usage, name) or 0
                    for name in (
                        "input_tokens",
                        "cache_creation_input_tokens",
                        "cache_read_input_tokens",
                    )
                ]
            )
        if tokens(usage, "output_tokens") is not None:
            answer.output_tokens = tokens(usage, "output_tokens")
