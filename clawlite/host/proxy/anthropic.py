"""Messages of Anthropic, as the proxy reads and changes them (dialect.py)."""

from clawlite.host.proxy.dialect import (
    OWNER,
    Call,
    answer_error,
    event_bytes,
    json_text,
    new_id,
    number,
    objects,
    parameters,
    pieces,
    text_of,
)
from clawlite.protocols.image.features import API_NUMBERS

_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


class Anthropic:
    kind, name = API_NUMBERS["anthropic-native"], "anthropic"
    path = "/v1/messages"

    # -- what goes upstream

    def own_names(self, body: dict) -> set:
        return {tool["name"] for tool in body.get("tools") or () if "name" in tool}

    def check(self, body: dict) -> None:
        """Anything can be mediated."""

    def in_context(self, body: dict, text: str) -> dict:
        system = body.get("system") or []
        blocks = [{"type": "text", "text": system}] if isinstance(system, str) else [*system]
        return {**body, "system": [*blocks, {"type": "text", "text": text}]}

    def offer(self, body: dict, tools: list) -> dict:
        made = {**body, "stream": False}
        made["tools"] = [*(body.get("tools") or ())] + [
            {
                "name": tool.alias,
                "description": tool.description,
                "input_schema": parameters(tool),
            }
            for tool in tools
        ]
        choice = body.get("tool_choice")
        if isinstance(choice, dict) and "name" in choice:
            aliases = {tool.name: tool.alias for tool in tools}
            name = aliases.get(choice["name"], choice["name"])
            made["tool_choice"] = {**choice, "name": name}
        return made

    def relax(self, body: dict, names: set) -> dict:
        choice = body.get("tool_choice")
        if isinstance(choice, dict) and (
            choice.get("type") == "any" or choice.get("name") in names
        ):
            kept = {key: value for key, value in choice.items() if key != "name"}
            return {**body, "tool_choice": {**kept, "type": "auto"}}
        return body

    # -- answers

    def calls(self, answer: dict, loads) -> list[Call]:
        found = []
        for block in self._blocks(answer):
            if block.get("type") == "tool_use":
                names = block.get("name"), block.get("id")
                if not all(isinstance(text, str) and text for text in names):
                    raise answer_error("expected a tool_use to have an id and a name")
                given = block.get("input")
                found.append(
                    Call(block["id"], block["name"], given if isinstance(given, dict) else None)
                )
        return found

    def _blocks(self, answer: dict) -> list:
        if "content" not in answer:
            raise answer_error("expected content")
        return objects(answer["content"], "content")

    def is_cut(self, answer: dict) -> bool:
        return answer.get("stop_reason") == "max_tokens"

    def is_text(self, answer: dict) -> bool:
        kinds = {block.get("type") for block in self._blocks(answer)}
        return answer.get("stop_reason") == "end_turn" and kinds == {"text"}

    def with_calls(self, answer: dict, calls: list) -> dict:
        blocks = [
            {"type": "tool_use", "id": new_id(), "name": name, "input": arguments}
            for name, arguments in calls
        ]
        return {**answer, "content": blocks, "stop_reason": "tool_use"}

    def complete(self, answer: dict) -> None:
        """Give calls without an id one."""
        for block in self._blocks(answer):
            if block.get("type") == "tool_use" and not block.get("id"):
                block["id"] = new_id()

    def report(self, answer: dict):
        """Return the part of *answer* that reports a failure, or None: there it is all of it."""
        return None

    def with_round(self, answer: dict, calls: list, results: list) -> list:
        ids = {call.id: call for call in calls}
        blocks = []
        for block in self._blocks(answer):
            if block.get("type") == "tool_use":
                if block["id"] not in ids:
                    continue
                block = {**block, "input": ids[block["id"]].arguments or {}}
            elif block.get("type") == "text" and not str(block.get("text", "")).strip():
                continue  # it answers so, and refuses it in a history
            blocks.append(block)
        told = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": json_text(result),
                "is_error": not result["ok"],
            }
            for call, result in zip(calls, results)
        ]
        wrote = {"role": "assistant", "content": blocks, OWNER: answer[OWNER]}
        return [wrote, {"role": "user", "content": told}]

    def text(self, answer: dict) -> str:
        return text_of(self._blocks(answer))

    def usage(self, answer: dict):
        return answer.get("usage")

    def tokens(self, usage) -> tuple:
        usage = usage if isinstance(usage, dict) else {}
        parts = usage.get("iterations")
        parts = parts if isinstance(parts, list) else []
        counted = [usage, *(one for one in parts if _is_beside(one))]
        read = sum(number(one.get(key)) for one in counted for key in _READ)
        return read, sum(number(one.get("output_tokens")) for one in counted)

    def show(self, answer: dict, body: dict, usage) -> dict:
        return {**answer, "usage": usage} if usage is not None else answer

    def stream(self, answer: dict, body: dict):
        """Yield the events of *answer*, as ``shown`` gave it."""
        usage = answer.get("usage") or {}
        begun = {**answer, "content": [], "stop_reason": None, "stop_sequence": None}
        begun["usage"] = {**usage, "output_tokens": 0}
        yield _event({"type": "message_start", "message": begun})
        for index, block in enumerate(self._blocks(answer)):
            first, deltas = _parts(block)
            yield _event({"type": "content_block_start", "index": index, "content_block": first})
            for delta in deltas:
                yield _event({"type": "content_block_delta", "index": index, "delta": delta})
            yield _event({"type": "content_block_stop", "index": index})
        ended = {key: answer.get(key) for key in ("stop_reason", "stop_sequence")}
        written = {"output_tokens": number(usage.get("output_tokens"))}
        yield _event({"type": "message_delta", "delta": ended, "usage": written})
        yield _event({"type": "message_stop"})

    def event(self, value: dict) -> tuple:
        said = (value.get("delta") or {}).get("text")
        usage = value.get("usage") or (value.get("message") or {}).get("usage")
        return said if isinstance(said, str) else "", usage

    def anchors(self, messages: list) -> list:
        found, asked = [], ""
        for index, message in enumerate(messages):
            content = message.get("content")
            if message.get("role") == "user":
                asked = text_of(content) or asked  # results of tools say nothing
            elif message.get("role") == "assistant":
                blocks = content if isinstance(content, list) else ()
                calls = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
                found.append((index, calls, text_of(content), asked))
        return found

    def final(self, answer: dict) -> dict:
        return {"role": "assistant", "content": answer["content"]}

    def problem(self, status: int, message: str, code: str = "") -> dict:
        kind = _KINDS.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}

    def problem_event(self, problem: dict) -> bytes:
        return event_bytes(problem, "error")


def _is_beside(part) -> bool:
    """Tell whether *part* of a usage is not in its totals: the writing of a summary."""
    return isinstance(part, dict) and part.get("type") == "compaction"


def _event(value: dict) -> bytes:
    return event_bytes(value, value["type"])


def _parts(block: dict) -> tuple:
    """Return (the block as a stream begins it, its deltas)."""
    kind = block.get("type")
    if kind == "text":
        text = str(block.get("text", ""))
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(text)]
        cited = block.get("citations") or ()
        deltas += [{"type": "citations_delta", "citation": each} for each in cited]
        return {"type": "text", "text": ""}, deltas
    if kind == "thinking":
        said = pieces(str(block.get("thinking", "")))
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in said]
        signature = {"type": "signature_delta", "signature": block.get("signature", "")}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]
    if kind in ("tool_use", "server_tool_use"):
        raw = pieces(json_text(block.get("input") or {}))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in raw]
        return {**block, "input": {}}, deltas
    return block, []
