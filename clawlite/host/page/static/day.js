// What a rule would have done in the last day: the readings it looks at, and its runs, drawn.

import { h, svg, with_unit } from "./dom.js";
import { threshold } from "./home.js";
import { T } from "./text.js";

const WIDTH = 720,
  HEIGHT = 132,
  TOP = 8,
  BOTTOM = 108;
const KINDS = { ok: "", expired: "wait", denied: "off" };

/** *played*: of claw.rule.rehearse; *readings*, *curves*: what it looks at, and their samples. */
export function draw_day(rule, played, readings, curves) {
  const from = Date.parse(played.from),
    to = Date.parse(played.to);
  const x = (at_ms) => ((at_ms - from) / (to - from)) * WIDTH;
  const title = `${T.rehearsal}. ${T.rehearsed(played.runs.length)}`;
  const picture = svg("svg", {
    class: "day",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    "aria-label": title,
  });
  draw_hours(picture, from, to, x);
  curves.forEach((curve, at) =>
    draw_curve(picture, curve, at ? null : threshold(readings[at].name, [rule]), x),
  );
  for (const run of played.runs) {
    const at = x(Date.parse(run.at));
    const line = svg("line", {
      class: `run ${KINDS[run.status] ?? "off"}`,
      x1: at,
      x2: at,
      y1: TOP,
      y2: BOTTOM,
    });
    line.append(svg("title", {}, `${time_of(run.at)} ${run.tool}`));
    picture.append(line);
  }
  const names = readings.map((one) => `${one.name} ${with_unit(one.value, one.field)}`).join(", ");
  const skipped = Object.entries(played.skipped[rule.name] || {});
  return h(
    "div",
    { class: "stack" },
    h(
      "figure",
      {},
      picture,
      h("figcaption", { class: "soft" }, names ? `${names}. ${title}` : title),
    ),
    h(
      "ul",
      { class: "plain" },
      played.runs.map((run) => h("li", {}, said_of(run))),
      skipped.map(([reason, count]) => h("li", { class: "soft" }, T.left_out(reason, count))),
    ),
    h("p", { class: "soft" }, T.nothing_acts),
  );
}

function draw_hours(picture, from, to, x) {
  const first = new Date(from);
  first.setMinutes(0, 0, 0);
  for (let at = first.getTime(); at <= to; at += 3600000) {
    const hour = new Date(at).getHours();
    if (at < from || hour % 6) continue;
    picture.append(svg("line", { class: "tick", x1: x(at), x2: x(at), y1: TOP, y2: BOTTOM }));
    const text = svg("text", { x: Math.min(x(at) + 3, WIDTH - 30), y: HEIGHT - 8 });
    text.textContent = `${hour}:00`;
    picture.append(text);
  }
  picture.append(svg("line", { class: "tick", x1: 0, x2: WIDTH, y1: BOTTOM, y2: BOTTOM }));
}

function draw_curve(picture, curve, mark, x) {
  const samples = curve.samples.filter(([, value]) => typeof value === "number");
  if (samples.length < 2) return;
  const all = samples.map(([, value]) => value).concat(mark === null ? [] : [mark]);
  const low = Math.min(...all),
    span = Math.max(...all) - low || 1;
  const y = (value) => BOTTOM - 6 - ((value - low) / span) * (BOTTOM - TOP - 12);
  picture.append(
    svg("polyline", {
      class: "curve",
      points: samples
        .map(([at_s, value]) => `${x(at_s * 1000).toFixed(1)},${y(value).toFixed(1)}`)
        .join(" "),
    }),
  );
  if (mark !== null)
    picture.append(svg("line", { class: "mark", x1: 0, x2: WIDTH, y1: y(mark), y2: y(mark) }));
}

const time_of = (iso) =>
  new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

function said_of(run) {
  const values = Object.entries(run.values || {})
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  const given = Object.entries(run.arguments || {})
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    .join(", ");
  const end = T.rehearsal_ends[run.status] || run.status;
  return [
    time_of(run.at),
    [run.tool, given].filter(Boolean).join(" "),
    end,
    run.rule_id && `${T.rule} ${run.rule_id}`,
    values,
  ]
    .filter(Boolean)
    .join(" \u00b7 ");
}
