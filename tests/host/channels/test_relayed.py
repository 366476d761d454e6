"""Channels that the gateway of a board carries: what a build takes, refuses and warns of."""

import pytest
from channel_world import project

from clawlite.core.image.image import CHANNELS
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.compiler import compiler, lint
from clawlite.host.fit import board_fit
from clawlite.linux.files.files import image_of

HOOK = {"type": "webhook", "transport": "webhook", "access_control": {"mode": "open"}}
BOT = {
    "type": "telegram",
    "transport": "polling",
    "access_control": {"mode": "allowlist", "allowed_ids": ["7"]},
}
JOBS = {
    "type": "queue",
    "transport": "polling",
    "access_control": {"mode": "open"},
    "trigger": {"queue_name": "t/jobs"},
}
ALL = {"bot": BOT, "hook": HOOK, "jobs": JOBS}
VIA = "".join('[%s]\nvia = "gateway"\n' % one for one in ("telegram", "webhook", "mqtt"))
ADMIN = {"mode": "role-based", "roles": [{"id": "7", "role": "admin"}]}


def problems(made, board: str) -> list:
    known = boards.load_all()
    profile = next(one for one in known if one.name == board)
    return [one.text() for one in board_fit.board_problems(made, profile, known)]


def test_a_board_takes_channels_that_its_gateway_carries_and_says_how_otherwise(tmp_path):
    made = project(tmp_path, ALL, VIA + "[gateway]\n")
    assert problems(made, "pico") == []
    image = image_of(compiler.build(made).data, "test")
    assert "relayed" in image.requires and "telegram" not in image.requires
    assert [record[6:] for record in image.section(CHANNELS)] == [[False]] * 3
    found = problems(project(tmp_path, ALL), "pico")
    for section in ("telegram", "webhook", "mqtt"):
        assert any(f'[{section}] via = "gateway", and [gateway]' in text for text in found), found


def test_a_machine_with_channels_of_its_own_is_told_to_remove_via(tmp_path):
    made = project(tmp_path, {"bot": BOT}, '[telegram]\nvia = "gateway"\n[gateway]\n')
    assert any(
        "rpi-4 speaks to the platform itself - remove via" in text
        for text in problems(made, "rpi-4")
    )


@pytest.mark.parametrize(
    "specs, settings, wanted",
    [
        ({"bot": BOT}, '[telegram]\nvia = "gateway"\n', "nothing says that this device has a"),
        (
            {"bot": BOT},
            '[telegram]\nvia = "gateway"\n[webhook]\nvia = "gateway"\n[gateway]\n',
            "there is no Channel of type webhook",
        ),
        ({"bot": BOT}, '[telegram]\nvia = "wifi"\n[gateway]\n', "via"),
        (
            {"bot": BOT},
            '[telegram]\nvia = "gateway"\n[gateway]\nroles = ["admin"]\n',
            'expected ["user"], or ["user", "admin"]',
        ),
        (
            {"bot": BOT},
            '[telegram]\nvia = "gateway"\n[gateway]\nroles = ["user", "viewer"]\n',
            "roles",
        ),
    ],
)
def test_settings_without_effect_or_sense_are_refused(tmp_path, specs, settings, wanted):
    with pytest.raises(ManifestErrors) as e:
        compiler.build(project(tmp_path, specs, settings))
    lines = str(e.value).splitlines()
    assert any(wanted in line for line in lines), lines


@pytest.mark.parametrize("roles, warns", [("", True), ('roles = ["user", "admin"]\n', False)])
def test_an_admin_for_whom_the_gateway_may_not_speak_is_named(tmp_path, roles, warns):
    settings = '[telegram]\nvia = "gateway"\n[gateway]\n' + roles
    made = project(tmp_path, {"bot": dict(BOT, access_control=ADMIN)}, settings)
    data = compiler.build(made).data
    found = [one["message"] for one in lint.find(made)["warnings"]]
    assert any("an admin who comes by the gateway is a user" in text for text in found) is warns
    assert image_of(data, "test").section(CHANNELS)[0][6] is not warns
