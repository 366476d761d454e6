"""Hold requests to what vendors take: run by the Python of build/vendors (make vendors).

stdin: one JSON object a line, {"api": "openai" or "anthropic", "body": a request}.  stdout: a JSON
list, of each request what is wrong with it.  Requests are held to the request types of the packages
openai, anthropic, mistralai and google-genai, and to chat templates that raise errors where those
of Mistral, Gemma and Llama do.
"""

import json
import re
import sys
import typing

import jinja2
from anthropic.types import (
    MessageParam,
    RedactedThinkingBlockParam,
    TextBlockParam,
    ThinkingBlockParam,
    ToolParam,
    ToolResultBlockParam,
    ToolUseBlockParam,
)
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as genai
from mistralai.client.models import ChatCompletionRequest
from openai.types.chat import (
    ChatCompletionMessageFunctionToolCallParam,
    ChatCompletionMessageParam,
    ChatCompletionToolParam,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter

BLOCK = (
    TextBlockParam
    | ThinkingBlockParam
    | RedactedThinkingBlockParam
    | ToolUseBlockParam
    | ToolResultBlockParam
)
# after the system message user and assistant alternate, calls and their results aside; ids have
# nine letters or digits
MISTRAL = """
{%- set loop_messages = messages[1:] if messages[0].role == "system" else messages %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
{%- if message.role == "user" or (message.role == "assistant" and not message.tool_calls) %}
{%- if (message.role == "user") != (ns.index % 2 == 0) %}
{{- raise_exception("roles must alternate user and assistant") }}
{%- endif %}
{%- set ns.index = ns.index + 1 %}
{%- endif %}
{%- endfor %}
{%- for message in loop_messages %}
{%- if message.tool_calls %}
{%- for call in message.tool_calls %}
{%- if call.id|length != 9 %}{{- raise_exception("ids of calls have 9 characters") }}{%- endif %}
{%- endfor %}
{%- elif message.role == "tool" and message.tool_call_id|length != 9 %}
{{- raise_exception("ids of results have 9 characters") }}
{%- endif %}
{%- endfor %}
"""
GEMMA = """
{%- for message in messages %}
{%- if message.role == "system" %}{{- raise_exception("System role not supported") }}{%- endif %}
{%- if (message.role == "user") != (loop.index0 % 2 == 0) %}
{{- raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
{%- endif %}
{{- message.content | trim }}
{%- endfor %}
"""
LLAMA = """
{%- for message in messages %}
{%- if message.tool_calls and message.tool_calls|length != 1 %}
{{- raise_exception("This model only supports single tool-calls at once!") }}
{%- endif %}
{{- message.content | trim }}
{%- endfor %}
"""


def raise_exception(words: str):
    raise jinja2.TemplateError(words)


def render(template: str, messages: list) -> list:
    made = jinja2.Environment().from_string(template, globals={"raise_exception": raise_exception})
    try:
        made.render(messages=messages)
    except jinja2.TemplateError as e:
        return [str(e)]
    return []


def fits(kind, value) -> list:
    try:
        TypeAdapter(kind).validate_python(value)
    except Exception as e:
        return [str(e)[:500]]
    return []


def strangers(body: dict, kind) -> list:
    return [name for name in body if name not in typing.get_type_hints(kind)]


def check_openai(body: dict) -> list:
    messages = body["messages"]
    wrong = strangers(body, CompletionCreateParamsStreaming)
    wrong += fits(list[ChatCompletionMessageParam], messages)
    for message in messages:  # the types check no item of an iterable
        calls = message.get("tool_calls", [])
        wrong += fits(list[ChatCompletionMessageFunctionToolCallParam], calls)
    wrong += fits(list[ChatCompletionToolParam], body.get("tools", []))
    for tool in body.get("tools", []):
        function = tool["function"]
        wrong += fits(
            genai.FunctionDeclaration,
            {"name": function["name"], "parametersJsonSchema": function["parameters"]},
        )
        if "properties" not in function["parameters"]:
            wrong.append("object schema missing properties")
    wrong += order(messages)
    foreign = {key: value for key, value in body.items() if key != "stream_options"}
    if not any("extra_content" in json.dumps(message) for message in messages):
        wrong += fits(ChatCompletionRequest, foreign)
        wrong += render(MISTRAL, messages)
    plain = [message for message in messages if message["role"] != "system"]
    if not any(message.get("tool_calls") for message in messages):
        wrong += render(GEMMA, plain)
    elif all(len(message.get("tool_calls", [1])) == 1 for message in messages):
        wrong += render(LLAMA, messages)
    return wrong


def order(messages: list) -> list:
    """Return what is wrong with calls and results: each call has its result directly behind it."""
    waiting, wrong = [], []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                wrong.append("a result without its call")
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            wrong.append("a call without its result")
        waiting = [call["id"] for call in message.get("tool_calls", [])]
        if not str(message["content"] or "").strip() and not waiting:
            wrong.append("a message must not be empty")
    return wrong + (["a call without its result"] if waiting else [])


def check_anthropic(body: dict) -> list:
    wrong = [] if strangers(body, MessageCreateParamsStreaming) == [] else ["a strange field"]
    wrong += fits(list[MessageParam], body["messages"])
    for message in body["messages"]:
        wrong += fits(list[BLOCK], message["content"])
    wrong += fits(list[ToolParam], body.get("tools", []))
    roles, waiting = [message["role"] for message in body["messages"]], []
    if roles != [("user", "assistant")[at % 2] for at in range(len(roles))]:
        wrong.append("roles must alternate")
    for message in body["messages"]:
        results = [
            block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"
        ]
        if results != waiting:
            wrong.append("each tool_use must have its tool_result in the next message")
        waiting = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        for key in waiting + results:
            if not re.fullmatch("[a-zA-Z0-9_-]+", key):
                wrong.append("ids match [a-zA-Z0-9_-]+")
        for block in message["content"]:
            if block["type"] == "text" and not block["text"].strip():
                wrong.append("text content blocks must contain non-whitespace text")
    return wrong


CHECKS = {"openai": check_openai, "anthropic": check_anthropic}
if __name__ == "__main__":
    lines = [json.loads(line) for line in sys.stdin]
    print(json.dumps([CHECKS[line["api"]](line["body"]) for line in lines]))
