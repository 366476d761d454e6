"""core/providers/dialogue.py: what is sent of a conversation, whatever happened in it."""

from wire_samples import Result, jsontext, whole_answer

from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base.effect import SAY
from clawlite.core.base.errors import ProviderError
from clawlite.core.providers.anthropic import Codec as Anthropic
from clawlite.core.providers.dialogue import NO_ANSWER, NO_QUESTION, NO_RESULT, compose
from clawlite.core.providers.openai import Codec as OpenAI
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message, Reply, turn

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
ME = "0000000a"


def user(text="hi"):
    return Message("user", text)


def says(text, *ids, **more):
    return Message("assistant", text, [(id, "t", "{}") for id in ids], **more)


def result(id, text="done"):
    return Message("tool", text, id=id, result=Result(False))


def shape(messages) -> list:
    return [
        (message.role, message.text)
        + ((message.id,) if message.role == "tool" else tuple([call[0] for call in message.calls]))
        for message in messages
    ]


def check_sound(messages):
    """Fail unless every template takes *messages*."""
    waiting, expected = [], "user"
    for message in messages:
        if message.role == "tool":
            assert waiting and waiting.pop(0) == message.id, shape(messages)
            continue
        assert not waiting and message.role == expected, shape(messages)
        assert message.text.strip() or message.calls
        waiting = [call[0] for call in message.calls]
        expected = "assistant" if message.role == "user" or waiting else "user"
    assert not waiting
    ids = [call[0] for message in messages for call in message.calls]
    for id in ids:
        assert ids.count(id) == 1


def test_what_is_sound_is_passed_on_as_it_is():
    given = [
        user(),
        says("", "abcdefghi", "123456789"),
        result("abcdefghi"),
        result("123456789"),
        says("done"),
        user(),
    ]
    assert compose(given, ME) == given
    own = [user(), says("", "functions.t:0", owner=ME), result("functions.t:0")]
    assert compose(own, ME) == own


def test_roles_alternate_whatever_failed():
    assert shape(compose([user("one"), user("two")], ME)) == [
        ("user", "one"),
        ("assistant", NO_ANSWER),
        ("user", "two"),
    ]
    # the model was silent; a turn ended after its calls; what is empty has no place
    silent = [user("one"), says(" \n"), user("two"), says("", "a"), result("a"), user(" ")]
    composed = compose(silent, ME)
    assert [one[:2] for one in shape(composed)] == [
        ("user", "one"),
        ("assistant", NO_ANSWER),
        ("user", "two"),
        ("assistant", ""),
        ("tool", "done"),
        ("assistant", NO_ANSWER),
        ("user", NO_QUESTION),
    ]
    check_sound(composed)
    # an assistant's word comes first, or two in a row
    assert shape(compose([says("a"), says("b"), user("c")], ME)) == [
        ("user", NO_QUESTION),
        ("assistant", "a\n\nb"),
        ("user", "c"),
    ]


def test_each_call_has_its_result_and_each_result_its_call():
    composed = compose(
        [user(), result("x"), says("", "a", "b"), result("c"), result("b", "of b"), user()], ME
    )
    check_sound(composed)
    assert [message.text for message in composed if message.role == "tool"] == [NO_RESULT, "of b"]
    assert compose([result("x")], ME) == []


def test_ids_of_others_and_doubles_fit_every_server():
    given = [
        "functions.add:0",
        "call_0123456789012345678901234567890123456789",
        "same",
        "same",
        "toolu_01",
        "",
        "local-1",
        "123456789",
        "caf\u00e9caf\u00e9",
    ]
    messages = [user(), says("", *given)] + [result(id, "of %s" % id) for id in given]
    messages += [says("ok"), user(), says("", "same")] + [result("same", "later"), user()]
    composed = compose(messages, ME)
    check_sound(composed)
    ids = [call[0] for message in composed for call in message.calls]
    assert "123456789" in ids
    for id in ids:
        assert len(id) == 9 and not id.strip(LETTERS), id
    # the same in each request: a cache of the provider stays of use
    assert shape(compose(messages, ME)) == shape(composed)
    assert shape(compose(messages[:-3], ME)) == shape(composed)[:-4]


def test_own_ids_stay_unless_they_are_doubles_or_the_server_wants_nine_letters():
    own = [user(), says("", "call_a", "call_a", "local-3", owner=ME)]
    own += [result("call_a"), result("call_a"), result("local-3")]
    ids = [call[0] for call in compose(own, ME)[1].calls]
    assert ids[0] == "call_a" and len(ids[1]) == len(ids[2]) == 9
    assert len(compose(own, ME, True)[1].calls[0][0]) == 9
    check_sound(compose(own, ME))


