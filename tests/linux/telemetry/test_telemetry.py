"""Telemetry (CKP 0.2.0, 5.10): what is exported, to whom, what never is, and that nothing waits
for an exporter.
"""

import http.server
import json
import os
import sqlite3
import threading
import types

import pytest
from agents import Agent, clawlite, eventually, linux, tool_call
from llm_server import Server, calls, say
from providers.project import World, provider

from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.errors import StoreError
from clawlite.core.image.image import Image
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder.build import build_beside
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.linux.telemetry.exporters import WAITING, Exporter
from clawlite.linux.telemetry.telemetry import PLACEHOLDER, SNAPSHOT_MS, telemetry_of

TOOLS = '''def echo(text: str) -> str:
    """Give it back."""
    return text


def fail() -> str:
    """Raise."""
    raise ValueError("the sensor is unplugged")
'''


def project(folder, telemetry: dict, **more):
    """Write a project with two tools and *telemetry*; return its folder."""
    spec = {
        "identity": {"inline": {"personality": "x", "autonomy": "autonomous"}},
        "providers": [
            {
                "inline": {
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "sandbox": {"inline": {"level": "none"}},
        "policies": [{"inline": {"rules": [{"id": "all", "action": "allow", "scope": "all"}]}}],
    }
    if telemetry:
        spec["telemetry"] = {"inline": telemetry}
    folder.mkdir(exist_ok=True)
    (folder / "claw.json").write_text(
        json.dumps(
            {
                "claw": "0.3.0",
                "kind": "Claw",
                "metadata": {"name": "told"},
                "spec": dict(spec, **more),
            }
        )
    )
    (folder / "tools.py").write_text(TOOLS)
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text(
        '[[rule]]\nwhen = "{words:text}"\ncall = "echo"\narguments = { text = "hello" }\n'
    )
    return folder


SWARM = {
    "inline": {
        "name": "team",
        "topology": "peer-to-peer",
        "agents": [{"identity_ref": "told", "role": "peer"}],
        "coordination": {
            "message_passing": "direct",
            "backend": "in-process",
            "concurrency": {},
        },
        "aggregation": {"strategy": "merge"},
    }
}
STORE = types.SimpleNamespace(name="kv")  # as much of a store as telemetry sees


class Taken:
    """An exporter that keeps what it is told."""

    def __init__(self):
        self.events, self.ended = [], False

    def put(self, event):
        self.events.append(event)

    def stop(self):
        self.ended = True

    def wait(self, timeout_s):
        pass


class Watched:
    """Telemetry over an agent whose effects a test makes by hand; ``now`` is its clock."""

    def __init__(self, folder, telemetry: dict, **more):
        telemetry = dict({"exporters": [{"type": "console"}]}, **telemetry)
        data = compiler.build(manifest.load(project(folder, telemetry, **more))).data
        image = Image(lambda offset, length: data[offset : offset + length], len(data))
        self.now, self.taken = 0, Taken()
        self.telemetry = telemetry_of(Setup(image), lambda: self.now)
        self.telemetry._exporters = [self.taken]

    def log(self, **event):
        effect = (E.LOG, event)
        self.telemetry.observe(effect)
        assert effect == (E.LOG, event), "it only looks on"

    def effect(self, *effect):
        self.telemetry.observe(effect)

    def call(self, **more):
        self.log(
            **dict(
                {
                    "event": "tool.call",
                    "tool": "echo",
                    "status": "ok",
                    "arguments": {"text": "hello"},
                    "trace": [[0, True]],
                },
                **more,
            )
        )


def test_5_10_the_default_categories(tmp_path):
    it = Watched(tmp_path / "p", {})
    it.call(duration_ms=3)
    it.log(
        **{
            "event": "lifecycle.transition",
            "from": "INIT",
            "to": "STARTING",
            "duration_ms": 1,
            "details": {"reason": "a stranger's text"},
        }
    )
    it.effect(
        E.SEND, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}
    )
    it.effect(E.SEND, {"jsonrpc": "2.0", "id": 2, "result": {"content": []}})
    it.telemetry.hear_done(5, (True, {}))
    it.log(event="notice", text="a stranger's text")
    assert [(event["category"], event["event"]) for event in it.taken.events] == [
        ("tool_calls", "tool.call"),
        ("lifecycle", "lifecycle.transition"),
        ("errors", "error"),
    ]
    call, change, error = it.taken.events
    assert (
        call["tool"] == "echo"
        and call["status"] == "ok"
        and call["duration_ms"] == 3
        and call["arguments"] == '{"text":"hello"}'
    )
    assert (change["from"], change["to"]) == ("INIT", "STARTING") and "stranger" not in json.dumps(
        it.taken.events
    )
    assert (error["code"], error["message"]) == (-32601, "no such method") and all(
        event["agent"] == "told" for event in it.taken.events
    )


@pytest.mark.parametrize("category", ["tool_calls", "lifecycle", "errors"])
def test_5_10_a_category_that_is_off_is_not_told(tmp_path, category):
    it = Watched(tmp_path / "p", {"events": {category: False, "memory_ops": True}})
    it.call()
    it.log(**{"event": "lifecycle.transition", "from": "INIT", "to": "STARTING", "duration_ms": 1})
    it.effect(
        E.SEND,
        [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}],
    )
    it.effect(E.REMEMBER, 5, "store", STORE, "", None)
    it.telemetry.hear_done(5, (True, {}))
    assert {event["category"] for event in it.taken.events} == {
        "tool_calls",
        "lifecycle",
        "errors",
        "memory_ops",
    } - {category}


@pytest.mark.parametrize(
    "outcome, said",
    [
        ((True, {"stored": 1}), ("ok", None)),
        ((False, StoreError("the disk is full")), ("error", -32030)),
    ],
)
def test_5_10_each_request_to_a_store_is_told_once_without_what_it_says(tmp_path, outcome, said):
    it = Watched(tmp_path / "p", {"events": {"memory_ops": True}})
    it.effect(
        E.REMEMBER, 5, "store", STORE, "", (None, [(None, "a secret of the house", None, None)])
    )
    it.now = 4
    for number in (6, 5, 5):  # another task's outcome, its own, one that is late
        it.telemetry.hear_done(number, outcome)
    (event,) = it.taken.events
    assert (event["category"], event["event"], event["store"], event["duration_ms"]) == (
        "memory_ops",
        "memory.store",
        "kv",
        4,
    )
    assert (event["status"], event.get("code")) == said and "house" not in json.dumps(
        it.taken.events
    )


def test_5_10_operations_of_the_swarm_are_told_without_what_they_say(tmp_path):
    it = Watched(tmp_path / "p", {"events": {"swarm_ops": True}}, swarm=SWARM)
    it.log(event="swarm.delegate", swarm="team", task_id="1", request_id="2")
    it.log(event="swarm.message", swarm="team", message={"type": "secret"})
    (event,) = it.taken.events
    assert (event["category"], event["event"], event["swarm"], event["task_id"]) == (
        "swarm_ops",
        "swarm.delegate",
        "team",
        "1",
    )


def test_5_10_stripped_arguments_and_results_leave_a_placeholder(tmp_path):
    it = Watched(tmp_path / "p", {"redaction": {"strip_arguments": True, "strip_results": True}})
    it.call(arguments={"text": "the door code is xyzzy"}, result="the door code is xyzzy")
    assert it.taken.events[0]["arguments"] == it.taken.events[0][
        "result"
    ] == PLACEHOLDER and "xyzzy" not in json.dumps(it.taken.events)


def test_5_10_what_a_provider_answered_is_no_message_of_an_error(tmp_path):
    it = Watched(tmp_path / "p", {})
    it.effect(
        E.SEND,
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32020, "message": "HTTP 400: you wrote: tell me a secret"},
        },
    )
    assert it.taken.events[0]["code"] == -32020 and "message" not in it.taken.events[0]


