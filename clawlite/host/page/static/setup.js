// Boards at USB, what fits them and why not, a project from the gallery, and its way onto a board.

import { empty, problem } from "./app.js";
import { field, fill, h, tag, turn_off } from "./dom.js";
import { T } from "./text.js";

const BOARD_KINDS = { free: "", busy: "off", bootloader: "wait", "not permitted": "off" };

/** Do *job*; *hear* gets each line of progress. Return its result, or throw what it says. */
async function run(job, hear = () => {}) {
  const answer = await fetch("/setup", {
    method: "POST",
    headers: { "X-Claw": "1", "Content-Type": "application/json" },
    body: JSON.stringify(job),
  });
  if (!answer.ok) throw new Error((await answer.json()).error);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "",
    last = {};
  for (;;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value || "")).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      last = JSON.parse(line);
      if (last.progress) hear(last);
    }
    if (done) break;
  }
  if (last.result === undefined)
    throw new Error(last.hint ? `${last.error} - ${last.hint}` : last.error || "");
  return last.result;
}

/** Return a button that does nothing while its *work* is under way. */
function work_button(name, work) {
  const button = h("button", { onclick: begin }, name);
  async function begin() {
    turn_off(button, true);
    await work();
    turn_off(button, false);
  }
  return button;
}

export function open(app) {
  const here = h("div", { class: "wide stack" }),
    next = h("div", { class: "wide stack", role: "status" });
  let seen = null,
    chosen = null; // what was found; the port that is set up
  const projects = new Map(); // name and port -> its card, which goes on while all is drawn anew
  const again = h("div", { class: "row" }, work_button(T.look_again, look));

  async function look() {
    fill(here, again); // what is gone cannot be chosen meanwhile
    try {
      seen = await run({ do: "look" });
      if (chosen && !seen.ports.some((one) => one.port === chosen.port)) chosen = null;
      draw_here();
    } catch (error) {
      fill(here, problem(error), again);
    }
  }

  function draw_here() {
    const cards = seen.ports.map(card);
    fill(
      here,
      h("h2", {}, T.boards_here),
      cards.length ? cards : [empty(T.no_boards, T.no_boards_next)],
      again,
      seen.projects.length ? [h("h2", {}, T.projects), ...seen.projects.map(project)] : [],
      seen.more ? h("p", { class: "soft" }, T.more_projects(seen.more, seen.folder)) : null,
    );
  }

  function card(port) {
    const board = port.boards[0],
      title = board ? seen.titles[board] || board : T.unknown_board;
    const holders = (port.holders || []).map((one) => one.name).join(", ");
    const choose =
      board && port.port ? h("button", { onclick: () => fit(port, board) }, T.choose_board) : null;
    return h(
      "section",
      { class: "card", "aria-label": [title, port.port].filter(Boolean).join(" ") },
      h(
        "div",
        { class: "row" },
        h("h2", {}, title),
        tag(T.board_states[port.state] || port.state, BOARD_KINDS[port.state] ?? "wait"),
      ),
      h(
        "p",
        { class: "mono" },
        [port.port, port.usb, port.serial].filter(Boolean).join(" \u00b7 "),
      ),
      port.virtual ? h("p", { class: "soft" }, T.virtual) : null,
      holders ? h("p", { class: "soft" }, T.held_by(holders)) : null,
      choose ? h("div", { class: "row" }, choose) : null,
    );
  }

  async function fit(port, board) {
    chosen = { port: port.port, board };
    const said = h("p", { class: "soft" }),
      list = h("div", { class: "stack" });
    fill(next, h("h2", {}, T.what_fits(seen.titles[board] || board)), said, list);
    draw_here();
    try {
      await run({ do: "fit", board }, ({ progress, row }) => {
        said.textContent = T.looking_what_fits(progress.done, progress.of);
        list.append(template(row));
      });
      said.textContent = "";
    } catch (error) {
      fill(said, problem(error));
    }
  }

  function template(row) {
    const body = row.fits
      ? h(
          "div",
          { class: "row" },
          h("button", { onclick: () => ask_name(row) }, T.make_of(row.name)),
        )
      : h("details", {}, h("summary", {}, T.why_not), h("p", { class: "mono pre" }, row.why));
    return h(
      "section",
      { class: "card", "aria-label": row.name },
      h(
        "div",
        { class: "row" },
        h("h2", {}, row.name),
        row.fits ? tag(T.fits) : tag(T.fits_not, "off"),
      ),
      h("p", { class: "soft" }, row.about),
      body,
    );
  }

  function ask_name(row) {
    const name = h("input", {
      id: "project",
      value: row.name,
      pattern: "[a-z0-9](?:[a-z0-9\\-]{0,38}[a-z0-9])?",
      required: true,
      autocomplete: "off",
    });
    const said = h("div", {});
    async function make(event) {
      event.preventDefault();
      try {
        const made = await run({
          do: "make",
          name: name.value,
          template: row.name,
          board: chosen.board,
        });
        fill(here);
        fill(next, h("p", { class: "soft" }, T.made(made.folder)), project(name.value));
        next.querySelector("button").focus();
      } catch (error) {
        fill(said, problem(error));
      }
    }
    fill(
      next,
      h(
        "section",
        { class: "card" },
        h("h2", {}, T.make_of(row.name)),
        h(
          "form",
          { onsubmit: make },
          field(T.project_name, name),
          h("div", { class: "row" }, h("button", { class: "yes" }, T.make)),
        ),
        said,
      ),
    );
    name.focus();
  }

  /** A project: what would be written to the chosen board, and then it is. */
  function project(name) {
    const where =
      chosen ||
      seen.ports
        .filter((one) => one.port && one.boards.length)
        .map((one) => ({ port: one.port, board: one.boards[0] }))[0];
    const key = JSON.stringify([name, where]);
    if (!projects.has(key)) projects.set(key, project_card(name, where));
    return projects.get(key);
  }

  function project_card(name, where) {
    const said = h("div", { class: "stack" });
    const plan_button = work_button(T.plan, plan);
    turn_off(plan_button, !where);

    async function plan() {
      fill(said, h("p", { class: "soft" }, T.building));
      try {
        const found = await run({ do: "plan", name, ...where });
        const files = found.files.filter((one) => one.change !== "same");
        fill(
          said,
          found.travels
            ? [
                h("p", {}, T.planned(found.travels, files.length, found.slot)),
                h(
                  "details",
                  {},
                  h("summary", {}, T.all_of_it),
                  h(
                    "ul",
                    { class: "plain mono" },
                    files.map((one) => h("li", {}, `${one.change} ${one.path} ${one.bytes}`)),
                  ),
                ),
                h("div", { class: "row" }, h("button", { class: "yes", onclick: flash }, T.flash)),
              ]
            : h("p", {}, T.nothing_to_write),
        );
      } catch (error) {
        fill(said, problem(error));
      }
    }

    async function flash() {
      const bar = h("progress", { max: 1, value: 0, "aria-label": T.flashing, class: "fine" }),
        words = h("p", { class: "soft" }, T.flashing);
      plan_button.focus({ preventScroll: true }); // the other one goes
      turn_off(plan_button, true);
      fill(said, bar, words);
      try {
        const found = await run({ do: "flash", name, ...where }, ({ progress }) => {
          bar.value = progress.done / progress.of;
          words.textContent = T.written(progress.done, progress.of);
        });
        fill(
          said,
          h("div", { class: "row" }, tag(T.flashed)),
          h("p", { class: "mono pre" }, found.said || T.nothing_to_write),
        );
      } catch (error) {
        fill(said, problem(error));
      }
      turn_off(plan_button, false);
    }

    return h(
      "section",
      { class: "card", "aria-label": T.project(name) },
      h("h2", {}, name),
      where ? h("p", { class: "mono" }, `${where.port} \u00b7 ${where.board}`) : null,
      h("div", { class: "row" }, plan_button),
      said,
    );
  }

  fill(app.main, h("h1", { class: "wide" }, T.views.setup), next, here);
  if (app.agents.length && app.agents.every((agent) => !agent.is_admin))
    fill(here, [empty(T.setup_admin, "")]);
  else look();
  return { draw: () => {}, close: () => {} };
}
