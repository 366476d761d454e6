"""Calls that a model wrote as text: what real servers hand on, and what is text alone."""

import transcripts

from clawlite.core.providers.answer_prefix import AnswerPrefix
from clawlite.core.providers.openai import Codec
from clawlite.core.turns.text_call import read

ROME = '{"city":"Rome"}'
FISH = "<\uff5ctool\u2581%s\uff5c>"


class Tool:
    def __init__(self, name, schema):
        self.name, self.schema = name, schema


class Tools:
    """As much of an image as a call asks for."""

    automaton = None
    tools = (
        Tool("weather", [16, 0, [1, 0, 0, "city", 1, "days", 4]]),
        Tool("now", [16, 0, [0, 0, 0]]),
    )

    def tool(self, name):
        for tool in self.tools:
            if tool.name == name:
                return tool
        return None


def found(text):
    calls, why_not = read(text, Codec(*transcripts.decoder()), Tools())
    assert bool(calls) != bool(why_not), text
    return [(name, arguments) for _, name, arguments, _ in calls] or why_not


def test_the_shapes_of_real_servers_are_calls():
    for text in (
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>',
        "<tool_call><function=weather>\n<parameter=city>\nRome\n</parameter></function></tool_call>",
        "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>",
        '<tool_calls>[{"name": "weather", "arguments": {"city": "Rome"}}]</tool_calls>',
        '<|python_tag|>{"type": "function", "name": "weather", "parameters": %s}<|eom_id|>' % ROME,
        "<function=weather>%s</function>" % ROME,
        '[TOOL_CALLS] [{"name": "weather", "arguments": %s, "id": "abcdefghi"}]' % ROME,
        "[TOOL_CALLS]weather[ARGS]" + ROME,
        "[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]" + ROME,
        FISH % "calls\u2581begin"
        + FISH % "call\u2581begin"
        + "function"
        + FISH % "sep"
        + "weather\n```json\n%s\n```" % ROME
        + FISH % "call\u2581end"
        + FISH % "calls\u2581end",
        FISH % "call\u2581begin" + "weather" + FISH % "sep" + ROME + FISH % "call\u2581end",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
        "<|tool_call_argument_begin|>%s<|tool_call_end|><|tool_calls_section_end|>" % ROME,
        'functools[{"name": "weather", "arguments": %s}]' % ROME,
        '<|tool_call|>[{"name": "weather", "arguments": %s}]<|/tool_call|>' % ROME,
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "weather", "parameters": %s}]'
        "<|END_ACTION|>" % ROME,
        '```json\n{"name": "weather", "arguments": %s}\n```' % ROME,
        '{"name": "weather", "parameters": %s}' % ROME,
        '{"name": "weather", "arguments": "{\\"city\\": \\"Rome\\"}"}',
        '{"tool_calls": [{"id": "a", "type": "function", "function": {"name": "weather", '
        '"arguments": "{\\"city\\":\\"Rome\\"}"}}]}',
        '{"tool_call": {"name": "weather", "arguments": %s}}' % ROME,
    ):
        assert found(text) == [("weather", {"city": "Rome"})], text


def test_several_calls_and_calls_without_arguments():
    both = [("weather", {"city": "</tool_call>"}), ("now", {})]
    weather = '{"name": "weather", "arguments": {"city": "</tool_call>"}}'
    for text in (
        '<tool_call>%s</tool_call>\n<tool_call>{"name": "now"}</tool_call>' % weather,
        '%s; {"name": "now", "parameters": {}}' % weather,
        '[%s, {"name": "now"}]' % weather,
        '[TOOL_CALLS]weather{"city": "</tool_call>"}[TOOL_CALLS]now{}',
    ):
        assert found(text) == both, text
    assert found("<tool_call>now</tool_call>") == [("now", {})]
    assert found('{"name":"now"}' * 16) == [("now", {})] * 16
    assert found('{"name":"now"}' * 17) == "it has more than 16 calls"


