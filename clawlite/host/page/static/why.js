// Why a call was decided as it was: its gates, its rules, and what other arguments would have done.

import { empty, problem } from "./app.js";
import { field, fill, h, list_arguments, tag, when } from "./dom.js";
import { T } from "./text.js";

const SIGNS = { passed: "\u2713", stopped: "\u2717", asks: "?", "not reached": "\u00b7" };

export function open(app) {
  const agent = app.agent;
  const shown = h("div", { class: "stack" }),
    others = h("div", { class: "stack" });
  let chosen = app.call;
  app.call = null;

  async function learn() {
    if (!agent || !agent.is_online) return;
    try {
      const said = await agent.ask("claw.call.list", { last: 30 });
      if (!chosen) show(said.calls[0] || null);
      fill(
        others,
        h("h2", {}, T.last_calls),
        said.calls.length
          ? h("ol", {}, said.calls.map(link))
          : h("p", { class: "soft" }, T.no_calls),
      );
    } catch (error) {
      fill(others, problem(error));
    }
  }

  function link(call) {
    return h(
      "li",
      {},
      h(
        "button",
        {
          class: "line",
          onclick: () => {
            show(call);
            app.main.focus();
            window.scrollTo(0, 0);
          },
        },
        h("span", { class: "mono" }, call.tool),
        when(call.time),
        state_of(call),
      ),
    );
  }

  function show(call) {
    chosen = call;
    fill(
      shown,
      call
        ? [
            h("section", { class: "card", "aria-label": T.views.why }, ...explain(call)),
            other(agent, call),
          ]
        : [empty(T.no_calls, T.no_calls_next)],
    );
  }

  fill(app.main, app.head(), shown, others);
  if (chosen) show(chosen);
  learn();
  return { draw: () => others.childElementCount || learn(), close: () => {} };
}

export function state_of(call) {
  if (call.status === "preview") return call.asks ? tag(T.would_ask, "wait") : tag(T.would_run);
  const kind = call.status === "ok" ? "" : "off";
  return tag(T.called[call.status] || String(call.status), kind);
}

/** Return what there is to say of a call. */
function explain(call) {
  const gates = (call.gates || []).map(([name, state]) =>
    h(
      "li",
      { class: state.replace(" ", "-") },
      `${T.gates[name] || name} `,
      h("span", { "aria-hidden": "true" }, SIGNS[state]),
      h("span", { class: "hidden" }, T.states[state]),
    ),
  );
  const rules = (call.rules || []).map((rule) =>
    h(
      "li",
      { class: rule.decides ? "hit" : "miss" },
      [
        rule.id,
        T.actions[rule.action] || rule.action,
        rule.condition,
        rule.decides ? rule.reason : rule.why,
      ]
        .filter(Boolean)
        .join(" \u00b7 "),
    ),
  );
  const last = call.rules && call.rules.length ? call.rules[call.rules.length - 1] : null;
  if (call.action && !(last && last.decides)) rules.push(h("li", { class: "hit" }, T.no_rule));
  else if (last) rules.push(h("li", { class: "miss" }, T.default_deny));
  return [
    h(
      "div",
      { class: "row" },
      h("h2", {}, call.tool),
      state_of(call),
      call.time ? when(call.time) : null,
    ),
    list_arguments(call.arguments),
    call.caller ? h("p", { class: "soft" }, T.asked_by(call.caller)) : null,
    gates.length ? h("ol", { class: "gates mono", "aria-label": T.gates_are }, gates) : null,
    rules.length ? h("ol", { class: "mono", "aria-label": T.rules_are }, rules) : null,
    call.never && call.never.length
      ? h(
          "p",
          { class: "soft" },
          T.for_others(call.never.slice(0, 8).join(", "), call.never.length),
        )
      : null,
    call.note ? h("p", { class: "soft" }, call.note) : null,
    (call.lines || []).length
      ? h(
          "details",
          {},
          h("summary", {}, T.in_words),
          h(
            "div",
            { class: "mono" },
            call.lines.map((line) => h("p", {}, line.trim())),
          ),
        )
      : null,
  ].filter(Boolean);
}

/** Return the form for the same call with other arguments. */
function other(agent, call) {
  const names = Object.entries(call.arguments || {});
  const inputs = names.map(([name, value], at) => [
    name,
    typeof value === "string",
    h("input", {
      id: `other${at}`,
      value: typeof value === "string" ? value : JSON.stringify(value),
      autocomplete: "off",
    }),
  ]);
  const said = h("div", { class: "stack", role: "status" });

  async function ask(event) {
    event.preventDefault();
    const wanted = {};
    for (const [name, is_text, input] of inputs)
      wanted[name] = is_text ? input.value : parse(input.value);
    try {
      fill(
        said,
        ...explain(await agent.ask("claw.call.preview", { name: call.tool, arguments: wanted })),
      );
    } catch (error) {
      fill(said, problem(error));
    }
  }

  return h(
    "section",
    { class: "card", "aria-label": T.what_if },
    h("h2", {}, T.what_if),
    h("p", { class: "soft" }, T.nothing_runs),
    h(
      "form",
      { onsubmit: ask },
      inputs.map(([name, , input]) => field(name, input)),
      h("div", { class: "row" }, h("button", {}, T.what_would)),
    ),
    said,
  );
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
