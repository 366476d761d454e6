// What the agent remembers: search, read, and let it forget.

import { empty, problem } from "./app.js";
import { field, fill, h, list_arguments, when } from "./dom.js";
import { T } from "./text.js";

const ALL = { from: "2000-01-01T00:00:00Z", to: "2100-01-01T00:00:00Z" };
const MOST = 50;

export function open(app) {
  const agent = app.agent;
  const list = h("div", { class: "wide stack" }),
    said = h("div", { class: "wide", role: "status" });
  const store = h("select", { id: "store", onchange: learn });
  const words = h("input", { id: "words", type: "search", autocomplete: "off" });
  const whose = h("input", { id: "whose", autocomplete: "off" });
  const part = field(T.whose, whose);
  let stores = [];

  async function begin() {
    if (!agent || !agent.is_online || stores.length) return;
    try {
      const found = await agent.try_ask("claw.memory.list");
      stores = found ? found.stores : [];
      if (!stores.length) {
        fill(list, [empty(T.no_memory, T.no_memory_next)]);
        return;
      }
      fill(
        store,
        stores.map((one) =>
          h("option", { value: one.name }, `${one.name}, ${T.stores[one.type] || one.type}`),
        ),
      );
      fill(
        form,
        field(T.store, store),
        field(T.search, words),
        part,
        h("div", { class: "row" }, h("button", {}, T.search)),
      );
      await learn();
    } catch (error) {
      fill(list, problem(error));
    }
  }

  async function learn() {
    const { name, scope } = stores.find((one) => one.name === store.value) || stores[0];
    part.hidden = scope === "global";
    const text = words.value.trim(),
      owner = whose.value.trim();
    const query = text
      ? { type: "semantic", text, top_k: MOST }
      : { type: "time-range", time_range: ALL, top_k: MOST };
    const params = { store: name, query };
    if (owner && scope !== "global")
      params.context = scope === "per-channel" ? { channel: owner } : { identity: owner };
    try {
      const found = await agent.ask("claw.memory.query", params);
      const entries = found.entries.filter((one) => !(one.metadata && one.metadata.forgotten));
      if (!text) entries.reverse();
      fill(
        list,
        entries.length ? entries.map((one) => card(name, one)) : [empty(T.nothing_found, "")],
        found.truncated ? h("p", { class: "soft" }, T.more_there) : null,
      );
    } catch (error) {
      fill(list, problem(error));
    }
  }

  function card(name, one) {
    const text =
      typeof one.content === "string"
        ? h("p", { class: "pre" }, one.content)
        : list_arguments(one.content);
    const rest = () => fill(forget, T.forget);
    const forget = agent.is_admin
      ? h(
          "button",
          {
            class: "small",
            onclick: () => ask(name, one, forget),
            onblur: rest,
            onkeydown: (event) => event.key === "Escape" && rest(),
          },
          T.forget,
        )
      : null;
    return h(
      "section",
      { class: "card", "aria-label": one.key || one.id },
      one.key ? h("h2", { class: "mono" }, one.key) : null,
      text,
      h("div", { class: "row" }, when(one.timestamp), forget),
    );
  }

  /** The second touch forgets; whoever goes elsewhere, or escapes, has not touched it. */
  async function ask(name, one, button) {
    if (button.textContent !== T.forget_really) {
      button.textContent = T.forget_really;
      return;
    }
    try {
      const { forgotten } = await agent.ask("claw.memory.forget", { store: name, id: one.id });
      fill(said, h("p", { class: "soft" }, T.forgotten(forgotten)));
      await learn();
    } catch (error) {
      fill(said, problem(error));
    }
  }

  const form = h("form", {
    class: "wide",
    onsubmit: (event) => {
      event.preventDefault();
      learn();
    },
  });
  fill(app.main, app.head(), form, said, list);
  begin();
  return { draw: begin, close: () => {} };
}
