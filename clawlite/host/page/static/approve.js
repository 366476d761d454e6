// What waits for a person: who asks, what would run, why it asks, and how long it waits.

import { empty, problem } from "./app.js";
import { fill, h, list_arguments, tag } from "./dom.js";
import { T } from "./text.js";

const INERT_MS = 500; // a tap that was meant for something else lands on no question

export function open(app) {
  const made = new Map(); // number and agent -> its card
  const list = h("div", { class: "wide stack", "aria-live": "polite" });
  const said = h("p", { class: "soft wide", role: "status" });
  let timer = 0;

  function card(agent, one) {
    const shown_at = Date.now();
    const left = h("span", {}),
      bar = h("progress", { max: 1, value: 1 });
    const wrong = h("div", {});
    const deny = h("button", { onclick: () => answer(false), disabled: true }, T.deny);
    const approve = h(
      "button",
      { class: "yes", onclick: () => answer(true), disabled: true },
      T.approve,
    );
    setTimeout(() => {
      deny.disabled = approve.disabled = false;
    }, INERT_MS);
    const has_arguments = Object.keys(one.arguments || {}).length > 0;
    const section = h(
      "section",
      { class: "card ask", "aria-label": T.question(one.tool) },
      h("div", { class: "row" }, h("h2", {}, T.question(one.tool)), tag(left, "wait")),
      bar,
      h("p", { class: "soft" }, T.asked_by(one.asker || T.console), " \u00b7 ", agent.name),
      has_arguments ? list_arguments(one.arguments) : h("p", { class: "soft" }, T.no_arguments),
      h("p", { class: "soft" }, one.why),
      h("p", { class: "soft" }, T.if_silent(one.allow)),
      wrong,
      h("div", { class: "row" }, deny, approve),
    );

    async function answer(is_approved) {
      deny.disabled = approve.disabled = true;
      try {
        const done = await agent.ask("claw.approval.answer", {
          number: one.number,
          asked_ms: one.asked_ms,
          is_approved,
        });
        if (!done.acknowledged) fill(said, T.ended[""]);
      } catch (error) {
        fill(wrong, problem(error));
        deny.disabled = approve.disabled = false;
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
    for (const key of [...made.keys()])
      if (!open_now.has(key)) {
        made.get(key).section.remove();
        made.delete(key);
      }
    for (const [key, { agent, one }] of open_now)
      if (!made.has(key)) {
        made.set(key, card(agent, one));
        list.append(made.get(key).section);
      }
    if (app.ended)
      fill(
        said,
        (T.ended[app.ended.state] || T.ended[""]) +
          `${app.ended.by ? T.by(app.ended.by) : ""}: ${app.ended.tool}`,
      );
    const nobody = app.agents.every((agent) => !agent.is_admin);
    fill(
      app.main,
      h("h1", { class: "wide" }, T.views.approve),
      said,
      list,
      open_now.size
        ? []
        : [empty(T.nothing_waits, nobody ? T.approve_denied : T.nothing_waits_next)],
    );
  }

  draw();
  timer = setInterval(() => made.forEach((one) => one.count()), 1000);
  return { draw, close: () => clearInterval(timer) };
}
