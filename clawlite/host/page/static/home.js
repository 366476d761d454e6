// A card for each agent and board: what it measures, its pins, what waits, and how it is.

import { empty } from "./app.js";
import { age_of, fill, h, sparkline, tag, when, with_unit } from "./dom.js";
import { T } from "./text.js";

const AGAIN_MS = 10000;
const CURVE_MS = 60000; // a board reads its flash for a curve
const KNOWN = new WeakMap(); // agent -> what was learned of it

export function open(app) {
  let timer = 0,
    is_closed = false;

  async function learn(agent) {
    if (!agent.is_online) return;
    const [status, usage, readings, rules, pins] = await Promise.all(
      ["claw.status", "claw.usage.get", "claw.reading.list", "claw.rule.list", "claw.pin.list"].map(
        (one) => agent.try_ask(one),
      ),
    );
    const before = (KNOWN.get(agent) || {}).curves || new Map(),
      curves = new Map();
    for (const { name, value } of (readings && readings.readings) || []) {
      if (typeof value !== "number") continue;
      const drawn = before.get(name);
      if (drawn) curves.set(name, drawn);
      if (drawn && Date.now() - drawn.at < CURVE_MS) continue;
      const said = await agent.try_ask("claw.reading.history", { name });
      if (!said) continue;
      const samples = said.samples.filter((one) => typeof one[1] === "number");
      curves.set(name, { samples, at: Date.now() });
    }
    KNOWN.set(agent, {
      status,
      usage,
      readings: readings && readings.readings,
      rules: rules && rules.rules,
      pins: pins && pins.pins,
      curves,
      at: Date.now(),
    });
  }

  async function again() {
    await Promise.allSettled(app.agents.map(learn));
    if (is_closed) return;
    draw();
    timer = setTimeout(again, AGAIN_MS);
  }

  function draw() {
    const waiting = app.waiting;
    const first = waiting.length
      ? [
          h(
            "a",
            { class: "card ask wide", href: "#approve" },
            h("h2", {}, T.waits(waiting.length)),
            h("p", { class: "soft" }, waiting.map(({ one }) => one.tool).join(", ")),
          ),
        ]
      : [];
    const all = [
      ...app.agents.map((agent) => card(agent, KNOWN.get(agent))),
      ...app.boards.map(board),
    ];
    fill(
      app.main,
      h("h1", { class: "wide" }, T.views.home),
      first,
      all.length ? all : [empty(T.no_agent, T.no_agent_next)],
      h("form", { class: "wide", method: "post", action: "/logout" }, h("button", {}, T.log_out)),
    );
  }

  function card(agent, known) {
    const state = agent.is_online
      ? tag(T.online)
      : tag(
          known ? T.offline_since : agent.why || (agent.was_online ? T.offline : T.connecting),
          "off",
        );
    const name = h("a", { href: "#talk/" + encodeURIComponent(agent.name) }, agent.name);
    const parts = [h("div", { class: "row" }, h("h2", {}, name), state)];
    if (!agent.is_online && agent.seen)
      parts.push(h("p", { class: "soft" }, T.not_online_since, when(agent.seen)));
    if (known) parts.push(...values(known), ...runs(agent, known), foot(app, agent, known));
    return h(
      "section",
      { class: agent.is_online ? "card" : "card old", "aria-label": agent.name },
      ...parts,
    );
  }

  draw();
  again();
  return {
    draw,
    close: () => {
      is_closed = true;
      clearTimeout(timer);
    },
  };
}

function board(one) {
  return h(
    "section",
    { class: "card" },
    h("h2", {}, one.board),
    h("p", { class: "soft" }, T.board(one.agent), when(one.seen)),
  );
}

