"""TLS to the engines of swarms: real servers, with certificates of a CA that this process trusts by
SSL_CERT_FILE, or with others.
"""

from datetime import datetime, timedelta, timezone

import pytest
import trustme
from agents import eventually
from engines import SERVERS, Server
from net_servers import Certificates
from swarm_world import IDS, World, task

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm import replicated_bus

HERE = "127.0.0.1"  # what the client calls the server


class Redis(SERVERS["redis"]):
    def words(self) -> list:
        words = [*super().words(), "--port", "0", "--tls-port", str(self.port)]
        words += ["--tls-auth-clients", "no"]
        for name in ("cert", "key"):
            words += ["--tls-%s-file" % name, self.files[name]]
        return words

    def answers(self) -> bool:
        return Server.answers(self)


class NATS(SERVERS["nats"]):
    @property
    def more(self) -> str:
        return "tls { cert_file: %(cert)s, key_file: %(key)s }\n" % self.files


@pytest.fixture
def authority(tmp_path, monkeypatch):
    """The CA that clients trust."""
    return Certificates(tmp_path, monkeypatch).ca


@pytest.fixture(params=[Redis, NATS], ids=lambda one: one.name)
def made(request, tmp_path, authority, monkeypatch):
    """function(names, ca, dates) -> World whose server has a certificate for *names*."""
    files = {"cert": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}
    server, worlds = type("Server", (request.param,), {"files": files}), []
    monkeypatch.setitem(SERVERS, server.name, server)

    def world(*names, ca=authority, **dates):
        certificate = ca.issue_cert(*names, **dates)
        certificate.cert_chain_pems[0].write_to_path(files["cert"])
        certificate.private_key_pem.write_to_path(files["key"])
        worlds.append(World(server.name, tmp_path))
        _, *place = worlds[0].place
        worlds[0].place = (True, *place)
        return worlds[0]

    yield world
    for one in worlds:
        one.close()


def refusal(world, **more) -> ClawError:
    with pytest.raises(ClawError) as caught:
        world.bus("lead", 0, **more)
    assert "%s:%d cannot be used" % (HERE, world.server.port) in caught.value.message
    return caught.value


def test_a_task_goes_through_to_another_member(made):
    world = made(HERE)
    lead, hand = world.bus("lead", 0), world.bus("hand")
    assert world.done(lead.put(task()))
    assert world.take(hand).id == IDS[0]


YEAR = timedelta(365)
NOW = datetime.now(timezone.utc)
# what is wrong with a certificate -> (its names, more of it, the sentence, the next step)
WRONG = {
    "another host": (
        ["example.test"],
        {},
        "certificate is not for 127.0.0.1",
        "use the name that is in its certificate, or give it a certificate for 127.0.0.1",
    ),
    "an unknown CA": (
        [HERE],
        {"ca": trustme.CA()},
        "certificate of 127.0.0.1 is signed by nobody this machine knows (self-signed?)",
        "set SSL_CERT_FILE to the certificate of the CA that signed it",
    ),
    "the past": (
        [HERE],
        {"not_before": NOW - 2 * YEAR, "not_after": NOW - YEAR},
        "certificate of 127.0.0.1 has expired",
        "give it a new certificate",
    ),
    "the future": (
        [HERE],
        {"not_before": NOW + YEAR, "not_after": NOW + 2 * YEAR},
        "certificate of 127.0.0.1 is not valid yet (is this machine's clock right?)",
        "set this machine's clock",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_certificate_that_is_wrong_is_refused_with_the_next_step(made, what):
    names, more, sentence, hint = WRONG[what]
    error = refusal(made(*names, **more))
    assert error.message.endswith("cannot be used: " + sentence) and error.hint == hint


def test_redis_is_asked_to_look_at_the_host_name_whatever_its_default(monkeypatch):
    """Before 6.0 the default of the package is not to look."""
    import redis

    from clawlite.linux.swarm_engines.redis_engine import RedisEngine

    asked = {}

    def pool(**settings):
        asked.update(settings)
        raise ConnectionError("enough")

    monkeypatch.setattr(redis, "ConnectionPool", pool)
    engine = RedisEngine((True, HERE, 1, "", ""), "team", "p", "lead")
    engine.start()
    eventually(lambda: asked)
    engine.close()
    assert asked["connection_class"] is redis.SSLConnection
    assert (asked["ssl_cert_reqs"], asked["ssl_check_hostname"]) == ("required", True)


def test_a_nats_that_offers_no_tls_is_told_no_password(tmp_path, monkeypatch):
    """Else whoever sits between could take the offer out, and read the password."""
    more = "authorization { user: lead, password: right }\n"
    monkeypatch.setitem(SERVERS, "nats", type("NATS", (SERVERS["nats"],), {"more": more}))
    monkeypatch.setattr(replicated_bus, "SYNC_S", 5)  # that a command waits
    world = World("nats", tmp_path)
    try:
        _, *place, _ = world.place
        world.place = (True, *place, "lead")
        error = refusal(world, password="right")
        assert "it does not offer TLS, so it was told no password" in error.message
        assert "nats:// in [swarm] address" in error.hint
        world.place = (False, *place, "lead")
        world.bus("lead", 0, password="right")
    finally:
        world.close()
