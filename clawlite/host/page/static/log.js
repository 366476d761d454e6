// What happens, as it happens, and why a call was decided as it was.

import { empty } from "./app.js";
import { fill, h, list_arguments, tag, when } from "./dom.js";
import { T } from "./text.js";

const MOST = 200;
const EVENTS = new WeakMap(); // agent -> its last events, each with its number
let heard = 0;

export function open(app) {
  const agent = app.agent;
  const list = h("div", { class: "wide stack" });
  const filter = h("input", {
    type: "search",
    "aria-label": T.filter,
    placeholder: T.filter,
    oninput: draw,
  });
  if (agent && !EVENTS.has(agent)) {
    EVENTS.set(agent, []);
    agent.addEventListener("claw.log.event", (event) => {
      const all = EVENTS.get(agent);
      all.unshift([++heard, event.detail]);
      all.length = Math.min(all.length, MOST);
    });
  }

  function draw() {
    const wanted = filter.value.toLowerCase();
    const events = (agent ? EVENTS.get(agent) : []).filter(([, event]) =>
      JSON.stringify(event).toLowerCase().includes(wanted),
    );
    fill(
      list,
      events.length
        ? events.map(([number, event]) => entry(app, agent, number, event))
        : [empty(T.log_empty, agent && !agent.is_admin ? T.log_admin : "")],
    );
  }

  const again = () => draw();
  if (agent) {
    agent.addEventListener("claw.log.event", again);
    agent.try_ask("claw.log.subscribe");
  }
  fill(app.main, app.head(), h("div", { class: "wide" }, filter), list);
  draw();
  return {
    draw: () => {},
    close: () => agent && agent.removeEventListener("claw.log.event", again),
  };
}

function entry(app, agent, number, event) {
  if (event.event === "tool.call") return call(app, agent, number, event);
  const { event: name, timestamp, agent: _agent, claw, ...more } = event;
  return h(
    "section",
    { class: "card", "aria-label": `${name} ${number}` },
    h("div", { class: "row" }, h("h2", {}, name), when(timestamp)),
    list_arguments(more),
  );
}

/** Return an event as ``claw.call.list`` has a call. */
export const of_event = (event) => ({ ...event, time: event.timestamp, lines: event.why });

// the rules in their order, and the one that has decided
function call(app, agent, number, event) {
  const is_fine = event.status === "ok";
  const rules = (event.why || [])
    .map((line) => line.trim())
    .map((line) =>
      h("li", { class: line.startsWith("*") ? "hit" : "miss" }, line.replace(/^[*-] /, "")),
    );
  return h(
    "section",
    { class: "card", "aria-label": `${event.tool} ${number}` },
    h(
      "div",
      { class: "row" },
      h("h2", {}, event.tool),
      tag(T.called[event.status] || event.status, is_fine ? "" : "off"),
      when(event.timestamp),
    ),
    list_arguments(event.arguments),
    h(
      "p",
      { class: "mono" },
      [event.action, event.rule_id, event.approval, event.reason].filter(Boolean).join(" \u00b7 "),
    ),
    rules.length ? h("ol", { class: "mono" }, ...rules) : null,
    h(
      "div",
      { class: "row start" },
      h("button", { class: "small", onclick: () => app.explain(agent, of_event(event)) }, T.why),
    ),
  );
}