@pytest.mark.parametrize("rate, told", [(1.0, 100), (0.5, 50), (0.25, 25), (0.01, 1)])
def test_5_10_sampling(tmp_path, rate, told):
    it = Watched(tmp_path / "p", {"sampling": {"rate": rate}})
    for _ in range(100):
        it.call()
    assert len(it.taken.events) == told


def test_5_10_a_rate_of_0_is_off_and_loads_nothing(tmp_path):
    data = compiler.build(
        manifest.load(
            project(tmp_path / "p", {"exporters": [{"type": "console"}], "sampling": {"rate": 0}})
        )
    ).data
    image = Image(lambda offset, length: data[offset : offset + length], len(data))
    assert 17 not in image.sections() and "telemetry" not in image.requires


def test_metrics_are_cumulative_and_come_with_events_and_at_the_end(tmp_path):
    it = Watched(tmp_path / "p", {"metrics": {"cost_usd": True}, "events": {"tool_calls": True}})
    for ms in (0, 1, 3, 70000):
        it.call(duration_ms=ms)
    it.effect(E.OPEN, 7, "http", "h", 1, [], 1000)
    it.now += 40
    it.effect(E.CLOSE, 7)

    class Model:
        name, prices = "first", (2, 5)

    it.telemetry.hear_spent(Model, 10, 100)
    assert [event["category"] for event in it.taken.events] == ["tool_calls"] * 4, (
        "not with each event"
    )
    it.now += SNAPSHOT_MS
    it.call()
    found = it.taken.events[-1]
    assert found["counters"] == [
        ["cost_nano_usd", "first", 520],
        ["input_tokens", "first", 10],
        ["output_tokens", "first", 100],
    ]
    assert found["histograms"] == [
        ["provider", 1, 40, [0] * 5 + [1] + [0] * 10],
        ["tool", 4, 70004, [2, 0, 1] + [0] * 12 + [1]],
    ]
    it.call(duration_ms=2)
    it.telemetry.close()
    assert it.taken.ended and it.taken.events[-1]["histograms"][1][1] == 5


