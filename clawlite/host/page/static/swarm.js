// Who is there of the swarm, and what became of its tasks.

import { empty, problem } from "./app.js";
import { fill, h, tag, when } from "./dom.js";
import { T } from "./text.js";

const KINDS = { ready: "", busy: "wait", unavailable: "off", completed: "", failed: "off", dead: "off", running: "wait", waiting: "wait" };

export function open(app) {
  const agent = app.agent, list = h("div", { class: "wide stack" });
  let timer = 0;

  async function learn() {
    clearTimeout(timer);
    if (agent && agent.is_online) {
      try {
        const said = await agent.try_ask("claw.swarm.list");
        fill(list, said ? show(said) : [empty(T.no_swarm, T.no_swarm_next)]);
      } catch (error) {
        fill(list, problem(error));
      }
    }
    timer = setTimeout(learn, 5000);
  }

  function show(said) {
    const stopped = said.stopped ? [h("section", { class: "card ask" }, h("h2", {}, T.swarm_stopped), h("p", { class: "soft" }, T.by(said.stopped.by).trim(), " ", when(said.stopped.time)))] : [];
    return [...stopped,
      h("section", { class: "card", "aria-label": T.members }, h("h2", {}, said.swarm), h("ul", { class: "plain" }, said.members.map((one) =>
        h("li", { class: "row" }, h("span", {}, one.identity, " ", h("small", {}, T.member(one.role, one.processes))), tag(T.peers[one.status] || one.status, KINDS[one.status]))))),
      said.differs.length ? h("p", { class: "problem" }, T.differs(said.differs.join(", "))) : null,
      h("section", { class: "card", "aria-label": T.tasks }, h("h2", {}, T.tasks),
        said.tasks.length ? h("ul", { class: "plain" }, said.tasks.map(task)) : h("p", { class: "soft" }, T.no_tasks))].filter(Boolean);
  }

  function task(one) {
    return h("li", {}, h("div", { class: "row" }, h("span", { class: "pre" }, one.description), tag(T.peers[one.state] || one.state, KINDS[one.state] ?? "wait")),
      h("small", {}, `${one.task_id.slice(0, 8)} \u00b7 ${T.from(one.sender)}${one.tries > 1 ? " \u00b7 " + T.tries(one.tries) : ""} \u00b7 `, when(one.time)));
  }

  fill(app.main, app.head(), list);
  learn();
  return { draw: () => list.childElementCount || learn(), close: () => clearTimeout(timer) };
}
