"""Servers that people install from npm, as they are released (pinned in the Makefile), in the
default sandbox: level process, and not one limit of a manifest (docs/sandbox.md, "Limits that a
manifest leaves out").
"""

import json

import mcp_agents
import mcp_clients
import pytest
from agents import Agent, linux, tool_call

from clawlite.host.builder.build import build_beside
from clawlite.host.image import image_reader

MODULES = mcp_clients.PLACE / "npm/node_modules"
# program -> (arguments, least number of tools, (tool, its arguments, what the result of a call
# has)).  Nothing has a network here, a key or a browser: a tool that needs one says so itself,
# which shows that its server runs.  MARKS is a folder that it may write to.
PIECE = {"category": "a", "value": 1}
CODE = {"code": "echo a fern", "languageId": "shellscript"}
THOUGHT = {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
SERVERS = {
    "mcp-server-everything": ([], 8, ("echo", {"message": "fern"}, "fern")),
    "mcp-server-filesystem": (["MARKS"], 10, ("list_allowed_directories", {}, "MARKS")),
    "mcp-server-memory": ([], 8, ("search_nodes", {"query": "fern"}, "entities")),
    "mcp-server-sequential-thinking": ([], 1, ("sequentialthinking", THOUGHT, "thoughtHistory")),
    "context7-mcp": ([], 2, ("resolve-library-id", {"query": "a", "libraryName": "fern"}, "fail")),
    "playwright-mcp": ([], 15, ("browser_close", {}, "chrome")),
    "chrome-devtools-mcp": ([], 15, ("list_pages", {}, "hrome")),
    "mcp-server-chart": ([], 15, ("generate_pie_chart", {"data": [PIECE]}, "fail")),
    "notion-mcp-server": ([], 10, ("API-get-self", {}, "ENOTFOUND")),
    "mcp": ([], 1, ("lint-files", {"filePaths": ["MARKS/none.js"]}, "none.js")),
    "mcp-server-code-runner": ([], 1, ("run-code", CODE, "a fern")),
    "exa-mcp-server": ([], 1, ("web_search_exa", {"query": "fern"}, "rror")),
}


# two threads of JavaScript: each makes 512 MB of addresses writable for its code, on x86-64
THREADS = """\
const { Worker } = require("worker_threads");
const lines = require("readline").createInterface({ input: process.stdin });
const workers = [1, 2].map(() => new Worker("setInterval(() => 0, 1000)", { eval: true }));
const up = Promise.all(workers.map((one) => new Promise((done) => one.on("online", done))));
const tools = [{ name: "count", inputSchema: { type: "object", properties: {} } }];
lines.on("line", async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  await up;
  const text = [{ type: "text", text: workers.length + " threads" }];
  const result = method === "initialize"
    ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} },
        serverInfo: { name: "threads", version: "1" } }
    : method === "tools/list" ? { tools } : method === "tools/call" ? { content: text } : null;
  const answer = result ? { result } : { error: { code: -32601, message: "no " + method } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
lines.on("close", () => process.exit(0));
"""


def test_a_server_has_threads_of_its_own(tmp_path):
    if not MODULES.exists():
        pytest.skip("no node from npm: make mcp")
    (tmp_path / "marks").mkdir(exist_ok=True)
    program = tmp_path / "marks" / "threads.js"
    program.write_text(THREADS)
    tool = mcp_agents.tool("count", "count", "t", str(mcp_clients.node()))
    folder = mcp_agents.write(tmp_path, level="process", tools=[tool], args=[str(program)])
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "ho"\n')
    image = build_beside(str(folder))
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        agent.line(json.dumps(tool_call("count", {}, 1)))
        assert "2 threads" in json.dumps(agent.message())


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_lists_its_tools_and_is_called(tmp_path, name):
    program = MODULES / ".bin" / name
    if not program.exists():
        pytest.skip("no %s from npm: make mcp" % name)
    args, least, call = SERVERS[name]
    marks = str(tmp_path / "marks")
    args = [str(program.resolve()), *(one.replace("MARKS", marks) for one in args)]
    tool = mcp_agents.tool("all", None, "t", str(mcp_clients.node()))
    folder = mcp_agents.write(tmp_path, level="process", tools=[tool], args=args)
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "hi"\nsay = "ho"\n')
    image = build_beside(str(folder))
    names = image_reader.open_image(image).names
    assert len(names) >= least
    theirs, arguments, expected = call
    arguments = json.loads(json.dumps(arguments).replace("MARKS", marks))
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        agent.line(json.dumps(tool_call("t__" + theirs, arguments, 1)))
        answer = agent.message()
        assert expected.replace("MARKS", marks) in json.dumps(answer.get("result")), answer