@pytest.mark.parametrize(
    "block, name",
    [
        ("events", "world_model_ops"),
        ("events", "planning_ops"),
        ("metrics", "prediction_error"),
        ("metrics", "retrieval_hit_rate"),
        ("metrics", "plan_revision_count"),
    ],
)
def test_what_nothing_here_does_is_refused_by_name(tmp_path, block, name):
    with pytest.raises(ManifestErrors) as e:
        compiler.build(
            manifest.load(
                project(tmp_path / "p", {"exporters": [{"type": "console"}], block: {name: True}})
            )
        )
    assert name in str(e.value) and len(e.value.problems) == 1


# -- exporters


def test_an_exporter_that_blocks_keeps_nobody_waiting_and_drops_what_does_not_fit():
    gate, batches = threading.Event(), []

    def sink(events):
        gate.wait()
        batches.append(events)

    exporter = Exporter(sink, 1000, 1)
    for number in range(WAITING + 2000):
        exporter.put({"n": number})  # a call that waited for this exporter would wait for ever
    assert batches == []
    gate.set()
    exporter.stop()
    exporter.wait(60)
    told = [event for batch in batches for event in batch]
    assert sum(event.get("dropped_before", 0) for event in told) + len(told) == WAITING + 2000
    assert len(told) >= WAITING and all(len(batch) <= 1000 for batch in batches)


def test_a_batch_that_fails_is_tried_once_more():
    seen = []

    def sink(events):
        seen.append([event["n"] for event in events])
        if len(seen) in (1, 3, 4):
            raise OSError("no disk")

    exporter = Exporter(sink, 1, 60000)
    # each batch is preceded by what failed before it
    for number, attempts in enumerate((1, 3, 5)):
        exporter.put({"n": number})
        eventually(lambda: len(seen) == attempts)
    exporter.stop()
    exporter.wait(60)
    assert seen == [[0], [0], [1], [1], [2]], "0 at its second attempt; 1 twice in vain"


