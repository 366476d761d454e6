// What waits for a person: who asks, what would run, why it asks, and how long it waits.

import { empty, problem } from "./app.js";
import { fill, h, list_arguments, tag, turn_off } from "./dom.js";
import { T } from "./text.js";

const INERT_MS = 500; // a tap that was meant for something else lands on no question

export function open(app) {
  const made = new Map(); // number and agent -> its card
  const list = h("div", { class: "wide stack", "aria-live": "polite" });
  const said = h("p", { class: "soft wide", role: "status" });
  let timer = 0,
    drawn = ""; // which questions are in the list

  function card(agent, one) {
    const shown_at = Date.now();
    const left = h("span", {}),
      bar = h("progress", { max: 1, value: 1 });
    const wrong = h("div", {});
    const deny = h("button", { onclick: () => answer(false) }, T.deny);
    const approve = h("button", { class: "yes", onclick: () => answer(true) }, T.approve);
    turn_both_off(true);
    setTimeout(() => turn_both_off(false), INERT_MS);
    const has_arguments = Object.keys(one.arguments || {}).length > 0;
    const section = h(
      "section",
      { class: "card ask", "aria-label": `${T.question(one.tool)} ${one.number}` },
      h("div", { class: "row" }, h("h2", {}, T.question(one.tool)), tag(left, "wait")),
      bar,
      h("p", { class: "soft" }, T.asked_by(one.asker || T.console), " \u00b7 ", agent.name),
      has_arguments ? list_arguments(one.arguments) : h("p", { class: "soft" }, T.no_arguments),
      h("p", { class: "soft" }, one.why),
      h("p", { class: "soft" }, T.if_silent(one.allow)),
      wrong,
      h("div", { class: "row" }, deny, approve),
    );

    function turn_both_off(is_off) {
      for (const button of [deny, approve]) turn_off(button, is_off);
    }

    async function answer(is_approved) {
      turn_both_off(true);
      try {
        const done = await agent.ask("claw.approval.answer", {
          number: one.number,
          asked_ms: one.asked_ms,
          is_approved,
        });
        if (!done.acknowledged) fill(said, T.ended[""]);
      } catch (error) {
        fill(wrong, problem(error));
        turn_both_off(false);
      }
    }

    function count() {
      const seconds = Math.max(0, Math.ceil(one.left_ms / 1000 - (Date.now() - shown_at) / 1000));
      left.textContent = T.left(seconds);
      bar.value = seconds / (one.timeout_ms / 1000);
      bar.setAttribute("aria-label", T.left(seconds));
    }
    count();
    return { section, count };
  }

  function draw() {
    const open_now = new Map(
      app.waiting.map((each) => [`${each.agent.name} ${each.one.number}`, each]),
    );
    for (const [key, { section }] of [...made])
      if (!open_now.has(key)) {
        // never on another question
        if (section.contains(document.activeElement)) app.main.focus({ preventScroll: true });
        made.delete(key);
      }
    for (const [key, { agent, one }] of open_now)
      if (!made.has(key)) made.set(key, card(agent, one));
    if (app.ended)
      fill(
        said,
        (T.ended[app.ended.state] || T.ended[""]) +
          `${app.ended.by ? T.by(app.ended.by) : ""}: ${app.ended.tool}`,
      );
    const nobody = app.agents.every((agent) => !agent.is_admin);
    const wanted = [nobody, ...made.keys()].join("\n");
    if (wanted === drawn) return;
    drawn = wanted;
    fill(
      list,
      made.size
        ? [...made.values()].map((one) => one.section)
        : [empty(T.nothing_waits, nobody ? T.approve_denied : T.nothing_waits_next)],
    );
  }

  fill(app.main, h("h1", { class: "wide" }, T.views.approve), said, list);
  draw();
  timer = setInterval(() => made.forEach((one) => one.count()), 1000);
  return { draw, close: () => clearInterval(timer) };
}
