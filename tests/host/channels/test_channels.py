"""Channels of a manifest: what is refused by name and where, and what goes into an image."""

import pytest
from channel_world import project

from clawlite.core.image.image import CHANNELS
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.channels import zone_changes
from clawlite.host.compiler import compiler, lint
from clawlite.host.fit import board_fit
from clawlite.host.manifest import manifest
from clawlite.linux.files.files import image_of

CRON = {"type": "cron", "transport": "polling", "trigger": {"schedule": "30 7 * * MON-FRI"}}
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
CLI = {"type": "cli", "transport": "stdio"}


def said(folder, specs: dict, settings: str = "") -> list:
    with pytest.raises(ManifestErrors) as e:
        compiler.build(project(folder, specs, settings))
    return str(e.value).splitlines()


@pytest.mark.parametrize(
    "spec, wanted",
    [
        (
            dict(BOT, access_control={"mode": "allowlist", "allowed_ids": ["7", "-100500"]}),
            "this is a group, and everybody in it would have that role",
        ),
        (
            dict(
                BOT, access_control={"mode": "role-based", "roles": [{"id": "-5", "role": "admin"}]}
            ),
            "this is a group, and everybody in it would have that role",
        ),
        (
            {"type": "slack", "transport": "websocket"},
            'channels of type "slack" are not supported by this version',
        ),
        (
            dict(JOBS, transport="websocket"),
            'transport "websocket" of a queue channel is not supported',
        ),
        (dict(JOBS, transport="stdio"), 'expected "polling"'),
        (
            {key: JOBS[key] for key in ("type", "transport", "access_control")},
            "nothing says what it reads",
        ),
        (dict(JOBS, trigger={"queue_name": "a/#"}), 'at most one level is "+"'),
        (dict(JOBS, trigger={"queue_name": "+/a/+"}), 'at most one level is "+"'),
        (dict(JOBS, trigger={"queue_name": "a+/b"}), 'at most one level is "+"'),
        (dict(JOBS, trigger={"queue_name": "$SYS/x"}), "the broker's own"),
        (dict(JOBS, trigger={"queue_name": "a" * 257}), "1 to 256 bytes"),
        (dict(JOBS, trigger={"queue_name": "a\n"}), "without control characters"),
        (
            dict(JOBS, trigger={"queue_name": "a", "mailbox": "INBOX"}),
            "a queue channel has no mailbox",
        ),
        (
            dict(CRON, trigger={"schedule": "@daily", "queue_name": "a"}),
            "a cron channel has no queue_name",
        ),
        (
            {key: JOBS[key] for key in ("type", "transport", "trigger")},
            "nothing says who may speak to it",
        ),
        (
            dict(JOBS, access_control={"mode": "allowlist", "allowed_ids": ["7"]}),
            "only its topic can name the sender of a message",
        ),
        (
            dict(
                JOBS,
                trigger={"queue_name": "a/+"},
                access_control={"mode": "allowlist", "allowed_ids": ["a/b"]},
            ),
            "one level of a topic",
        ),
        (
            dict(
                JOBS,
                trigger={"queue_name": "a/+"},
                access_control={
                    "mode": "pairing",
                    "pairing": {"code_expiry_minutes": 1, "max_pending": 1},
                },
            ),
            "there is no topic to send it to",
        ),
        (
            dict(
                JOBS,
                trigger={"queue_name": "a", "overlap_policy": "queue"},
                processing={"rate_limit": {"messages_per_minute": 1}},
            ),
            "a rate_limit drops messages",
        ),
        (
            dict(CLI, processing={"typing_indicator": True}),
            "a cli channel of this version has no typing_indicator",
        ),
        (
            dict(HOOK, processing={"read_receipts": True}),
            "a webhook channel of this version has no read_receipts",
        ),
        (
            dict(BOT, features={"voice": False, "files": True}),
            "a telegram channel of this version has no files",
        ),
        (dict(JOBS, features={"threads": True}), "a queue channel of this version has no threads"),
        (dict(CLI, transport="polling"), 'expected "stdio" for type "cli"'),
        (dict(CRON, transport="stdio"), 'expected "polling" for type "cron"'),
        (
            dict(BOT, transport="webhook"),
            'transport "webhook" of a telegram channel is not supported',
        ),
        (dict(BOT, transport="stdio"), 'found "stdio"'),
        (dict(HOOK, transport="polling"), 'expected "webhook" for type "webhook"'),
        (
            {"type": "telegram", "transport": "polling"},
            "the default is an allowlist with nobody on it",
        ),
        ({"type": "webhook", "transport": "webhook"}, "nothing says who may speak to it"),
        (
            dict(CRON, access_control={"mode": "allowlist", "allowed_ids": ["7"]}),
            "nobody speaks through a cron channel",
        ),
        (
            dict(
                CLI,
                access_control={
                    "mode": "pairing",
                    "pairing": {"code_expiry_minutes": 1, "max_pending": 1},
                },
            ),
            "whoever can reach the wire is trusted",
        ),
        (
            dict(BOT, access_control={"mode": "allowlist", "allowed_ids": ["7", "7"]}),
            '"7" is there already',
        ),
        (
            dict(BOT, access_control={"mode": "allowlist", "allowed_ids": ["x" * 129]}),
            "an id of 1 to 128 characters",
        ),
        (
            dict(
                BOT,
                access_control={"mode": "allowlist", "allowed_ids": [str(n) for n in range(1001)]},
            ),
            "at most 1000",
        ),
        (dict(BOT, trigger={"max_parallel": 2}), "a telegram channel is not triggered"),
        (dict(CLI, trigger={"max_parallel": 2}), "a cli channel is not triggered"),
        ({"type": "cron", "transport": "polling"}, "nothing says when it runs"),
        (dict(CRON, trigger={"schedule": "61 * * * *"}), "minute: expected 0 to 59"),
        (dict(CLI, processing={"rate_limit": {"burst": 3}}), "a burst needs messages_per_minute"),
    ],
)
def test_what_is_refused(tmp_path, spec, wanted):
    problems = said(tmp_path, {"it": spec})
    assert len(problems) == 1 and wanted in problems[0] and "claw.yaml:" in problems[0], problems