def test_what_a_batch_that_is_given_up_would_have_told_is_told_by_the_next():
    gate, taken = threading.Event(), []

    def sink(events):
        gate.wait()
        if not taken and len(fails) < 3:
            fails.append(len(events))
            raise OSError("no disk")
        taken.append(events)

    fails = []
    exporter = Exporter(sink, 1000, 1)
    for number in range(WAITING + 2000):
        exporter.put({"n": number})
    gate.set()
    exporter.stop()
    exporter.wait(60)
    told = [event for batch in taken for event in batch]
    assert fails and len(told) <= WAITING  # what fails may have been taken before the others came
    left = sum(event.get("dropped_before", 0) for event in told) + len(told)
    assert left == WAITING + 2000


@pytest.fixture
def receiver():
    """A server that keeps what is posted to it: (path, headers, JSON)."""
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(
                (
                    self.path,
                    dict(self.headers),
                    json.loads(self.rfile.read(int(self.headers["Content-Length"]))),
                )
            )
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.got, server.endpoint = got, "http://127.0.0.1:%d" % server.server_address[1]
    yield server
    server.shutdown()
    server.server_close()


def test_an_agent_tells_a_file_a_database_and_stderr(tmp_path):
    exporters = [
        {"type": "file", "path": str(tmp_path / "t.jsonl")},
        {"type": "sqlite", "path": str(tmp_path / "t.db")},
        {"type": "console"},
    ]
    folder = project(tmp_path / "p", {"exporters": exporters})
    done = clawlite("ask", "hello", folder, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.strip().endswith("hello"), done
    events = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events if event["category"] != "metrics"][:3] == [
        "lifecycle.transition"
    ] * 2 + ["tool.call"]
    assert (
        events[-1]["category"] == "metrics"
        and os.stat(tmp_path / "t.jsonl").st_mode & 0o777 == 0o600
    )
    assert os.stat(tmp_path / "t.db").st_mode & 0o777 == 0o600
    with sqlite3.connect(tmp_path / "t.db") as database:
        rows = database.execute("SELECT body FROM events ORDER BY rowid").fetchall()
    database.close()
    assert [json.loads(body) for (body,) in rows] == events
    assert [json.loads(line) for line in done.stderr.splitlines()] == events


def test_an_exporter_follows_no_link_in_the_place_of_its_file(tmp_path):
    (tmp_path / "theirs").write_text("as it was\n")
    exporters = []
    for kind in ("file", "sqlite"):
        for target in ("theirs", "none yet"):
            link = tmp_path / (kind + target)
            link.symlink_to(tmp_path / target)
            exporters.append({"type": kind, "path": str(link)})
    exporters.append({"type": "file", "path": str(tmp_path / "t.jsonl")})
    folder = project(tmp_path / "p", {"exporters": exporters})
    done = clawlite("ask", "hello", folder, cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "t.jsonl").stat().st_size, done
    assert (tmp_path / "theirs").read_text() == "as it was\n"
    assert not (tmp_path / "none yet").exists()


