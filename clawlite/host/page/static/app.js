// The page: who is here, which agent is shown, and which view.

import { Agent } from "./ckp.js";
import { fill, h, tag } from "./dom.js";
import { T } from "./text.js";

const MAIN = ["home", "talk", "approve", "rules"];
export const REST = ["log", "audit", "memory", "budgets", "swarm", "setup"];
const VIEWS = [...MAIN, ...REST, "why", "more"];
const SIGNS = {
  home: "\u2302",
  talk: "\u2709",
  approve: "\u2713",
  rules: "\u21bb",
  log: "\u2261",
  audit: "\u00a7",
  memory: "\u25a4",
  budgets: "\u25d4",
  swarm: "\u2042",
  setup: "\u2699",
  more: "\u22ef",
};

class App {
  constructor() {
    this.main = document.getElementById("main");
    this.nav = document.getElementById("views");
    this.agents = [];
    this.boards = [];
    this.shown = null; // the view that is open
    this.call = null; // the call that the view Why explains
    this.questions = new Map(); // agent -> {number: question}
  }

  async start() {
    await this.refresh();
    window.addEventListener("hashchange", () => this.show());
    setInterval(() => this.refresh(), 15000);
    await this.show();
  }

  /** Learn which agents are here. */
  async refresh() {
    const answer = await fetch("/", { headers: { Accept: "application/json" } });
    if (answer.status === 401) {
      location.assign("/login");
      return;
    }
    const said = await answer.json();
    this.person = said.person;
    for (const row of said.agents) {
      const known = this.agents.find((agent) => agent.name === row.agent);
      if (known && row.seen && !known.is_online) known.seen = row.seen;
      if (known && row.why) known.why = row.why;
      if (known || row.why) continue; // a board that is away has a card, and no link
      const agent = new Agent(row);
      agent.addEventListener("link", () => this.greet(agent));
      agent.addEventListener("claw.approval.updated", (event) => this.note(agent, event.detail));
      this.agents.push(agent);
      agent.open();
    }
    this.boards = said.boards.filter((one) => !this.agents.some((agent) => agent.path === one.ckp));
  }

  async greet(agent) {
    if (agent.is_online && agent.is_admin) {
      const said = await agent.try_ask("claw.approval.subscribe");
      this.questions.set(
        agent,
        new Map((said ? said.approvals : []).map((one) => [one.number, one])),
      );
    }
    this.changed();
  }

  /** A question was put, or has ended. */
  note(agent, one) {
    const open = this.questions.get(agent) || new Map();
    this.questions.set(agent, open);
    if (one.state === "waiting") open.set(one.number, { ...one, since: Date.now() });
    else open.delete(one.number);
    this.ended = one.state === "waiting" ? this.ended : one;
    this.changed();
  }

  get waiting() {
    return [...this.questions].flatMap(([agent, open]) =>
      [...open.values()].map((one) => ({ agent, one })),
    );
  }

  /** The agent that is shown: the one in the address, else the first. */
  get agent() {
    const name = decodeURIComponent(location.hash.split("/")[1] || "");
    return this.agents.find((agent) => agent.name === name) || this.agents[0] || null;
  }

  async show() {
    const wanted = location.hash.slice(1).split("/")[0];
    const view = VIEWS.includes(wanted) ? wanted : "home";
    const { open } = await import(`./${view}.js`);
    const before = this.shown;
    if (before) before.close();
    document.title = `${T.views[view]} - clawlite`;
    this.view = view;
    this.draw_nav();
    fill(this.main);
    this.shown = open(this);
    if (before) this.main.focus({ preventScroll: true });
  }

  changed() {
    this.draw_nav();
    if (this.shown) this.shown.draw();
  }

  draw_nav() {
    const suffix = this.agent ? "/" + encodeURIComponent(this.agent.name) : "";
    fill(
      this.nav,
      [...MAIN, ...REST, "more"].map((view) => {
        const count = view === "approve" ? this.waiting.length : 0;
        const is_rest = REST.includes(view),
          is_in = view === "more" && [...REST, "why"].includes(this.view);
        const current = view === this.view ? "page" : is_in ? "true" : null;
        return h(
          "a",
          {
            href: `#${view}${suffix}`,
            "aria-current": current,
            class: is_rest ? "rest" : view === "more" ? "more" : null,
          },
          h("b", { "aria-hidden": "true" }, SIGNS[view]),
          T.views[view],
          count ? h("span", { class: "count", title: T.waits(count) }, count) : null,
        );
      }),
    );
  }

  /** Return the head of a view that belongs to one agent: its name, its state, and a choice. */
  head() {
    const agent = this.agent;
    if (!agent) return [empty(T.no_agent, T.no_agent_next)];
    const state = agent.is_online ? tag(T.online) : tag(agent.why || T.offline, "off");
    const row = [h("h1", {}, agent.name), state];
    if (this.agents.length > 1) {
      const choice = h(
        "select",
        { "aria-label": T.choose, onchange: () => this.choose(choice.value) },
        this.agents.map((one) =>
          h("option", { value: one.name, selected: one === agent }, one.name),
        ),
      );
      row.push(choice);
    }
    return [h("div", { class: "row wide" }, ...row)];
  }

  /** Show why *call* of *agent* was decided as it was. */
  explain(agent, call) {
    this.call = call;
    const place = `#why/${encodeURIComponent(agent.name)}`;
    if (location.hash === place) this.show();
    else location.hash = place;
  }

  choose(name) {
    location.hash = `#${this.view}/${encodeURIComponent(name)}`;
  }
}

export function empty(what, next) {
  return h(
    "section",
    { class: "card wide empty" },
    h("h2", {}, what),
    h("p", { class: "soft" }, next),
  );
}

/** Open a view whose *list* is asked for again every so many *seconds*: *show(agent)* returns what
 * stands in it.  ``learn`` of what is returned asks at once. */
export function follow(app, list, seconds, show) {
  let timer = 0,
    is_closed = false;

  async function learn() {
    if (app.agent && app.agent.is_online) {
      try {
        fill(list, await show(app.agent));
      } catch (error) {
        fill(list, problem(error));
      }
    }
    clearTimeout(timer); // of another that has ended meanwhile
    if (!is_closed) timer = setTimeout(learn, 1000 * seconds);
  }

  fill(app.main, app.head(), list);
  learn();
  return {
    learn,
    draw: () => list.childElementCount || learn(),
    close: () => {
      is_closed = true;
      clearTimeout(timer);
    },
  };
}

const UNKNOWN = -32601; // a method that this agent does not have

export function problem(error) {
  if (error.code === UNKNOWN) return h("p", { class: "soft", role: "status" }, T.not_kept);
  return h("p", { class: "problem pre", role: "alert" }, T.failed(error.message));
}

new App().start();