@pytest.mark.parametrize(
    "settings, wanted",
    [
        ('time_zone = "Europe/Berlyn"\n', "there is no such time zone"),
        ('time_zone = "berlin time"\n', "expected the name of a time zone"),
        ('[cron]\nmissed = "twice"\n', "cron.missed"),
        ('[cron.messages]\ntock = "x"\n', 'there is no Channel "tock" of type cron'),
        ('[webhook]\naddress = "localhost:1"\n', "an address and a port"),
        ('[webhook]\naddress = "127.0.0.1:65536"\n', "an address of this machine and a port"),
        ('[webhook]\naddress = "300.0.0.1:1"\n', "an address of this machine and a port"),
        ('[telegram]\nbase_url = "http://example.com"\n', "a token goes over https alone"),
        ('[telegram]\nbase_url = "ftp://x"\n', "a URL without a query"),
        ('[mqtt]\naddress = "x"\n', "mqtt://HOST or mqtts://HOST"),
        ('[mqtt]\naddress = "mqtt://h:0"\n', "expected mqtt://HOST"),
        ('[mqtt]\naddress = "mqtt://h:99999"\n', "Port out of range 0-65535"),
        ('[mqtt]\naddress = "mqtt://u:p@h"\n', "expected mqtt://HOST"),
        ("[mqtt]\nqos = 2\n", "mqtt.qos"),
        (
            '[mqtt]\naddress = "mqtt://broker.lan"\nuser = "a"\n',
            "its password would be sent unencrypted",
        ),
        ('[mqtt]\nclient_id = "a b"\n', "1 to 64 letters"),
        ('[mqtt]\nreplies = { jobz = "x" }\n', 'there is no Channel "jobz" of type queue'),
        ('[mqtt]\nreplies = { jobs = "a/#" }\n', 'none is "#"'),
        ('[mqtt]\nreplies = { jobs = "a/+" }\n', "queue_name has none"),
    ],
)
def test_settings_that_are_refused(tmp_path, settings, wanted):
    problems = said(tmp_path, {"tick": CRON, "jobs": JOBS}, settings)
    assert len(problems) == 1 and wanted in problems[0] and "clawlite.toml" in problems[0], problems


