"""The Swarm of a manifest: what is compiled, and what is refused by field."""

import copy
import json

import pytest

from clawlite.core.image.image import SWARM, Image
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build
from clawlite.host.cli import ui
from clawlite.host.compiler import compiler
from clawlite.host.fit import heap
from clawlite.host.manifest import manifest
from clawlite.host.providers import provider_order
from clawlite.host.swarm.feature import STRATEGIES, TOPOLOGIES
from clawlite.protocols.swarm.swarm import LEADER_WORKER, PEER_TO_PEER, Swarm

REFLEX = {
    "protocol": "custom",
    "endpoint": "builtin:reflex",
    "model": "m",
    "auth": {"type": "none"},
}
TEAM = {
    "name": "team",
    "topology": "leader-worker",
    "agents": [
        {"identity_ref": "lead", "role": "leader"},
        {"identity_ref": "claw://local/identity/hand", "role": "worker", "count": 3},
    ],
    "coordination": {
        "message_passing": "queue",
        "backend": "sqlite-wal",
        "concurrency": {"max_parallel": 5},
    },
    "aggregation": {"strategy": "leader-decides"},
}


def team(**changes) -> dict:
    """Return the Swarm with other values at paths: ``coordination__backend="redis"``."""
    made = copy.deepcopy(TEAM)
    for path, value in changes.items():
        *folders, name = path.split("__")
        place = made
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = value
    return made


def tree(*roles) -> list:
    """Return agents with *roles*, the first of them the one that is built."""
    names = ["lead", "hand", "eye"]
    return [{"identity_ref": name, "role": role} for name, role in zip(names, roles)]


def built(
    folder, swarm: dict, identity: str = "lead", at_use: bool = False, toml: str = "", **more
) -> Image:
    spec = {
        "identity": {"inline": {"name": identity, "personality": "x"}},
        "providers": [{"inline": REFLEX}],
        "swarm": {"inline": swarm},
        **more,
    }
    document = {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "t"}, "spec": spec}
    (folder / "claw.json").write_text(json.dumps(document))
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + toml)
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "Hello."\n')
    data = compiler.build(manifest.load(folder), at_use=at_use).data
    return Image(lambda offset, length: data[offset : offset + length], len(data))


def compiled(folder, swarm: dict, *more) -> Swarm:
    image = built(folder, swarm, *more)
    assert "swarm" in image.requires
    return Swarm(image.section(SWARM))


def refusals(folder, swarm: dict, *more) -> str:
    with pytest.raises(ManifestErrors) as caught:
        built(folder, swarm, *more)
    return "\n".join(problem.text() for problem in caught.value.problems)


def test_what_an_agent_knows_of_its_swarm(tmp_path):
    one = compiled(tmp_path, TEAM)
    assert (one.name, one.topology, one.is_shared, one.max_parallel) == (
        "team",
        LEADER_WORKER,
        True,
        5,
    )
    assert (one.at_once, one.timeout_ms, one.retries, one.keeps_dead) == (1, None, 2, True)
    assert one.own.identity == "lead" and one.leads
    hand = one.members[1]
    assert (hand.identity, hand.uri, hand.role, hand.count) == (
        "hand",
        "claw://local/identity/hand",
        "worker",
        3,
    )
    assert not compiled(tmp_path, TEAM, "hand").leads


def test_5_9_what_becomes_of_tasks(tmp_path):
    one = compiled(
        tmp_path,
        team(
            aggregation__timeout_ms=9000,
            failure={"retry_per_agent": 0, "dead_letter": {"enabled": False, "max_retries": 7}},
            coordination__concurrency={"sequential_within_agent": False},
        ),
    )
    assert (one.timeout_ms, one.keeps_dead, one.at_once) == (9000, False, 4)
    assert one.retries == [7, 0, ["hand"]]  # in all, with one agent, and who may do it
    assert compiled(tmp_path, team(failure={"retry_per_agent": 3})).retries == 3
    assert compiled(tmp_path, team(failure={"dead_letter": {"max_retries": 7}})).retries == 7


