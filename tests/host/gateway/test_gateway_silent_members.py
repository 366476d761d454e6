"""A board that is a member of a swarm, and whose memory ended while its gateway greeted it."""

import asyncio
import types

from clawlite.host.gateway_swarm.members import Members


def test_a_board_that_does_not_answer_is_told_and_asked_until_it_does():
    notes = []

    async def play():
        images = types.SimpleNamespace(path=lambda digest: "nowhere.cbor")
        members = Members(images, lambda *_: None, lambda *_: None, notes.append)
        asked, again = [], asyncio.Event()

        def tell():
            asked.append(1)
            if len(asked) == 3:
                again.set()

        members.expect("shed", tell, 0.001)
        await again.wait()
        members.confirm("shed", "digest")
        was = len(asked)
        await asyncio.sleep(0)
        assert not members._expected, "who has answered is asked no more"
        await members.close()
        assert len(asked) == was

    asyncio.run(play())
    assert notes[:2] == [
        "shed: has not confirmed that it is a member of its swarm, and is none until then "
        "- it may be out of memory; the gateway keeps asking",
        "shed: is a member of its swarm now",
    ]


def test_a_board_that_is_away_is_not_asked():
    async def play():
        members = Members(None, None, None, None)
        members.expect("shed", None)
        members.note_away("shed")
        assert not members._expected

    asyncio.run(play())
