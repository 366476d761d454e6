// What was used of each limit, as bars.

import { empty, problem } from "./app.js";
import { bar, fill, h, tag } from "./dom.js";
import { T } from "./text.js";

export function open(app) {
  const agent = app.agent, list = h("div", { class: "wide stack" });
  let timer = 0;

  async function learn() {
    clearTimeout(timer);
    if (agent && agent.is_online) {
      try {
        const used = await agent.try_ask("claw.usage.get");
        fill(list, used ? [...used.limits.map(card), spent(used)] : [empty(T.no_usage, "")],
          used && !used.limits.length ? [empty(T.no_limits, T.no_limits_next)] : []);
      } catch (error) {
        fill(list, problem(error));
      }
    }
    timer = setTimeout(learn, 10000);
  }

  function card(one) {
    const name = T.limits[one.limit] || one.limit, share = one.max > 0 ? one.used / one.max : 1;
    const words = T.used_of(number(one.used), number(one.max));
    const state = share >= 1 ? tag(T.used_up, "off") : share >= 0.8 ? tag(T.nearly, "wait") : tag(T.percent(Math.round(100 * share)));
    return h("section", { class: "card", "aria-label": name },
      h("div", { class: "row" }, h("h2", {}, one.provider ? `${name}, ${one.provider}` : name), state),
      bar(one.used, one.max, words), h("p", { class: "soft" }, words));
  }

  function spent(used) {
    return h("section", { class: "card", "aria-label": T.since_start }, h("h2", {}, T.since_start),
      h("div", { class: "row start" }, [[used.calls_last_minute, T.calls_minute], [used.turns, T.turns], [used.tokens.read, T.tokens_read],
        [used.tokens.written, T.tokens_written], [`${used.cost_usd} $`, T.money]].map(([value, name]) =>
        h("div", {}, h("div", { class: "num" }, typeof value === "number" ? number(value) : value), h("small", {}, name)))));
  }

  fill(app.main, app.head(), list);
  learn();
  return { draw: () => list.childElementCount || learn(), close: () => clearTimeout(timer) };
}

const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 6 });