@pytest.mark.parametrize("settings", ["qos = 0", "clean_session = true"])
def test_what_loses_messages_and_a_promise_to_lose_none(tmp_path, settings):
    problems = said(
        tmp_path,
        {"jobs": dict(JOBS, trigger={"queue_name": "a", "overlap_policy": "queue"})},
        "[mqtt]\n%s\n" % settings,
    )
    assert (
        len(problems) == 1
        and '"queue" must not lose a message' in problems[0]
        and settings in problems[0]
    )


@pytest.mark.parametrize(
    "settings",
    [
        'address = "mqtt://127.0.0.1"',
        'address = "mqtt://localhost"',
        'address = "mqtts://broker.lan"',
        'address = "mqtt://broker.lan"\nplain = true',
    ],
)
def test_where_a_password_may_go(tmp_path, settings):
    assert compiler.build(
        project(tmp_path, {"jobs": JOBS}, '[mqtt]\nuser = "me"\n%s\n' % settings)
    ).data


def test_two_webhooks(tmp_path):
    assert "an agent has one webhook" in said(tmp_path, {"one": HOOK, "two": HOOK})[0]


def test_the_section(tmp_path):
    roles = {
        "mode": "role-based",
        "roles": [{"id": "1", "role": "admin"}, {"id": "2", "role": "viewer"}],
    }
    pairing = {"mode": "pairing", "pairing": {"code_expiry_minutes": 30, "max_pending": 10}}
    processing = {"max_message_length": 100, "rate_limit": {"messages_per_minute": 30}}
    telling = {"typing_indicator": True, "read_receipts": True}
    made = project(
        tmp_path,
        {
            "console": dict(CLI, processing=processing),
            "tick": dict(
                CRON, trigger={"schedule": "@daily", "max_parallel": 2, "overlap_policy": "queue"}
            ),
            "hook": dict(HOOK, access_control=pairing),
            "bot": dict(
                BOT,
                access_control=roles,
                processing=telling,
                features={"threads": True, "voice": False},
            ),
            "jobs": dict(
                JOBS, trigger={"queue_name": "t/+", "overlap_policy": "queue", "max_parallel": 3}
            ),
        },
        'time_zone = "Europe/Berlin"\n[cron]\nmissed = "all"\nmessages = { tick = "go" '
        '}\n[webhook]\naddress = "[::1]:80"\n'
        '[mqtt]\naddress = "mqtts://broker.lan"\nuser = "me"\nclient_id = "house"\n'
        'replies = { jobs = "said/+" }\n',
    )
    image = image_of(compiler.build(made).data, "test")
    assert image.section(CHANNELS) == [
        ["console", 0, [0, None], [100, 30, 30, False, False, False], [1, 0], None],
        [
            "tick",
            1,
            [0, None],
            [4096, None, None, False, False, False],
            [2, 1],
            [
                "@daily",
                [1, 1, 0xFFFFFFFE, 0x1FFE, 0x7F, False, False],
                "Europe/Berlin",
                2,
                "go",
                None,
                zone_changes.changes_of("Europe/Berlin", zone_changes.first_year()),
            ],
        ],
        [
            "hook",
            2,
            [2, [30, 10]],
            [4096, None, None, False, False, False],
            [1, 0],
            ["::1", 80, "SECRET"],
        ],
        [
            "bot",
            3,
            [3, [["1", 2], ["2", 0]]],
            [4096, None, None, True, True, True],
            [1, 0],
            ["https", "api.telegram.org", 443, "", "SECRET", 3600, True],
        ],
        [
            "jobs",
            4,
            [0, None],
            [4096, None, None, False, False, False],
            [3, 1],
            [True, "broker.lan", 8883, "me", "SECRET", "house-jobs", 1, False, "t/+", "said/+"]
            + [False],
        ],
    ]
    assert {"access", "cron", "webhook", "telegram", "mqtt"} <= set(
        image.requires
    ) and image.agent.max_message == 100


