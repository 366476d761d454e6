"""The Bot API as its users' library aiogram has it: what the stand-in sends are its types, and what
an agent asks are its methods.
"""

import http.client
import json

import pytest
from bot_server import NEEDED, TOKEN, BotServer

from clawlite.linux.channels.telegram_update import CONTENTS

aiogram = pytest.importorskip("aiogram", reason="needs aiogram (extra test)")


def method(name: str):
    return getattr(aiogram.methods, name[0].upper() + name[1:])


def test_requests_and_answers_are_those_of_the_bot_api(started):
    world, server = started(
        {"mode": "role-based", "roles": [{"id": "7", "role": "admin"}]},
        processing={"typing_indicator": True, "read_receipts": True},
        features={"threads": True},
    )
    world.hold = True
    server.message(7, "quick")
    world.until(lambda: world.held and "sendChatAction" in dict(server.asked))
    world.finish()
    server.message(-100500, "echo hello", person=7, message_thread_id=5, is_topic_message=True)
    server.message(7, photo=[{"file_id": "x", "file_unique_id": "y", "width": 1, "height": 1}])
    server.message(-5, person=7, migrate_to_chat_id=-100500)
    world.until(lambda: len(server.sent) == 3)
    server.message(7, "careful")
    world.until(lambda: len(server.sent) == 4)
    server.tap(7, "Approve")
    world.hold = False
    world.until(lambda: {name for name, _ in server.asked} == {*NEEDED} - {"getMe"})
    for name, params in server.asked:
        model = method(name)
        assert params.keys() <= model.model_fields.keys(), name
        model.model_validate(params)
    for update in server.given:
        known = aiogram.types.Update.model_validate(update)
        assert known.message or known.callback_query.message
        assert not known.model_extra and not (known.message or known.callback_query).model_extra
    assert {*CONTENTS} <= aiogram.types.Message.model_fields.keys()


@pytest.mark.parametrize(
    "name, params",
    [("getMe", {}), ("sendMessage", {"chat_id": "7", "text": "hello"})]
    + [("getUpdates", {"timeout": 0}), ("sendChatAction", {"chat_id": "7", "action": "typing"})],
)
def test_answers_of_the_stand_in_are_what_the_methods_return(name, params):
    with BotServer(TOKEN) as server:
        server.message(7, "hello")
        host, _, port = server.url.removeprefix("http://").partition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.request(
            "POST",
            "/bot%s/%s" % (TOKEN, name),
            json.dumps(params),
            {"Content-Type": "application/json"},
        )
        said = json.loads(connection.getresponse().read())
        connection.close()
    returned = aiogram.methods.Response[method(name).__returning__]
    assert returned.model_validate(said).ok
