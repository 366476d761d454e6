"""Logins of the page: who gets one, what it opens, and when it ends."""

import json
import re

import pytest
from pages import AGENT

from clawlite.host.page.logins import LASTS_S, MAX_OF_ONE, Logins
from clawlite.linux.secrets import people
from clawlite.protocols.secrets.people import Person


def _cookie(headers) -> dict:
    """Return the header of the cookie that an answer sets."""
    return {"Cookie": headers["Set-Cookie"].partition(";")[0]}


def test_a_login_works_without_scripts_and_ends(page, tokens):
    status, headers, body = page.ask("GET", "/")
    assert (status, headers["Location"]) == (303, "/login")
    _, _, body = page.ask("GET", "/login")
    assert b'<form method="post" action="/login">' in body and b"<script" not in body
    status, headers, _ = page.log_in(tokens["bea"])
    assert (status, headers["Location"]) == (303, "/")
    flags = headers["Set-Cookie"].split("; ")[1:]
    assert "HttpOnly" in flags and "SameSite=Strict" in flags and "Path=/" in flags
    cookie = _cookie(headers)
    status, _, body = page.ask("GET", "/", headers=cookie)
    assert status == 200 and b'src="/static/app.js"' in body
    said = json.loads(page.ask("GET", "/", headers={**cookie, "Accept": "application/json"})[2])
    assert said["person"] == "bea" and {row["role"] for row in said["agents"]} == {"user"}
    page.ask("POST", "/logout", headers={**cookie, "Origin": page.url})
    assert page.ask("GET", "/", headers=cookie)[0] == 303


def test_a_wrong_token_opens_nothing_and_is_not_repeated(page, tokens):
    for wrong in (
        "",
        "ada",
        "ada:",
        tokens["ada"][:-1],
        "ada" + tokens["bea"][3:],
        "é:ü",
        "x" * 9999,
    ):
        status, headers, body = page.log_in(wrong)
        assert status in (401, 413), wrong
        assert "Set-Cookie" not in headers and (len(wrong) < 6 or wrong.encode() not in body)


def test_a_login_makes_a_new_id_whatever_the_browser_had(page, tokens):
    """Session fixation: an id that somebody else has put there is never taken."""
    name = "claw"
    planted = {"Cookie": name + "=planted-by-somebody-else-0123456789abcdef"}
    _, headers, _ = page.log_in(tokens["ada"], headers=planted)
    first = _cookie(headers)
    assert first != planted and page.ask("GET", "/", headers=planted)[0] == 303
    _, headers, _ = page.log_in(tokens["ada"], headers=first)
    second = _cookie(headers)
    assert first != second
    assert page.ask("GET", "/", headers=first)[0] == 303  # the one before has ended
    assert page.ask("GET", "/", headers=second)[0] == 200


def test_who_is_removed_or_gets_another_role_has_no_login_any_more(page, tokens, state):
    _, headers, _ = page.log_in(tokens["bea"])
    cookie = _cookie(headers)
    _, digest = people.make_token("bea")
    people.add(str(state / AGENT), "bea", "admin", digest)
    assert page.ask("GET", "/", headers=cookie)[0] == 303
    _, headers, _ = page.log_in(tokens["ada"])
    cookie = _cookie(headers)
    people.remove(str(state / AGENT), "ada")
    assert page.ask("GET", "/", headers=cookie)[0] == 303
    assert page.log_in(tokens["ada"])[0] == 401


def test_one_token_opens_all_agents_that_know_it_and_no_other(page, state, tokens):
    token, digest = people.make_token("ann")
    for agent, role in (("barn", "viewer"), (AGENT, "admin")):
        people.add(str(state / agent), "ann", role, digest)
    people.add(str(state / "cellar"), "ann", "admin", people.make_token("ann")[1])
    headers = {"Authorization": "Bearer " + token, "Accept": "application/json"}
    _, _, body = page.ask("GET", "/", headers=headers)
    assert re.findall(rb'"agent": "(\w+)", "role": "(\w+)"', body) == [
        (b"barn", b"viewer"),
        (b"g", b"admin"),
    ]
    assert page.ask("POST", "/ckp/cellar", headers=headers, json={})[0] == 404


def test_wrong_tokens_are_slowed_down_for_each_address(page, tokens):
    codes = [page.log_in("ada:wrong")[0] for _ in range(12)]
    assert codes[:10] == [401] * 10 and codes[-1] == 429
    status, headers, _ = page.log_in(tokens["ada"])
    assert status == 429 and headers["Retry-After"] == "60"
    bearer = {"Authorization": "Bearer ada:wrong"}
    assert page.ask("POST", "/ckp/g", headers=bearer, json={})[0] == 429


class _Known:
    """The people of one agent."""

    def __init__(self):
        self.person = Person("ann", "user", "0" * 64, 0)

    def find(self, token):
        return {"g": self.person} if token == b"right" else {}

    def is_known(self, place, person):
        return person == self.person


def test_a_login_lasts_its_time_and_one_person_has_so_many():
    now = [0.0]
    logins = Logins(_Known(), lambda: now[0])
    ids = [logins.begin(b"right")[1] for _ in range(MAX_OF_ONE + 1)]
    assert [logins.find(id) is not None for id in ids] == [False] + [True] * MAX_OF_ONE
    now[0] = LASTS_S - 1
    assert logins.find(ids[-1])
    now[0] = LASTS_S
    assert logins.find(ids[-1]) is None


@pytest.mark.parametrize("left_s, count", [(0, 0), (5.9, 0), (6, 1), (600, 10)])
def test_attempts_come_back_with_time(left_s, count):
    now = [0.0]
    logins = Logins(_Known(), lambda: now[0])
    for _ in range(10):
        assert logins.may_try("10.0.0.1")
        logins.count_failure("10.0.0.1")
    now[0] = left_s
    assert logins.may_try("10.0.0.2")
    found = 0
    while logins.may_try("10.0.0.1"):
        logins.count_failure("10.0.0.1")
        found += 1
    assert found == count