def test_an_agent_that_is_alone_in_its_process_leads_nobody(tmp_path):
    one = compiled(tmp_path, team(coordination__backend="in-process"))
    assert not one.is_shared and not one.leads


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"topology": "pipeline"}, 'topology "pipeline" has no strategy "leader-decides"'),
        (
            {"topology": "peer-to-peer"},
            'topology "peer-to-peer" has no strategy "leader-decides", expected "merge" or',
        ),
        (
            {"coordination__message_passing": "shared-memory"},
            "no store of the Memory is shared by the swarm's agents",
        ),
        (
            {"aggregation__timeout_ms": 0},
            "aggregation.timeout_ms: no task ends within 0 ms",
        ),
        (
            {"resource_limits": {"max_duration_ms": 0}},
            "max_duration_ms: no task ends within 0 ms",
        ),
        ({"topology": "broadcast"}, "0 agents have the role source"),
        ({"topology": "hierarchical"}, "0 agents have the role root"),
        ({"topology": "hierarchical", "agents": tree("root", "a/b")}, 'the role "a/b" is below no'),
        (
            {"topology": "hierarchical", "agents": tree("root", "root/")},
            'agents[1].role: the role "root/" is below no',
        ),
        (
            {
                "topology": "pipeline",
                "aggregation__strategy": "chain",
                "coordination__message_passing": "event-bus",
            },
            "a pipeline hands each result to the next agent alone",
        ),
        (
            {
                "topology": "pipeline",
                "aggregation__strategy": "chain",
                "agents": TEAM["agents"][:1],
            },
            "a pipeline of one agent",
        ),
        ({"agents": TEAM["agents"][1:]}, "the agent of this manifest, lead, is not in its swarm"),
        ({"agents": TEAM["agents"][:1]}, "a leader without another agent"),
        ({"agents": TEAM["agents"] + TEAM["agents"][:1]}, "lead is in this swarm already"),
        (
            {"agents": [{"identity_ref": name, "role": "worker"} for name in ("lead", "b")]},
            "0 agents have the role leader",
        ),
        (
            {"agents": [dict(TEAM["agents"][0], provider_ref="fast"), TEAM["agents"][1]]},
            "provider_ref: an agent asks its providers in their order",
        ),
    ],
)
def test_what_is_not_built_or_does_not_fit_is_refused_by_field(tmp_path, changes, said):
    """An operator's agent over it answers -32601, and has no such section."""
    assert said in refusals(tmp_path, team(**changes))
    image = built(tmp_path, team(**changes), at_use=True)
    assert image.size_of(SWARM) == 0 and "swarm" not in image.requires


@pytest.mark.parametrize(
    "path, values",
    [
        ("topology", TOPOLOGIES),
        ("coordination__message_passing", ("queue", "shared-memory", "event-bus", "direct")),
        ("coordination__backend", ("sqlite-wal", "redis", "nats", "in-process")),
        ("aggregation__strategy", STRATEGIES),
    ],
)
def test_5_9_a_field_has_one_of_its_values(tmp_path, path, values):
    said = refusals(tmp_path, team(**{path: "another"}))
    assert path.rpartition("__")[2] in said and '"another"' in said
    assert all(value in said for value in values), said


