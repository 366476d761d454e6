// A card for each agent: what it measures, what waits, and what has happened last.

import { empty } from "./app.js";
import { age_of, fill, h, sparkline, tag, when } from "./dom.js";
import { T } from "./text.js";

const AGAIN_MS = 10000;

export function open(app) {
  const cards = new Map(); // agent -> what was learned of it
  let timer = 0;

  async function learn(agent) {
    if (!agent.is_online) return;
    const [status, readings, rules] = await Promise.all([
      agent.try_ask("claw.status"),
      agent.try_ask("claw.reading.list"),
      agent.try_ask("claw.rule.list"),
    ]);
    const curves = {};
    for (const one of (readings && readings.readings) || []) {
      const said = await agent.try_ask("claw.reading.history", { name: one.name });
      if (said) curves[one.name] = said.samples;
    }
    cards.set(agent, { status, readings: readings && readings.readings, rules: rules && rules.rules, curves, at: Date.now() });
  }

  async function again() {
    await Promise.all(app.agents.map(learn));
    draw();
    timer = setTimeout(again, AGAIN_MS);
  }

  function draw() {
    const waiting = app.waiting;
    const first = waiting.length
      ? [h("a", { class: "card ask wide", href: "#approve" }, h("h2", {}, T.waits(waiting.length)),
          h("p", { class: "soft" }, waiting.map(({ one }) => one.tool).join(", ")))]
      : [];
    const all = [...app.agents.map((agent) => card(agent, cards.get(agent))), ...app.boards.map(board)];
    fill(app.main, h("h1", { class: "wide" }, T.views.home), first,
      all.length ? all : [empty(T.no_agent, T.no_agent_next)],
      h("form", { class: "wide", method: "post", action: "/logout" }, h("button", {}, T.log_out)));
  }

  function card(agent, known) {
    const state = agent.is_online ? tag(T.online) : tag(known ? T.offline_since : agent.why || (agent.was_online ? T.offline : T.connecting), "off");
    const name = h("a", { href: "#talk/" + encodeURIComponent(agent.name) }, agent.name);
    const parts = [h("div", { class: "row" }, h("h2", {}, name), state)];
    if (known) {
      parts.push(...values(known));
      if (known.status)
        parts.push(h("small", {}, T.up(age_of(known.status.uptime_ms / 1000).replace(" ago", ""))));
    }
    return h("section", { class: agent.is_online ? "card" : "card old" }, ...parts);
  }

  function board(one) {
    return h("section", { class: "card" }, h("h2", {}, one.board),
      h("p", { class: "soft" }, T.board(one.agent), when(one.seen)));
  }

  function values(known) {
    if (!known.readings || !known.readings.length)
      return known.readings ? [h("p", { class: "soft" }, T.no_readings)] : [];
    const shown = known.readings.map((one) =>
      h("div", {}, h("div", { class: "num" }, one.value === null ? "\u2013" : String(one.value)),
        h("small", {}, `${one.name}${one.age_s === null ? ", " + T.no_value : ", " + age_of(one.age_s)}`)));
    const curves = known.readings
      .filter((one) => (known.curves[one.name] || []).length > 1)
      .map((one) => {
        const samples = known.curves[one.name], all = samples.map(([, value]) => value);
        return sparkline(samples, T.curve(one.name, all[0], all[all.length - 1], Math.min(...all), Math.max(...all)));
      });
    return [h("div", { class: "row start" }, ...shown), ...curves];
  }

  draw();
  again();
  return { draw, close: () => clearTimeout(timer) };
}
