"""Chat completions of OpenAI, as the proxy reads and changes them (dialect.py)."""

from clawlite.core.base.errors import ParseError
from clawlite.core.providers.opaque import FIELDS as OPAQUE
from clawlite.host.proxy.amounts import amount
from clawlite.host.proxy.dialect import (
    OWNER,
    Call,
    Refused,
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

_KEPT = ("content", *OPAQUE)  # of a hidden message


class OpenAI:
    kind, name = API_NUMBERS["openai-compatible"], "openai"
    path = "/v1/chat/completions"

    # -- what goes upstream

    def own_names(self, body: dict) -> set:
        made = [tool.get(tool.get("type")) for tool in body.get("tools") or ()]
        made += body.get("functions") or ()
        return {tool["name"] for tool in made if isinstance(tool, dict) and "name" in tool}

    def check(self, body: dict) -> None:
        """Raise ``Refused`` for what cannot be mediated."""
        count = amount(body).choices
        if count != 1:
            found = f"n: expected 1 where tools are managed, found {count}"
            raise Refused(400, found, "ask for one answer at a time")

    def in_context(self, body: dict, text: str) -> dict:
        messages, at = body["messages"], 0
        while at < len(messages) and messages[at].get("role") in ("system", "developer"):
            at += 1
        told = {"role": "system", "content": text}
        return {**body, "messages": [*messages[:at], told, *messages[at:]]}

    def offer(self, body: dict, tools: list) -> dict:
        made = {
            key: value
            for key, value in body.items()
            if key not in ("functions", "function_call", "stream_options")
        }
        made["stream"] = False
        made["messages"] = _modern(body["messages"])
        own = list(body.get("tools") or ())
        own += [{"type": "function", "function": each} for each in body.get("functions") or ()]
        made["tools"] = own + [
            {
                "type": "function",
                "function": {
                    "name": tool.alias,
                    "description": tool.description,
                    "parameters": parameters(tool),
                },
            }
            for tool in tools
        ]
        if body.get("functions"):
            made["parallel_tool_calls"] = False  # its answers have room for one call
        choice = made.get("tool_choice", _tool_choice(body.get("function_call")))
        if choice is not None:
            made["tool_choice"] = _rename(choice, {tool.name: tool.alias for tool in tools})
        return made

    def relax(self, body: dict, names: set) -> dict:
        choice = body.get("tool_choice")
        forced = choice == "required"
        if isinstance(choice, dict) and choice.get("type") == "function":
            forced = choice.get("function", {}).get("name") in names
        elif isinstance(choice, dict) and choice.get("type") == "allowed_tools":
            inner = choice.get("allowed_tools", {})
            choice = {**choice, "allowed_tools": {**inner, "mode": "auto"}}
            return {**body, "tool_choice": choice}
        return {**body, "tool_choice": "auto"} if forced else body

    # -- answers

    def message(self, answer: dict) -> dict:
        choices = objects(answer.get("choices"), "choices")
        if not choices or not isinstance(choices[0].get("message"), dict):
            raise answer_error("expected choices[0].message")
        return choices[0]["message"]

    def calls(self, answer: dict, loads) -> list[Call]:
        found = []
        for call in objects(self.message(answer).get("tool_calls"), "tool_calls"):
            kind = call.get("type", "function")
            made = call.get(kind) if isinstance(kind, str) else None
            if not isinstance(made, dict) or not _is_named(made.get("name"), call.get("id")):
                raise answer_error("expected a tool call to have an id and a name")
            found.append(Call(call["id"], made["name"], _object(made.get("arguments"), loads)))
        return found

    def is_cut(self, answer: dict) -> bool:
        return answer["choices"][0].get("finish_reason") == "length"

    def is_text(self, answer: dict) -> bool:
        return (
            answer["choices"][0].get("finish_reason") == "stop"
            and not self.message(answer).get("tool_calls")
            and isinstance(self.message(answer).get("content"), str)
        )

    def with_calls(self, answer: dict, calls: list) -> dict:
        message = {**self.message(answer), "content": None}
        message["tool_calls"] = [
            {
                "id": new_id(),
                "type": "function",
                "function": {"name": name, "arguments": json_text(arguments)},
            }
            for name, arguments in calls
        ]
        first = {**answer["choices"][0], "message": message, "finish_reason": "tool_calls"}
        return {**answer, "choices": [first]}

    def complete(self, answer: dict) -> None:
        """Give calls without an id one: some servers send none."""
        for call in objects(self.message(answer).get("tool_calls"), "tool_calls"):
            if not call.get("id"):
                call["id"] = new_id()

    def report(self, answer: dict):
        """Return the part of *answer* that reports a failure, or None."""
        choices = answer.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                if choice.get("error") or choice.get("finish_reason") == "error":
                    return choice
        return None

    def with_round(self, answer: dict, calls: list, results: list) -> list:
        message = self.message(answer)
        hidden = {"role": "assistant", OWNER: answer[OWNER]}
        hidden.update({key: message[key] for key in _KEPT if message.get(key) is not None})
        hidden.setdefault("content", None)
        hidden["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json_text(call.arguments or {})},
                **{key: given[key] for key in OPAQUE if given.get(key) is not None},
            }
            for call, given in zip(calls, message["tool_calls"])
        ]
        return [hidden] + [
            {"role": "tool", "tool_call_id": call.id, "content": json_text(result)}
            for call, result in zip(calls, results)
        ]

    def text(self, answer: dict) -> str:
        return text_of(self.message(answer).get("content"))

    def usage(self, answer: dict):
        return answer.get("usage")

    def tokens(self, usage) -> tuple:
        usage = usage if isinstance(usage, dict) else {}
        return number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))

    def show(self, answer: dict, body: dict, usage) -> dict:
        made = {**answer, "usage": usage} if usage is not None else answer
        calls = self.message(answer).get("tool_calls")
        if not body.get("functions") or not calls:
            return made
        message = {**self.message(answer), "function_call": calls[0].get("function")}
        del message["tool_calls"]
        first = {**answer["choices"][0], "message": message, "finish_reason": "function_call"}
        return {**made, "choices": [first]}

    def stream(self, answer: dict, body: dict):
        """Yield the events of *answer*, as ``shown`` gave it."""
        message = self.message(answer)
        head = {
            key: answer[key]
            for key in ("id", "created", "model", "system_fingerprint", "service_tier")
            if key in answer
        }
        head["object"] = "chat.completion.chunk"

        def chunk(delta: dict, reason=None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            return event_bytes({**head, "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        for key in (*OPAQUE, "content", "refusal"):
            if isinstance(message.get(key), str):
                yield from (chunk({key: piece}) for piece in pieces(message[key]))
            elif message.get(key) is not None:
                yield chunk({key: message[key]})
        if message.get("function_call"):
            yield chunk({"function_call": message["function_call"]})
        for index, call in enumerate(message.get("tool_calls") or ()):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        yield chunk({}, answer["choices"][0].get("finish_reason"))
        if (body.get("stream_options") or {}).get("include_usage"):
            yield event_bytes({**head, "choices": [], "usage": answer.get("usage")})
        yield b"data: [DONE]\n\n"

    def event(self, value: dict) -> tuple:
        said = [(choice.get("delta") or {}).get("content") for choice in value.get("choices") or ()]
        return "".join(text for text in said if isinstance(text, str)), value.get("usage")

    def anchors(self, messages: list) -> list:
        found, asked = [], ""
        for index, message in enumerate(messages):
            if message.get("role") == "user":
                asked = text_of(message.get("content"))
            elif message.get("role") == "assistant":
                calls = [call.get("id") for call in message.get("tool_calls") or ()]
                if message.get("function_call"):
                    calls = [json_text(message["function_call"])]
                found.append((index, calls, text_of(message.get("content")), asked))
        return found

    def final(self, answer: dict) -> dict:
        """Return the message of *answer* as the runner will have it in its conversation."""
        return {"role": "assistant", **self.message(answer)}

    def problem(self, status: int, message: str, code: str = "") -> dict:
        kind = "invalid_request_error" if status < 500 else "api_error"
        found = {"message": message, "type": kind, "param": None, "code": code or None}
        return {"error": found}

    def problem_event(self, problem: dict) -> bytes:
        return event_bytes(problem)


def _object(raw, loads):
    """Return the object that the text *raw* holds, None when it is none."""
    if isinstance(raw, dict):
        return raw
    if not isinstance(raw, str):
        return None
    try:
        value = loads(raw.encode() or b"{}")
    except ParseError:
        return None
    return value if isinstance(value, dict) else None


def _tool_choice(function_call):
    """Return the ``tool_choice`` of a legacy ``function_call``."""
    if isinstance(function_call, dict):
        return {"type": "function", "function": {"name": function_call.get("name")}}
    return function_call


def _rename(choice, aliases: dict):
    """Return a ``tool_choice`` whose managed names are those that the model sees."""
    if not isinstance(choice, dict):
        return choice
    made = dict(choice)
    function = choice.get("function")
    if isinstance(function, dict):
        name = function.get("name")
        made["function"] = {**function, "name": aliases.get(name, name)}
    inner = choice.get("allowed_tools")
    if isinstance(inner, dict):
        tools = [_rename(tool, aliases) for tool in inner.get("tools") or ()]
        made["allowed_tools"] = {**inner, "tools": tools}
    return made


def _modern(messages: list) -> list:
    """Return *messages* with calls of legacy functions as calls of tools: an API takes one kind."""
    made, last = [], ""
    for index, message in enumerate(messages):
        call = message.get("function_call")
        if message.get("role") == "assistant" and isinstance(call, dict):
            last = f"call_{index}"
            message = {key: value for key, value in message.items() if key != "function_call"}
            message["tool_calls"] = [{"id": last, "type": "function", "function": call}]
        elif message.get("role") == "function":
            message = {"role": "tool", "tool_call_id": last, "content": message.get("content")}
        made.append(message)
    return made


def _is_named(*texts) -> bool:
    return all(isinstance(text, str) and text for text in texts)
