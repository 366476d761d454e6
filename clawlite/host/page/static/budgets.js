// What was used of each limit, as bars.

import { empty, follow } from "./app.js";
import { bar, h, tag } from "./dom.js";
import { T } from "./text.js";

export function open(app) {
  async function show(agent) {
    const used = await agent.try_ask("claw.usage.get");
    if (!used) return [empty(T.no_usage, "")];
    const none = used.limits.length ? [] : [empty(T.no_limits, T.no_limits_next)];
    return [...used.limits.map(card), spent(used), ...none];
  }

  function card(one) {
    const name = T.limits[one.limit] || one.limit,
      share = one.max > 0 ? one.used / one.max : 1;
    const words = T.used_of(number(one.used), number(one.max));
    const state =
      share >= 1
        ? tag(T.used_up, "off")
        : share >= 0.8
          ? tag(T.nearly, "wait")
          : tag(T.percent(Math.round(100 * share)));
    return h(
      "section",
      { class: "card", "aria-label": name },
      h(
        "div",
        { class: "row" },
        h("h2", {}, one.provider ? `${name}, ${one.provider}` : name),
        state,
      ),
      bar(one.used, one.max, words),
      h("p", { class: "soft" }, words),
    );
  }

  function spent(used) {
    return h(
      "section",
      { class: "card", "aria-label": T.since_start },
      h("h2", {}, T.since_start),
      h(
        "div",
        { class: "row start" },
        [
          [used.calls_last_minute, T.calls_minute],
          [used.turns, T.turns],
          [used.tokens.read, T.tokens_read],
          [used.tokens.written, T.tokens_written],
          [`${used.cost_usd} $`, T.money],
        ].map(([value, name]) =>
          h(
            "div",
            {},
            h("div", { class: "num" }, typeof value === "number" ? number(value) : value),
            h("small", {}, name),
          ),
        ),
      ),
    );
  }

  return follow(app, h("div", { class: "wide stack" }), 10, show);
}

const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 6 });