def test_a_plain_console_adds_nothing(tmp_path):
    image = image_of(
        compiler.build(
            project(tmp_path, {"console": dict(CLI, processing={"max_message_length": 9})})
        ).data,
        "test",
    )
    assert (
        image.size_of(CHANNELS) == 0
        and "access" not in image.requires
        and image.agent.max_message == 9
    )


@pytest.mark.parametrize(
    "spec, ability",
    [
        (HOOK, "webhook"),
        (BOT, "telegram"),
        (JOBS, "mqtt"),
        (dict(CLI, processing={"rate_limit": {"messages_per_minute": 1}}), "access"),
    ],
)
def test_boards_refuse_them_by_name(tmp_path, spec, ability):
    known = {board.name: board for board in boards.load_all(str(tmp_path))}
    made = project(tmp_path, {"it": spec})
    assert f"this needs {ability}, which pico-w does not have" in "".join(
        str(one) for one in board_fit.board_problems(made, known["pico-w"])
    )
    assert not board_fit.board_problems(made, known["rpi-4"])


def test_a_schedule_runs_on_boards(tmp_path):
    known = {board.name: board for board in boards.load_all(str(tmp_path))}
    rule = '\n[[rule]]\nname = "tick"\nevery = "1m"\ncall = "water"\n'
    made = project(
        tmp_path, {"tick": dict(CRON, trigger={"schedule": "@daily", "max_parallel": 2})}
    )
    assert not board_fit.board_problems(made, known["pico-w"])
    (note,) = [one for one in board_fit.notes(made, known["pico-w"]) if "tick" in one["message"]]
    assert "one after the other: max_parallel: 2 is without effect" in note["message"]
    assert note["file"].endswith("claw.yaml")
    path = tmp_path / "reflex.toml"
    path.write_text(path.read_text() + rule)
    (problem,) = board_fit.board_problems(manifest.load(tmp_path), known["pico-w"])
    assert 'a rule is called "tick", too' in str(problem)


def test_what_runs_when_nobody_answers_is_told_for_schedules(tmp_path):
    """CKP 5.8: default_if_timeout holds for the turns of a cron Channel, where nobody may be."""
    project(tmp_path, {"tick": CRON})
    path = tmp_path / "claw.yaml"
    text = path.read_text().replace(
        '"timeout_seconds": 60', '"timeout_seconds": 60, "default_if_timeout": "allow"'
    )
    path.write_text(text)
    loaded = manifest.load(tmp_path)
    compiler.build(loaded)
    warnings = [one["message"] for one in lint.find(loaded)["warnings"]]
    assert [one for one in warnings if "turns of tick" in one and "nobody answers" in one]


@pytest.mark.parametrize(
    "settings, wanted",
    [
        ('to = ["bot", "none"]', 'to[1]: nobody can be asked there, expected "bot", found "none"'),
        ('to = ["hook"]', 'to[0]: nobody can be asked there, expected "bot", found "hook"'),
        ('[approvals.notify]\nurl = "ntfy.sh/x"', "an http or https URL"),
        (
            '[approvals.notify]\nurl = "http://ntfy.lan/x"\ncredential = "A"',
            "a credential goes over https alone, or to this machine",
        ),
        ("[approvals.notify]\nlink = 5", "expected"),
        ('[approvals.notify]\nbody = "x"', "url"),
    ],
)
def test_settings_of_approvals_are_checked(tmp_path, settings, wanted):
    told = said(tmp_path / "p", {"bot": BOT, "hook": HOOK}, "[approvals]\n" + settings)
    assert len(told) <= 2 and wanted in "\n".join(told), told


def test_a_board_sends_no_notices(tmp_path):
    settings = '[approvals.notify]\nurl = "https://ntfy.sh/x"\n'
    made = project(tmp_path / "p", {"c": CLI}, settings)
    known = {board.name: board for board in boards.load_all(str(tmp_path))}
    told = "\n".join(map(str, board_fit.board_problems(made, known["pico-w"])))
    assert "pico-w sends no notices" in told
