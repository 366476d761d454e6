// Elements are made here, and all that somebody wrote becomes text: nothing is parsed as HTML.

// Marks that nobody sees, halves of characters, and marks that turn a text around. The two joiners
// stay: scripts and emoji need them.
const UNSEEN =
  /[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Return *text* with each such mark written out, as "\\u202e"; elements stay as they are. */
function show(text) {
  if (typeof text !== "string") return text;
  return text.replace(UNSEEN, (one) => "\\u" + one.codePointAt(0).toString(16).padStart(4, "0"));
}

const SPOKEN = ["aria-label", "title", "placeholder"]; // attributes that people read

function set(made, name, value) {
  made.setAttribute(name, SPOKEN.includes(name) ? show(String(value)) : String(value));
}

/** Return an element. Properties "on..." are listeners; children are elements or texts. */
export function h(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) set(made, name, value);
  }
  const there = children.flat().filter((child) => child !== null && child !== undefined);
  made.append(...there.map(show));
  return made;
}

/** Return an element of SVG. */
export function svg(tag, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) set(made, name, value);
  made.append(...children.map(show));
  return made;
}

const CONTROLS = "a[href], button, input, select, textarea, summary";
const card_of = (one) => one.closest("[aria-label]")?.getAttribute("aria-label");
const list_controls = (element, card) =>
  [...element.querySelectorAll(CONTROLS)].filter((one) => card_of(one) === card);

/** Put *children* in the place of all that *element* holds. What had the focus keeps it, or what
 * takes its place in the card of the same name, else *element* gets it. */
export function fill(element, ...children) {
  const there = children.flat().filter((child) => child !== null);
  const was = document.activeElement,
    has_focus = was !== element && element.contains(was),
    card = has_focus && card_of(was),
    at = has_focus && list_controls(element, card).indexOf(was);
  element.replaceChildren(...there.map(show));
  if (has_focus) focus_on(was.isConnected ? was : list_controls(element, card)[at], element);
  return element;
}

/** Give *control* the focus; where it cannot have it, *place*, or the view when that is empty. */
function focus_on(control, place) {
  if (control) control.focus({ preventScroll: true });
  if (control && document.activeElement === control) return;
  const next = place.childElementCount ? place : document.getElementById("main");
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
}

/** Let *button* do nothing while *is_off*. It can have the focus, as a disabled one could not. */
export const turn_off = (button, is_off) => button.setAttribute("aria-disabled", is_off);

document.addEventListener(
  "click",
  (event) => {
    if (!event.target.closest("[aria-disabled=true]")) return;
    event.preventDefault();
    event.stopPropagation();
  },
  true,
);
document.addEventListener("keydown", (event) => {
  // a key that is held down presses a button once
  if (event.repeat && event.key === "Enter" && event.target.matches("button"))
    event.preventDefault();
});

/** Return a tag: a word with a colour, "", "wait" or "off". */
export const tag = (word, kind = "") => h("span", { class: ("tag " + kind).trim() }, word);

/** Return the arguments of a call, one a line, whole. */
export function list_arguments(values) {
  const rows = Object.entries(values || {}).flatMap(([name, value]) => [
    h("span", { class: "soft" }, name),
    h("span", {}, typeof value === "string" ? value : JSON.stringify(value)),
  ]);
  return h("div", { class: "args mono" }, ...rows);
}

/** Return "40 s ago" for *seconds*. */
export function age_of(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const steps = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const [unit, size] = steps.find(([, size]) => seconds >= size) || ["s", 1];
  return `${Math.max(0, Math.floor(seconds / size))} ${unit} ago`;
}

/** Return a time element: "40 s ago", with the full time in its title. */
export function when(iso) {
  if (!iso) return h("span", {}, "");
  const at = new Date(iso);
  const text = age_of((Date.now() - at.getTime()) / 1000);
  return h("time", { datetime: iso, title: at.toLocaleString() }, text);
}

/** Return a line of values, [[seconds, number], ...], as a small picture with *words* for it. */
export function sparkline(samples, words, mark = null) {
  const width = 300,
    height = 44,
    edge = 4;
  const times = samples.map(([time]) => time),
    values = samples.map(([, value]) => value);
  const all = mark === null ? values : [...values, mark];
  const low = Math.min(...all),
    high = Math.max(...all),
    span = high - low || 1;
  const first = times[0],
    length = times[times.length - 1] - first || 1;
  const y = (value) => height - edge - ((value - low) / span) * (height - 2 * edge);
  const points = samples.map(
    ([time, value]) => `${(((time - first) / length) * width).toFixed(1)},${y(value).toFixed(1)}`,
  );
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": words,
      preserveAspectRatio: "none",
    },
    svg("polyline", { class: "curve", points: points.join(" ") }),
  );
  if (mark !== null)
    picture.append(svg("line", { class: "mark", x1: 0, x2: width, y1: y(mark), y2: y(mark) }));
  return picture;
}

/** Return a form field with its label; *input* has an id. */
export const field = (label, input) =>
  h("div", { class: "field" }, h("label", { class: "soft", for: input.id }, label), input);

/** Return a bar for *value* of *most*; *words* say the same. */
export function bar(value, most, words) {
  const share = most > 0 ? value / most : 1;
  return h("progress", {
    max: 1,
    value: Math.min(1, share),
    "aria-label": words,
    class: share >= 1 ? "full" : share >= 0.8 ? "" : "fine",
  });
}

/** Return *value* of a reading with the unit that its *field* names. */
export function with_unit(value, name = "") {
  if (value === null || value === undefined) return "\u2013";
  const last = (name || "").toLowerCase().split("_").pop();
  const unit = {
    percent: "%",
    celsius: "\u00b0C",
    c: "\u00b0C",
    temperature: "\u00b0C",
    hpa: "hPa",
    lux: "lx",
    mm: "mm",
    cm: "cm",
    ppm: "ppm",
  }[last];
  const text = typeof value === "number" ? String(Math.round(value * 100) / 100) : String(value);
  return unit ? `${text} ${unit}` : text;
}
