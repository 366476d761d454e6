// What runs by itself: next and last runs, why not, on and off.

import { empty, follow, problem } from "./app.js";
import { fill, h, tag, when } from "./dom.js";
import { draw_day } from "./day.js";
import { T } from "./text.js";

export function open(app) {
  const list = h("div", { class: "wide stack" });
  const shown = new Map(); // name of a rule -> what is below it, which stays

  async function show(agent) {
    const said = await agent.try_ask("claw.rule.list");
    return said && said.rules.length
      ? said.rules.map((rule) => card(agent, rule))
      : [empty(T.no_rules, T.no_rules_next)];
  }

  function card(agent, rule) {
    const state = rule.waits
      ? tag(T.asks_now, "wait")
      : rule.is_on
        ? tag(T.is_on)
        : tag(T.is_off, "off");
    const more = shown.get(rule.name) || h("div", { class: "mono" });
    shown.set(rule.name, more);
    const buttons = [h("button", { onclick: why }, T.why)];
    if (agent.role !== "viewer") buttons.push(h("button", { onclick: rehearse }, T.picture));
    if (agent.is_admin)
      buttons.push(h("button", { onclick: turn }, rule.is_on ? T.switch_off : T.switch_on));

    async function why() {
      try {
        const said = await agent.ask("claw.rule.why", { name: rule.name });
        fill(
          more,
          said.text.split("\n").map((line) => h("p", {}, line)),
        );
      } catch (error) {
        fill(more, problem(error));
      }
    }

    async function rehearse() {
      try {
        const played = await agent.ask("claw.rule.rehearse", { name: rule.name });
        const text = [...rule.if, rule.begins].join(" ");
        const { readings } = await agent.ask("claw.reading.list");
        const used = readings.filter((one) =>
          new RegExp(`(^|\\W)${one.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(\\W|$)`).test(text),
        );
        const curves = await Promise.all(
          used.map((one) => agent.ask("claw.reading.history", { name: one.name, points: 240 })),
        );
        fill(more, draw_day(rule, played, used, curves));
      } catch (error) {
        fill(more, problem(error));
      }
    }

    async function turn() {
      try {
        await agent.ask("claw.rule.switch", { name: rule.name, is_on: !rule.is_on });
        await view.learn();
      } catch (error) {
        fill(more, problem(error));
      }
    }

    const last = rule.last
      ? [T.last, " ", when(rule.last.at), " ", rule.last.status]
      : [T.last, " ", T.never];
    return h(
      "section",
      { class: "card", "aria-label": rule.name },
      h("div", { class: "row" }, h("h2", {}, rule.name), state),
      h("p", {}, `${rule.begins}: `, h("span", { class: "mono" }, rule.call)),
      h(
        "p",
        { class: "soft" },
        rule.next ? T.next(new Date(rule.next).toLocaleString()) + " \u00b7 " : "",
        ...last,
      ),
      h("div", { class: "row" }, ...buttons),
      more,
    );
  }

  const view = follow(app, list, 10, show);
  return view;
}