def test_the_swarm_of_the_specification_is_one(tmp_path):
    """Section 5.9's example: of its agents one has this manifest, the others and one of their
    providers are in none that this build can see.
    """
    ref = {"high": {"provider_ref": "high-quality-llm"}, "fast": {"provider_ref": "fast-llm"}}
    limits = {"max_total_tokens": 1000000, "max_total_cost_usd": 5.0, "max_duration_ms": 1800000}
    example = {
        "topology": "leader-worker",
        "agents": [
            {"identity_ref": "lead-analyst", "role": "leader", "count": 1, **ref["high"]},
            {"identity_ref": "data-collector", "role": "worker", "count": 3, **ref["fast"]},
            {"identity_ref": "fact-checker", "role": "worker", "count": 1, **ref["high"]},
        ],
        "coordination": {
            "message_passing": "queue",
            "backend": "sqlite-wal",
            "concurrency": {"max_parallel": 4, "sequential_within_agent": True},
        },
        "aggregation": {
            "strategy": "leader-decides",
            "cost_aware": True,
            "timeout_ms": 600000,
        },
        "failure": {
            "retry_per_agent": 2,
            "dead_letter": {"enabled": True, "max_retries": 5},
            "circuit_breaker": {"failure_threshold": 3, "reset_timeout_ms": 60000},
        },
        "resource_limits": limits,
    }
    (tmp_path / "swarm.json").write_text(
        json.dumps(
            {
                "claw": "0.3.0",
                "kind": "Swarm",
                "metadata": {"name": "analysis-team", "version": "1.0.0"},
                "spec": example,
            }
        )
    )
    spec = {
        "identity": {"inline": {"name": "lead-analyst", "personality": "x"}},
        "providers": [{"inline": dict(REFLEX, name="high-quality-llm")}],
        "swarm": "./swarm.json",
    }
    document = {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "t"}, "spec": spec}
    (tmp_path / "claw.json").write_text(json.dumps(document))
    (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (tmp_path / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "Hello."\n')
    data = compiler.build(manifest.load(tmp_path)).data
    image = Image(lambda offset, length: data[offset : offset + length], len(data))
    made = Swarm(image.section(SWARM))
    assert made.name == "analysis-team" and made.topology == LEADER_WORKER


def test_peers_need_no_leader(tmp_path):
    peers = [{"identity_ref": name, "role": "peer"} for name in ("lead", "hand")]
    changes = {"topology": "peer-to-peer", "agents": peers, "aggregation": {"strategy": "merge"}}
    one = compiled(tmp_path, team(**changes))
    assert one.topology == PEER_TO_PEER and not one.leads


def test_5_9_every_topology_and_what_goes_with_it(tmp_path):
    for topology, roles, strategy in (
        ("pipeline", ("read", "write"), "chain"),
        ("broadcast", ("source", "ear"), "merge"),
        ("hierarchical", ("root", "root/a", "root/a/b"), "leader-decides"),
        ("leader-worker", ("leader", "worker"), "best-of-n"),
        ("peer-to-peer", ("peer", "peer"), "majority-vote"),
    ):
        changes = {"topology": topology, "agents": tree(*roles), "aggregation__strategy": strategy}
        one = compiled(tmp_path, team(**changes))
        assert TOPOLOGIES[one.topology] == topology and STRATEGIES[one.strategy] == strategy
        assert one.to_all == (strategy in ("chain", "best-of-n", "majority-vote"))
    assert compiled(tmp_path, team(coordination__message_passing="event-bus")).to_all


def test_5_9_limits_of_a_task_and_pauses_after_failures(tmp_path):
    one = compiled(
        tmp_path,
        team(
            resource_limits={
                "max_total_tokens": 900,
                "max_total_cost_usd": 0.5,
                "max_duration_ms": 700,
            },
            aggregation__timeout_ms=9000,
            failure={"circuit_breaker": {"failure_threshold": 4}},
        ),
    )
    assert (one.most_tokens, one.most_nano, one.timeout_ms) == (900, 500000000, 700)
    assert one.breaker == [4, 60000]
    one = compiled(tmp_path, TEAM)
    assert (one.most_tokens, one.most_nano, one.timeout_ms, one.breaker) == (None,) * 4


def remote(name: str, **more) -> dict:
    auth = {"type": "none"}
    return dict(
        {
            "name": name,
            "protocol": "openai-compatible",
            "endpoint": "http://127.0.0.1:9/v1",
            "model": name,
            "auth": auth,
        },
        **more,
    )


def with_prices(folder, swarm: dict, prices: str, gateway: bool = False):
    """Return the manifest of an agent that asks the models dear, cheap, and rules."""
    dear = remote("dear", fallback=[{"provider_ref": "rules"}, {"provider_ref": "cheap"}])
    spec = {
        "identity": {"inline": {"name": "lead", "personality": "x"}},
        "providers": [
            {"inline": one} for one in (dear, dict(REFLEX, name="rules"), remote("cheap"))
        ],
        "swarm": {"inline": swarm},
    }
    document = {"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "t"}, "spec": spec}
    (folder / "claw.json").write_text(json.dumps(document))
    text = 'reflex = "reflex.toml"\n' + ("[gateway]\n" if gateway else "") + prices
    (folder / "clawlite.toml").write_text(text)
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "Hello."\n')
    return manifest.load(folder)


PRICES = "[prices.dear]\ninput = 3\noutput = 9\n[prices.cheap]\ninput = 1\noutput = 2\n"


def test_5_9_cost_aware_asks_the_cheapest_first_and_keeps_the_place_of_rules(tmp_path):
    asked = lambda swarm: [
        one.name for one in provider_order.providers(with_prices(tmp_path, swarm, PRICES))
    ]
    assert asked(TEAM) == ["dear", "rules", "cheap"]
    assert asked(team(aggregation__cost_aware=True)) == ["cheap", "rules", "dear"]


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"aggregation__cost_aware": True}, "cost_aware asks it last"),
        ({"resource_limits": {"max_total_cost_usd": 1}}, "max_total_cost_usd does not count it"),
    ],
)
def test_prices_that_nobody_knows_are_a_warning(tmp_path, changes, said):
    made = with_prices(tmp_path, team(**changes), "")
    compiler.build(made)
    told = "\n".join(message for _, message in made.notes)
    assert 'nobody knows what "dear" costs, so ' + said in told and '[prices."dear"]' in told