function values(known) {
  const readings = (known.readings || []).map((one) => {
    const aged = one.age_s === null ? null : one.age_s + (Date.now() - known.at) / 1000;
    return h(
      "div",
      {},
      h("div", { class: "num" }, with_unit(one.value, one.field)),
      h(
        "small",
        { title: one.wrong || null },
        `${one.name}, ${aged === null ? T.no_value : age_of(aged)}`,
      ),
    );
  });
  const pins = (known.pins || [])
    .filter((one) => !(known.readings || []).some(({ name }) => name === one.name))
    .map((one) =>
      h(
        "div",
        {},
        h("div", { class: "num" }, pin_text(one)),
        h("small", {}, `${one.name}, ${T.pin_kinds[one.kind] || one.kind}`),
      ),
    );
  const curves = (known.readings || [])
    .filter(({ name }) => known.curves.has(name) && known.curves.get(name).samples.length > 1)
    .map((one) => curve(one, known));
  const row = [...readings, ...pins];
  return [
    row.length
      ? h("div", { class: "row start" }, ...row)
      : h("p", { class: "soft" }, T.no_readings),
    ...curves,
  ];
}

function pin_text(one) {
  if (one.value === null) return "\u2013";
  return one.of === 1
    ? one.value
      ? T.pin_on
      : T.pin_off
    : `${Math.round((100 * one.value) / one.of)} %`;
}

function curve(one, known) {
  const samples = known.curves.get(one.name).samples,
    all = samples.map(([, value]) => value);
  const mark = threshold(one.name, known.rules || []);
  const [low, high] = [Math.min(...all), Math.max(...all)].map((value) =>
    with_unit(value, one.field),
  );
  const words = T.curve(
    one.name,
    with_unit(all[0], one.field),
    with_unit(all[all.length - 1], one.field),
    low,
    high,
  );
  const dashed = mark === null ? "" : T.dashed(with_unit(mark, one.field));
  return h(
    "figure",
    {},
    sparkline(samples, words, mark),
    h("figcaption", { class: "soft" }, T.last_day(one.name, low, high), dashed),
  );
}

/** Return the value at which a rule looks at the reading *name*, or null. */
export function threshold(name, rules) {
  for (const rule of rules)
    for (const text of [...rule.if, rule.begins.replace(/^when /, "")]) {
      const found = text.match(/^(\S+) (?:[<>]=?|is below|is above) (-?[0-9.]+)/);
      if (found && found[1] === name) return Number(found[2]);
    }
  return null;
}

function runs(agent, known) {
  const rules = (known.rules || []).slice(0, 3);
  if (!rules.length) return [];
  return [
    h(
      "ul",
      { class: "plain", "aria-label": T.by_itself },
      rules.map((rule) =>
        h(
          "li",
          { class: "row" },
          h("a", { href: "#rules/" + encodeURIComponent(agent.name) }, rule.name),
          rule.waits ? tag(T.asks_now, "wait") : rule.is_on ? tag(T.is_on) : tag(T.is_off, "off"),
        ),
      ),
    ),
  ];
}

/** Return the last line of a card: what was done last, what waits, memory, image, link. */
function foot(app, agent, known) {
  const used = known.usage,
    parts = [],
    waits = app.waiting.filter((each) => each.agent === agent).length;
  if (used && used.last_turn)
    parts.push([
      T.last_turn,
      when(used.last_turn.timestamp),
      ` ${T.called[used.last_turn.status] || used.last_turn.status}`,
    ]);
  if (waits || (used && used.waiting)) parts.push([T.waits(waits || used.waiting)]);
  const bytes = used && (used.free_bytes || used.memory_bytes);
  if (bytes) parts.push([used.free_bytes ? T.free(size(bytes)) : T.takes(size(bytes))]);
  if (used) parts.push([T.version(used.version, used.image)]);
  const up_s = (used ? used.uptime_ms : known.status ? known.status.uptime_ms : 0) / 1000;
  parts.push(
    [T.up(age_of(up_s).replace(" ago", ""))],
    [used && used.link ? used.link : T.link_here],
  );
  return h(
    "small",
    {},
    parts.flatMap((one, at) => (at ? [" \u00b7 ", ...one] : one)),
  );
}

const size = (bytes) =>
  bytes < 1 << 20 ? `${Math.round(bytes / 1024)} KB` : `${Math.round(bytes / (1 << 20))} MB`;