def test_arguments_without_types_get_those_of_the_schema():
    text = (
        "<function=weather><parameter=city>%s</parameter><parameter=days>3</parameter></function>"
    )
    for city in ("Rome", "5", "true", "[1]", "null"):
        assert found(text % city) == [("weather", {"city": city, "days": 3})], city
    assert "days" in found(text.replace("3", "many") % "Rome")


def test_what_is_beside_a_call_makes_all_of_it_text():
    call = '<tool_call>{"name":"now"}</tool_call>'
    for text in (
        "Write " + call,
        call + " now",
        call + "\nDone.",
        "`" + call + "`",
        "> " + call,
        '{"name":"now"} and more',
        '"now"',
        "now",
        "```\nnow\n```",
        "weather " + ROME,
        "[TOOL_CALLS] now now {}",
        "<|im_end|>now",
        "<%s>now" % ("|" + "x" * 60 + "|"),
        "<|x",
    ):
        assert found(text) == "other text is beside it", text


def test_what_fits_no_tool_is_text():
    for text, why in (
        ('{"name":"rm","arguments":{}}', "there is no tool rm"),
        (
            '<tool_call>{"name":"now"}{"name":"rm"}</tool_call>',
            "there is no tool rm",
        ),
        ('{"name":"weather"}', "weather: at arguments.city: expected a value, got nothing"),
        (
            '{"name":"weather","arguments":{"city":5}}',
            "weather: at arguments.city: expected a string, got 5",
        ),
        ('{"name":"now","age":3}', "its JSON is no call"),
        ('{"name":"now","arguments":[]}', "its JSON is no call"),
        ('{"name":"now","tool_name":"rm"}', "its JSON is no call"),
        ("{}", "its JSON is no call"),
        ("[1]", "its JSON is no call"),
        ("{'name':'now'}", "its JSON is no call"),
        ('<tool_call>weather</tool_call>{"city":"Rome"}', "its JSON is no call"),
        ('<tool_call>{"name":"now"', "it is not whole"),
        ("<function=now", "it is not whole"),
        ("<parameter=a>1</parameter>", "it names no tool"),
        ("<tool_call></tool_call>", "it names no tool"),
        ("[]", "it names no tool"),
    ):
        assert found(text) == why, text


def test_no_text_raises():
    text = (
        '<tool_call>\n<function=weather>{"name": ["weather"], "arguments": "{\\"city\\"}"}'
        "<arg_key>a</arg_key><arg_value>b</arg_value>[TOOL_CALLS][ARGS]```json </function>"
    )
    for start in range(0, len(text), 3):
        for end in range(start, len(text), 5):
            found(text[start:end])


def given(text, most, size):
    """Return (what is shown before the end of *text*, what at its end, may it be a call)."""
    lead, shown = AnswerPrefix(most), ""
    for at in range(0, len(text), size):
        shown += lead.add(text[at : at + size])
    return shown, lead.rest().lstrip(), lead.is_holding()


def test_a_text_that_may_be_a_call_is_held_where_it_may_run():
    for size in (1, 3, 100):
        for call in (
            "<tool_call>{}",
            '{"name":"now"}',
            "```json\n{}",
            "[TOOL_CALLS]é",
            "functools[1",
        ):
            assert given(call, 99, size) == ("", call, True), call
            assert given("<think>hm</think>\n" + call, 99, size) == ("", call, True), call
            assert given(call + "é" * 99, 99, size) == (call + "é" * 99, "", False), call
            shown, rest, may_be = given(call, 0, size)
            assert shown + rest == call and not may_be
        for text in (
            "<b>bold</b>",
            "[a](b)",
            "```python\nx\n```",
            "fine, functools[1]",
            "<|tool"[:1],
        ):
            shown, rest, may_be = given(text, 99, size)
            assert shown + rest == text and (may_be is False or text == "<"), text