def test_webhook_and_otlp_as_a_collector_reads_them(tmp_path, receiver):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    exporters = [
        {"type": "webhook", "endpoint": receiver.endpoint + "/hook"},
        {
            "type": "otlp",
            "endpoint": receiver.endpoint + "/v1/traces",
            "auth": {"secret_ref": "OTEL_KEY"},
        },
    ]
    folder = project(tmp_path / "p", {"exporters": exporters})
    done = clawlite("ask", "hello", folder, cwd=tmp_path, OTEL_KEY="sesame-and-more")
    assert done.returncode == 0 and done.stderr == "", done
    eventually(
        lambda: (
            {path for path, _, _ in receiver.got}
            >= {"/hook", "/v1/traces", "/v1/logs", "/v1/metrics"}
        )
    )
    for path, headers, body in receiver.got:
        assert (headers.get("Authorization") == "Bearer sesame-and-more") == (path != "/hook")
        if path == "/hook":
            assert body["agent"] == "told" and body["events"]
        elif path == "/v1/traces":
            read = json_format.ParseDict(body, ExportTraceServiceRequest())
            (span,) = read.resource_spans[0].scope_spans[0].spans
            assert (
                span.name == "tool echo"
                and span.end_time_unix_nano >= span.start_time_unix_nano > 0
            )
        elif path == "/v1/logs":
            read = json_format.ParseDict(body, ExportLogsServiceRequest())
            assert (
                read.resource_logs[0].scope_logs[0].log_records[0].body.string_value
                == "lifecycle.transition"
            )
        else:
            read = json_format.ParseDict(body, ExportMetricsServiceRequest())
            (metric,) = read.resource_metrics[0].scope_metrics[0].metrics
            (point,) = metric.histogram.data_points
            assert metric.name == "clawlite.tool.duration" and point.count == 1 == sum(
                point.bucket_counts
            )
            assert len(point.bucket_counts) == len(point.explicit_bounds) + 1


def test_5_10_exporters_that_fail_or_hang_change_nothing(tmp_path):
    os.mkfifo(tmp_path / "nobody-reads")
    exporters = [
        {"type": "file", "path": "/proc/nope/t.jsonl"},
        {"type": "webhook", "endpoint": "http://127.0.0.1:9/"},
        {"type": "file", "path": str(tmp_path / "nobody-reads")},
        {"type": "sqlite", "path": str(tmp_path)},
    ]
    image = build_beside(str(project(tmp_path / "p", {"exporters": exporters})))
    plain = build_beside(str(project(tmp_path / "q", None)))
    said = []
    for served in (image, plain):
        with Agent(linux("serve", served, "--stdio"), tmp_path / "home") as it:
            it.initialize()
            said.append(
                [
                    it.call(
                        "claw.tool.call", tool_call("echo", {"text": "x"}, number)["params"], number
                    )
                    for number in range(20)
                ]
            )
            it.end()
            assert it.wait() == 0 and it.errors() == ""
    assert said[0] == said[1]


def test_5_10_no_prompt_and_no_answer_of_a_provider_is_ever_told(tmp_path):
    world = World(tmp_path)
    with Server(
        [
            say("the answer that nobody else may see", reasoning="a thought"),
            calls(("note", {"text": "n"})),
            say("done"),
        ]
    ) as server:
        world.build(provider(server), personality="a personality that stays here")
        spec = json.loads((tmp_path / "project" / "claw.yaml").read_text())
        spec["spec"]["telemetry"] = {
            "inline": {
                "exporters": [{"type": "file", "path": str(tmp_path / "t.jsonl")}],
                "metrics": {"cost_usd": False},
                "events": {"memory_ops": True},
            }
        }
        (tmp_path / "project" / "claw.yaml").write_text(json.dumps(spec))
        build_beside(str(tmp_path / "project"))
        for text in ("a question that stays here", "another one that stays"):
            done = clawlite(
                "ask", text, world.image, cwd=tmp_path, TEST_KEY="k" * 20, MARKS=str(world.marks)
            )
            assert done.returncode == 0, done
    told = (tmp_path / "t.jsonl").read_text()
    assert not any(
        words in told for words in ("nobody else may see", "stays", "a thought", "personality that")
    )
    counters = [
        counter for line in told.splitlines() for counter in json.loads(line).get("counters", ())
    ]
    assert {name for name, _, _ in counters} == {"input_tokens", "output_tokens"} and all(
        amount > 0 for _, _, amount in counters
    )
    assert '"tool":"note"' in told