def test_limits_behind_a_gateway_are_refused(tmp_path):
    limits = {"resource_limits": {"max_total_tokens": 9}}
    with pytest.raises(ManifestErrors, match="a gateway asks the providers"):
        compiler.build(with_prices(tmp_path, team(**limits), PRICES, True))


def test_no_member_has_the_name_of_persons_at_an_engine(tmp_path):
    for backend in ("redis", "nats"):
        named = team(coordination__backend=backend)
        named["agents"][1]["identity_ref"] = "operator"
        with pytest.raises(
            ManifestErrors, match="operator is reserved for the commands of a person"
        ):
            built(tmp_path, named)
    named["coordination"]["backend"] = "sqlite-wal"
    assert compiled(tmp_path, named).members[1].identity == "operator"


def test_a_board_is_in_a_swarm_through_a_gateway_alone(tmp_path):
    def refused(more: str, backend: str = "sqlite-wal", tools=()) -> str:
        built(tmp_path, team(coordination__backend=backend))
        if tools:
            document = json.loads((tmp_path / "claw.json").read_text())
            document["spec"].update(tools=list(tools))
            (tmp_path / "claw.json").write_text(json.dumps(document))
        (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + more)
        with pytest.raises(ManifestErrors) as caught:
            build.build(str(tmp_path), board="pico")
        return "\n".join(problem.text() for problem in caught.value.problems)

    assert "pico is in a swarm through its gateway" in refused("")
    assert "add [gateway] to clawlite.toml" in refused("")
    told = refused("[gateway]\n", "in-process")
    assert "coordination.backend" in told and "no gateway can speak for one process alone" in told
    told = refused('[gateway]\nobeys_stop_of = "team"\n')
    assert "obeys_stop_of: a member of a swarm obeys the stop of that one - remove it" in told
    told = refused("[gateway]\n", tools=["claw://registry/clawlite/delegate@1.0.0"])
    assert "this needs delegate, which pico does not have" in told
    built(tmp_path, TEAM)
    assert "pico" not in build.build(str(tmp_path))["fits"]
    (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n[gateway]\n')
    assert "pico" in build.build(str(tmp_path))["fits"]


@pytest.mark.parametrize("is_member", [True, False])
def test_build_says_what_the_swarm_costs_a_board(tmp_path, capsys, is_member):
    """As it was measured (``board_sizes.json``)."""
    built(tmp_path, TEAM)
    if not is_member:
        document = json.loads((tmp_path / "claw.json").read_text())
        del document["spec"]["swarm"]
        (tmp_path / "claw.json").write_text(json.dumps(document))
    toml = 'reflex = "reflex.toml"\n' + "[gateway]\n" * is_member
    (tmp_path / "clawlite.toml").write_text(toml)
    found = build.build(str(tmp_path), board="pico-w")
    sizes = heap.sizes()["32"]
    client = sum(sizes[part] for part in ("swarmmember", "swarmstop")) if is_member else 0
    assert found["swarm_bytes"] == client
    ui.show_build(found)
    line = "  for its swarm: about %d of the bytes that are held\n" % client
    assert (line in capsys.readouterr().out) is is_member


def engine(folder, swarm: dict, said: str):
    """Return the record of the engine of a *swarm*, whose clawlite.toml says more."""
    built(folder, swarm)
    with open(folder / "clawlite.toml", "a") as file:
        file.write(said)
    data = compiler.build(manifest.load(folder)).data
    image = Image(lambda offset, length: data[offset : offset + length], len(data))
    return Swarm(image.section(SWARM)).engine


ON_REDIS = team(coordination__backend="redis")
ON_NATS = team(coordination__backend="nats")
DOTTED = dict(ON_NATS, agents=[*TEAM["agents"], {"identity_ref": "other.hand", "role": "worker"}])


def test_where_an_engine_is_and_who_speaks_to_it(tmp_path):
    assert compiled(tmp_path, TEAM).engine is None
    assert compiled(tmp_path, ON_REDIS).engine == [0, False, "127.0.0.1", 6379, "", "", ""]
    said = '[swarm]\naddress = "rediss://host.example:7000"\nuser = "lead"\ncredential = "pass"\n'
    found = engine(tmp_path, ON_REDIS, said)
    assert found == [0, True, "host.example", 7000, "lead", "pass", ""]
    said = '[swarm]\noperator_credential = "persons"\n'
    found = engine(tmp_path, ON_NATS, said)
    assert found == [1, False, "127.0.0.1", 4222, "", "", "persons"]


@pytest.mark.parametrize(
    "swarm, said, told",
    [
        (ON_REDIS, 'address = "http://host"', "redis://"),
        (ON_REDIS, 'address = "redis://me:word@host"', "redis://"),
        (ON_REDIS, 'address = "redis://host:0"', "redis://"),
        (
            ON_REDIS,
            'address = "redis://host"\ncredential = "p"',
            "its password would be sent unencrypted",
        ),
        (TEAM, 'address = "redis://host"', "no engine"),
        (
            ON_NATS,
            'address = "nats://host"\noperator_credential = "p"',
            "its password would be sent unencrypted",
        ),
        (ON_REDIS, 'operator_credential = "p"', "redis does not know who wrote an entry"),
        (ON_NATS, 'transport = "mqtt"', "the backend nats speaks to a NATS server"),
        (ON_NATS, 'address = "mqtt://host"', "redis://"),
        (ON_NATS, "board = true", "a board is in a swarm through its gateway"),
    ],
)
def test_an_engine_that_does_not_fit_is_refused_by_field(tmp_path, swarm, said, told):
    with pytest.raises(ManifestErrors) as caught:
        engine(tmp_path, swarm, "[swarm]\n" + said + "\n")
    text = "\n".join(problem.text() for problem in caught.value.problems)
    assert told in text and "swarm" in text


# -- a store that all agents share

SHARED = {"coordination__message_passing": "shared-memory"}


PEERS_ON_NATS = {
    "coordination__backend": "nats",
    "topology": "peer-to-peer",
    "aggregation__strategy": "merge",
}
FAR_LEAD = '[swarm.remote.lead]\nurl = "https://far.example/a2a"\ncredential = "t"\n'


def memory(**store) -> dict:
    stores = [
        {"name": "own", "type": "key-value"},
        {"name": "team-notes", "type": "key-value", "isolation": "shared", **store},
    ]
    return {"inline": {"name": "m", "stores": stores}}


@pytest.mark.parametrize("backend", ["sqlite-wal", "in-process", "redis", "nats"])
def test_which_stores_are_shared(tmp_path, backend):
    swarm = team(**SHARED, coordination__backend=backend)
    image = built(tmp_path, swarm, memory=memory())
    assert Swarm(image.section(SWARM)).shares == ["team-notes"]
    image = built(tmp_path, TEAM, memory=memory())
    assert Swarm(image.section(SWARM)).shares == [], "only where message_passing says so"


@pytest.mark.parametrize(
    "changes, store, toml, why",
    [
        ({}, {"type": "workspace"}, "", "team-notes lies in files"),
        ({}, {"type": "conversation", "backend": "filesystem"}, "", "team-notes lies in files"),
        ({}, {"encryption": True}, '[memory]\nencryption = "key"\n', "is encrypted, with a key"),
        ({}, {}, '[memory]\nwear_saving = ["team-notes"]\n', "has a journal of one agent"),
        ({}, {}, "[gateway]\n", "a board keeps its stores to itself"),
    ],
)
def test_a_store_that_cannot_be_shared_is_refused(tmp_path, changes, store, toml, why):
    with pytest.raises(ManifestErrors) as caught:
        built(tmp_path, team(**SHARED, **changes), toml=toml, memory=memory(**store))
    said = "\n".join(problem.text() for problem in caught.value.problems)
    assert why in said.replace('"team-notes"', "team-notes"), said


# -- members that are remote agents

REMOTE = '[swarm.remote.%s]\nurl = "%s"\n'


def far(folder, toml: str, swarm=TEAM) -> Swarm:
    return Swarm(built(folder, swarm, toml=toml).section(SWARM))


def test_where_a_remote_agent_is(tmp_path):
    toml = REMOTE % ("hand", "https://far.example/a2a") + 'credential = "far-token"\n'
    lead, hand = far(tmp_path, toml).members
    assert lead.remote is None
    assert hand.remote == [True, "far.example", 443, "/a2a", "far-token", ""]
    nats = team(coordination__backend="nats")
    toml += 'engine_credential = "far-at-engine"\n'
    assert far(tmp_path, toml, nats).members[1].remote[-1] == "far-at-engine"
    plain = REMOTE % ("hand", "http://127.0.0.1:8090") + 'credential = "t"\n'
    assert far(tmp_path, plain).members[1].remote == [False, "127.0.0.1", 8090, "/", "t", ""]


@pytest.mark.parametrize(
    "toml, swarm, why",
    [
        (REMOTE % ("who", "https://a.example"), TEAM, "swarm.remote.who: is no member of the"),
        (REMOTE % ("lead", "https://a.example"), TEAM, "lead: is the agent of this manifest"),
        (REMOTE % ("hand", "ftp://a.example"), TEAM, "expected a URL that begins with http://"),
        (
            REMOTE % ("hand", "http://a.example") + 'credential = "t"',
            TEAM,
            "swarm.remote.hand.credential: its password would be sent unencrypted",
        ),
        (
            REMOTE % ("hand", "https://a.example"),
            team(coordination__backend="in-process"),
            "a remote agent is spoken for by a process of its own",
        ),
        (
            REMOTE % ("hand", "https://a.example") + 'engine_credential = "t"',
            TEAM,
            "sqlite-wal has no login for each identity",
        ),
        (
            REMOTE % ("hand", "https://a.example"),
            team(resource_limits__max_total_tokens=100),
            "nobody counts what a remote agent uses",
        ),
        (
            REMOTE % ("hand", "https://a.example"),
            team(topology="hierarchical", agents=tree("root", "root/a", "root/a/b")),
            "a remote agent does tasks, and divides none",
        ),
        ("[swarm]\nplain = true\n", TEAM, 'backend "sqlite-wal" has no engine to be found'),
    ],
)
def test_a_remote_agent_that_cannot_be_one_is_refused(tmp_path, toml, swarm, why):
    with pytest.raises(ManifestErrors) as caught:
        built(tmp_path, swarm, toml=toml)
    assert why in "\n".join(problem.text() for problem in caught.value.problems)
