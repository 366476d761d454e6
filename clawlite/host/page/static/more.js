// On a phone: the views that the bar has no room for.

import { REST } from "./app.js";
import { fill, h } from "./dom.js";
import { T } from "./text.js";

export function open(app) {
  const suffix = app.agent ? "/" + encodeURIComponent(app.agent.name) : "";
  fill(
    app.main,
    h("h1", { class: "wide" }, T.views.more),
    REST.map((view) =>
      h(
        "a",
        { class: "card", href: `#${view}${suffix}` },
        h("h2", {}, T.views[view]),
        h("p", { class: "soft" }, T.about[view]),
      ),
    ),
  );
  return { draw: () => {}, close: () => {} };
}
