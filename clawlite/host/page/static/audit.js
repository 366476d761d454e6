// The audit: what was decided and what ran, whether all of it is as it was written, and a copy.

import { empty, problem } from "./app.js";
import { fill, h, list_arguments, tag, when } from "./dom.js";
import { T } from "./text.js";

const PAGE = 50;

export function open(app) {
  const agent = app.agent;
  const list = h("div", { class: "wide stack" }),
    verdict = h("div", { class: "wide stack", role: "status" });
  const filter = h("input", {
    type: "search",
    "aria-label": T.filter,
    placeholder: T.filter_audit,
    oninput: wait,
  });
  const more = h("button", { onclick: () => learn(true) }, T.older);
  let records = [],
    timer = 0,
    turn = 0,
    was_asked = false;

  function wait() {
    clearTimeout(timer);
    timer = setTimeout(() => learn(false), 300);
  }

  async function learn(is_older) {
    if (!agent || !agent.is_online || !agent.is_admin) return;
    const mine = ++turn,
      params = { last: PAGE, filter: filter.value.trim() };
    was_asked = true;
    if (!params.filter) delete params.filter;
    const last = records[records.length - 1];
    if (is_older && last && last.n) params.before = last.n;
    try {
      const said = await agent.ask("claw.audit.list", params);
      if (mine !== turn) return;
      records = is_older ? [...records, ...said.records] : said.records;
      fill(
        list,
        records.length ? records.map(card) : [empty(T.no_records, T.no_records_next)],
        said.truncated ? h("div", { class: "row" }, more) : null,
      );
    } catch (error) {
      fill(list, problem(error));
    }
  }

  function card(one) {
    const {
      n,
      time,
      event,
      tool,
      arguments: given,
      action,
      rule_id,
      approval,
      status,
      reason,
      prev,
      hash,
      ...rest
    } = one;
    const decided = [
      T.actions[action] || action,
      rule_id && `${T.rule} ${rule_id}`,
      approval,
      reason,
    ]
      .filter(Boolean)
      .join(" \u00b7 ");
    const state = status ? tag(T.called[status] || status, status === "ok" ? "" : "off") : null;
    const why =
      event === "tool.call"
        ? h("button", { class: "small", onclick: () => find_why(one) }, T.why)
        : null;
    return h(
      "section",
      { class: "card", "aria-label": `${T.record} ${n}` },
      h("div", { class: "row" }, h("h2", {}, tool || event || T.record), state, when(time)),
      given ? list_arguments(read(given)) : null,
      h("p", { class: "soft" }, [`${n}`, event, one.caller].filter(Boolean).join(" \u00b7 ")),
      decided ? h("p", { class: "mono" }, decided) : null,
      Object.keys(rest).length
        ? h("details", {}, h("summary", {}, T.all_of_it), list_arguments(rest))
        : null,
      why ? h("div", { class: "row start" }, why) : null,
    );
  }

  /** Show the call of a record, as the log has it. */
  async function find_why(one) {
    try {
      const { calls } = await agent.ask("claw.call.list", { last: 500 });
      const same = (call) =>
        call.tool === one.tool &&
        call.caller === one.caller &&
        (one.request_id
          ? call.request_id === one.request_id
          : call.time && one.time && call.time.slice(0, 19) === one.time.slice(0, 19));
      app.explain(
        agent,
        calls.find(same) || { ...one, arguments: read(one.arguments), note: T.not_in_log },
      );
    } catch (error) {
      fill(verdict, problem(error));
    }
  }

  async function verify() {
    fill(verdict, h("p", { class: "soft" }, T.looks));
    try {
      const said = await agent.ask("claw.audit.verify");
      fill(
        verdict,
        h(
          "section",
          { class: "card" },
          h(
            "div",
            { class: "row" },
            h("h2", {}, T.verified(said.records, said.first, said.last)),
            said.ok ? tag(T.whole) : tag(T.changed, "off"),
          ),
          said.problems.map((line) => h("p", { class: "problem" }, line)),
          said.ok && said.records
            ? h("p", { class: "mono" }, T.anchor(`${said.last}:${said.hash}`))
            : null,
        ),
      );
    } catch (error) {
      fill(verdict, problem(error));
    }
  }

  async function take() {
    try {
      const lines = [];
      for (let after = 0; after !== undefined;) {
        const said = await agent.ask("claw.audit.export", { after });
        lines.push(...said.lines);
        after = said.next;
      }
      const url = URL.createObjectURL(
        new Blob([lines.map((line) => line + "\n").join("")], { type: "application/jsonl" }),
      );
      const link = h("a", { href: url, download: `${agent.name}-audit.jsonl` });
      link.click();
      URL.revokeObjectURL(url);
      fill(verdict, h("p", { class: "soft" }, T.exported(lines.length)));
    } catch (error) {
      fill(verdict, problem(error));
    }
  }

  const buttons =
    agent && agent.is_admin
      ? h(
          "div",
          { class: "row wide" },
          h("button", { onclick: verify }, T.verify),
          h("button", { onclick: take }, T.export),
        )
      : null;
  fill(
    app.main,
    app.head(),
    agent && !agent.is_admin ? empty(T.audit_admin, "") : h("div", { class: "wide" }, filter),
    buttons,
    verdict,
    list,
  );
  learn(false);
  return { draw: () => was_asked || learn(false), close: () => clearTimeout(timer) };
}

/** Return the arguments of a record, which has them as text. */
function read(given) {
  try {
    return typeof given === "string" ? JSON.parse(given) : given;
  } catch {
    return { arguments: given };
  }
}
