// Who is there of the swarm, and what became of its tasks.

import { empty, follow } from "./app.js";
import { h, tag, when } from "./dom.js";
import { T } from "./text.js";

const KINDS = {
  ready: "",
  busy: "wait",
  unavailable: "off",
  completed: "",
  failed: "off",
  dead: "off",
  running: "wait",
  waiting: "wait",
};

export function open(app) {
  async function show(agent) {
    const said = await agent.try_ask("claw.swarm.list");
    return said ? draw(said) : [empty(T.no_swarm, T.no_swarm_next)];
  }

  function draw(said) {
    const stopped = said.stopped
      ? [
          h(
            "section",
            { class: "card ask" },
            h("h2", {}, T.swarm_stopped),
            h("p", { class: "soft" }, T.by(said.stopped.by).trim(), " ", when(said.stopped.time)),
          ),
        ]
      : [];
    return [
      ...stopped,
      h(
        "section",
        { class: "card", "aria-label": T.members },
        h("h2", {}, said.swarm),
        h(
          "ul",
          { class: "plain" },
          said.members.map((one) =>
            h(
              "li",
              { class: "row" },
              h("span", {}, one.identity, " ", h("small", {}, T.member(one.role, one.processes))),
              tag(T.peers[one.status] || one.status, KINDS[one.status]),
            ),
          ),
        ),
      ),
      said.differs.length ? h("p", { class: "problem" }, T.differs(said.differs.join(", "))) : null,
      h(
        "section",
        { class: "card", "aria-label": T.tasks },
        h("h2", {}, T.tasks),
        said.tasks.length
          ? h("ul", { class: "plain" }, said.tasks.map(task))
          : h("p", { class: "soft" }, T.no_tasks),
      ),
    ].filter(Boolean);
  }

  function task(one) {
    return h(
      "li",
      {},
      h(
        "div",
        { class: "row" },
        h("span", { class: "pre" }, one.description),
        tag(T.peers[one.state] || one.state, KINDS[one.state] ?? "wait"),
      ),
      h(
        "small",
        {},
        `${one.task_id.slice(0, 8)} \u00b7 ${T.from(one.sender)} \u00b7 `,
        one.tries > 1 ? `${T.tries(one.tries)} \u00b7 ` : "",
        when(one.time),
      ),
    );
  }

  return follow(app, h("div", { class: "wide stack" }), 5, show);
}
