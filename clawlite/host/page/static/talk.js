// A conversation: what a person says, each call of a tool with its decision, and the answer.

import { problem } from "./app.js";
import { of_event } from "./log.js";
import { fill, h, list_arguments, turn_off } from "./dom.js";
import { T } from "./text.js";

// What was said in this window, by agent. It goes on while another view is open.
const TALKS = new WeakMap();

function talk_with(agent) {
  if (TALKS.has(agent)) return TALKS.get(agent);
  const talk = { entries: [], task: null, renew: false, draw: () => {} };
  agent.addEventListener("claw.task.updated", (event) => take(talk, agent, event.detail));
  agent.addEventListener("claw.log.event", (event) => add_call(talk, event.detail));
  TALKS.set(agent, talk);
  return talk;
}

function take(talk, agent, said) {
  if (!talk.task || said.task_id !== talk.task.id) return;
  const { answer, end } = talk.task;
  if (said.text) answer.text += said.text;
  answer.state = said.state || answer.state;
  if (is_over(said.state)) {
    answer.text = text_of(said) || answer.text;
    if (said.state === "canceled") answer.text += T.stopped;
    if (!answer.text) answer.text = T.silent;
    if (end) end();
  }
  talk.draw();
}

function add_call(talk, event) {
  if (!talk.task || event.event !== "tool.call") return;
  talk.entries.splice(talk.entries.indexOf(talk.task.answer), 0, { who: "call", event });
  talk.draw();
}

export function open(app) {
  const agent = app.agent;
  if (!agent) {
    fill(app.main, app.head());
    return { draw: () => app.agents.length && app.show(), close: () => {} };
  }
  const talk = talk_with(agent);
  const lines = h("div", { class: "talk", role: "log", "aria-label": T.views.talk });
  const field = h("textarea", {
    id: "message",
    rows: 2,
    "aria-label": T.message,
    autocomplete: "off",
  });
  const send = h("button", { class: "yes", onclick: say }, T.send);
  const stop = h("button", { onclick: cancel }, T.stop);
  const fresh = h("button", { onclick: renew }, T.new);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      say();
    }
  });

  async function say() {
    const text = field.value.trim();
    if (!text || talk.task) return;
    field.value = "";
    talk.entries.push({ who: "me", text });
    const answer = { who: "it", text: "", state: "working" };
    talk.entries.push(answer);
    try {
      if (talk.renew) await run("/new", { text: "" });
      talk.renew = false;
      await run(text, answer);
    } catch (error) {
      answer.error = error;
      talk.task = null;
    }
    talk.draw();
  }

  async function run(text, answer) {
    const task_id = crypto.randomUUID ? crypto.randomUUID() : make_uuid();
    talk.task = { id: task_id, answer, end: null };
    talk.draw();
    await agent.ask("claw.task.create", { task_id, message: { role: "user", content: text } });
    const { state } = await agent.ask("claw.task.subscribe", { task_id });
    await new Promise((give) => {
      talk.task.end = give;
      answer.state = is_over(answer.state) ? answer.state : state; // it may have asked already
      talk.draw();
      if (is_over(state))
        agent.ask("claw.task.get", { task_id }).then((said) => take(talk, agent, said), give);
    });
    talk.task = null;
  }

  async function cancel() {
    if (!talk.task) return;
    // who cancels hears of the end in the answer alone
    const said = await agent.try_ask("claw.task.cancel", { task_id: talk.task.id });
    if (said) take(talk, agent, said);
  }

  function renew() {
    talk.entries.length = 0;
    talk.renew = true;
    draw();
    field.focus();
  }

  function entry(one) {
    if (one.who === "me") return h("div", { class: "me" }, one.text);
    if (one.who === "call") {
      // made once: it stays open while more is said
      one.card ||= call_card(one.event, () => app.explain(agent, of_event(one.event)));
      return one.card;
    }
    const now = one.state === "input_required" ? T.waiting : T.thinking;
    const text = one.text || (one.error ? "" : now);
    return h("div", { class: "it" }, text, one.error ? problem(one.error) : null);
  }

  function draw() {
    turn_off(stop, !talk.task);
    for (const one of [send, fresh]) turn_off(one, Boolean(talk.task) || !agent.is_online);
    fill(
      lines,
      talk.entries.length ? talk.entries.map(entry) : [h("p", { class: "soft" }, T.talk_empty)],
    );
    lines.scrollTop = lines.scrollHeight;
  }

  agent.try_ask("claw.log.subscribe");
  fill(
    app.main,
    app.head(),
    h(
      "section",
      { class: "card wide" },
      lines,
      agent.role === "viewer" ? h("p", { class: "soft" }, T.viewer_talks) : null,
      h("label", { class: "soft", for: "message" }, T.message),
      field,
      h("div", { class: "row" }, fresh, stop, send),
    ),
  );
  talk.draw = draw;
  draw();
  return {
    draw,
    close: () => {
      talk.draw = () => {};
    },
  };
}

/** Return the card of one call: its arguments, the decision with its reason, and its result. */
function call_card(event, explain) {
  const decision = [event.action, event.rule_id].filter(Boolean).join(", rule ");
  const approval = event.approval ? ` \u00b7 ${event.approval}` : "";
  const took = event.duration_ms === undefined ? "" : ` \u00b7 ${event.duration_ms} ms`;
  const result = T.called[event.status] || event.status || "";
  return h(
    "details",
    { class: event.status === "ok" ? "call mono" : "call bad mono" },
    h("summary", {}, `${event.tool} \u00b7 ${decision || "-"}${approval} \u00b7 ${result}${took}`),
    list_arguments(event.arguments),
    event.reason ? h("p", {}, event.reason) : null,
    h("button", { class: "small", onclick: explain }, T.why),
  );
}

const is_over = (state) => ["completed", "failed", "canceled", "rejected"].includes(state);

function text_of(said) {
  if (typeof said.result === "string") return said.result;
  if (said.result && said.result.text) return said.result.text;
  if (said.result && said.result.error) return String(said.result.error);
  return said.error ? said.error.message || String(said.error) : "";
}

// crypto.randomUUID is there on secure pages alone
function make_uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