def test_what_only_its_server_understands_goes_to_nobody_else():
    signature = '"extra_content":{"google":{"thought_signature":"AbC="}}'
    thoughts = [(0, signature), (-1, '"reasoning_content":"hm"')]
    messages = [user(), says("", "a", owner=ME, opaque=thoughts), result("a")]
    codec = OpenAI(jsontext.loads, jsontext.dumps)
    sent = codec.messages(compose(messages, ME))[1]
    assert signature in sent and '"reasoning_content":"hm"' in sent
    sent = jsontext.loads(sent.encode())
    assert sent["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "AbC="}}
    other = codec.messages(compose(messages, "0000000b"))[1]
    assert "extra_content" not in other and "reasoning" not in other
    assert messages[1].opaque == thoughts


def asked_again(codec, body: bytes, key="a") -> dict:
    """Return the second request's assistant message after the answer *body*."""
    answer = whole_answer(codec, body)
    calls = [(id or key, name, raw) for id, name, _, raw in answer.calls]
    message = Message("assistant", answer.text, calls, owner=ME, opaque=answer.opaque)
    results = [result(call[0]) for call in calls]
    return jsontext.loads(codec.messages(compose([user(), message] + results, ME))[1].encode())


def test_opaque_fields_come_back_as_they_were():
    codec = OpenAI(jsontext.loads, jsontext.dumps)
    said = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "h\u00e4?\n",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz", "id": "r"}],
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "t", "arguments": "{}"},
                "extra_content": {"google": {"thought_signature": "AbC="}},
            },
            {"id": "b", "type": "function", "function": {"name": "u", "arguments": "{}"}},
        ],
    }
    body = {"choices": [{"message": said, "finish_reason": "tool_calls"}]}
    assert asked_again(codec, jsontext.dumps(body).encode()) == said
    # an empty thought is demanded back, too
    said["reasoning_content"] = ""
    assert asked_again(codec, jsontext.dumps(body).encode()) == said


def test_signed_thoughts_come_back_before_their_calls():
    codec = Anthropic(jsontext.loads, jsontext.dumps)
    thought = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    content = [
        thought,
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "a", "name": "t", "input": {}},
        {"type": "thinking", "thinking": "and", "signature": "EqQC"},
        {"type": "tool_use", "id": "b", "name": "u", "input": {}},
    ]
    body = {"type": "message", "content": content, "stop_reason": "tool_use"}
    assert asked_again(codec, jsontext.dumps(body).encode())["content"] == content
    codec.changes = [["thinking", ""]]
    assert len(asked_again(codec, jsontext.dumps(body).encode())["content"]) == 3


class Chain:
    loads = None

    def __init__(self, *replies):
        self.replies = list(replies)

    def ask(self, history):
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply
        yield


class Image:
    guard = None

    class agent:
        max_rounds = 5


def play(history, *replies, text="hi"):
    """Return what is said in a turn with *replies*; a call in it fails the test."""

    def run(*arguments):
        raise AssertionError("a call ran")

    said, work = [], turn(Setup(Image()), text, Chain(*replies), history, run)
    try:
        while True:
            effect = work.send(None)
            said.append(effect[1] if effect[0] == SAY else effect)
    except StopIteration:
        pass
    except ProviderError as e:
        said.append(e)
    return said


def call(id="a", raw='{"x":1}'):
    return [(id, "t", jsontext.loads(raw.encode()) if raw else None, raw)]


def test_calls_of_an_answer_that_was_cut_do_not_run():
    for stop in ("length", "cut"):
        history = History(9999)
        said = play(history, Reply("", call(), stop=stop), Reply("Sorry.", []))
        assert said == ["Sorry."]
        assert "did not run: the answer was cut" in history.turn[2].text
        check_sound(compose(history.context(), ME))
        said = play(history, Reply("", call(), stop=stop), Reply("", call("b"), stop="cut"))
        assert "cut twice" in said[0].message
        history.begin(user("again"))
        check_sound(compose(history.context(), ME))


def test_a_cut_answer_says_so():
    assert play(History(9999), Reply("Water bed 3 and", [], stop="cut")) == [
        "Water bed 3 and",
        "The answer ends here: the provider cut it.",
    ]


def test_a_refused_turn_is_in_no_later_request():
    history = History(9999)
    assert play(history, Reply("ok", []), text="one") == ["ok"]
    said = play(history, Reply("", call(), stop="refused"), text="two")
    assert said == ["The provider declined to answer."]
    history.begin(user("three"))
    assert [message.text for message in history.context()] == ["one", "ok", "three"]


def test_a_failed_turn_keeps_its_question():
    history = History(9999)
    play(history, ProviderError("away"), text="one")
    history.begin(user("two"))
    assert [message.text for message in compose(history.context(), ME)] == [
        "one",
        NO_ANSWER,
        "two",
    ]
