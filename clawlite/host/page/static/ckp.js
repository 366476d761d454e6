// One agent over one WebSocket: requests, their answers, and what it tells by itself.

const AGAIN_MS = [500, 1000, 2000, 5000, 10000];

export class Agent extends EventTarget {
  /** *row*: {agent, role, ckp} as the page's list of agents has it. */
  constructor(row) {
    super();
    this.name = row.agent;
    this.role = row.role;
    this.path = row.ckp;
    this.is_online = this.was_online = false;
    this.seen = row.seen || null; // when it was there last, while it is not
    this.why = "";
    this.capabilities = {};
    this._waiting = new Map();
    this._next = 1;
    this._failures = 0;
  }

  get is_admin() {
    return this.role === "admin";
  }

  open() {
    const socket = new WebSocket(new URL(this.path, location.href.replace(/^http/, "ws")), "ckp");
    this._socket = socket;
    socket.onopen = () => this._begin();
    socket.onmessage = (event) => this._take(JSON.parse(event.data));
    socket.onclose = () => this._lose();
  }

  async _begin() {
    try {
      const said = await this.ask("claw.initialize", {
        protocolVersion: "0.3.0",
        clientInfo: { name: "clawlite page", version: "1" },
        // the agent that runs stays, whatever a manifest says
        manifest: {
          claw: "0.3.0",
          kind: "Claw",
          metadata: { name: this.name },
          spec: { identity: "./identity.yaml", providers: ["./provider.yaml"] },
        },
        capabilities: {},
      });
      this.capabilities = said.capabilities;
      this._failures = 0;
      this._set(true, "");
    } catch (error) {
      this.why = error.message;
      this._socket.close();
    }
  }

  _lose() {
    for (const [, { fail }] of this._waiting) fail(new Error("the link to the agent is gone"));
    this._waiting.clear();
    this._set(false, this.why);
    const pause = AGAIN_MS[Math.min(this._failures++, AGAIN_MS.length - 1)];
    setTimeout(() => this.open(), pause);
  }

  _set(is_online, why) {
    if (this.is_online && !is_online) this.seen = new Date().toISOString();
    this.was_online = this.was_online || is_online;
    this.is_online = is_online;
    this.why = why;
    this.dispatchEvent(new Event("link"));
  }

  _take(message) {
    if (message.method) {
      this.dispatchEvent(new CustomEvent(message.method, { detail: message.params || {} }));
      return;
    }
    const waiting = this._waiting.get(message.id);
    if (!waiting) return;
    this._waiting.delete(message.id);
    if (message.error) waiting.fail(new AgentError(message.error));
    else waiting.give(message.result);
  }

  /** Return the result of a request. Throws what the agent says in its place. */
  ask(method, params = {}) {
    return new Promise((give, fail) => {
      if (!this._socket || this._socket.readyState !== WebSocket.OPEN) {
        fail(new Error("the link to the agent is gone"));
        return;
      }
      const id = this._next++;
      this._waiting.set(id, { give, fail });
      this._socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  /** As ``ask``; null where this agent has no such method, or this person may not use it. */
  async try_ask(method, params = {}) {
    try {
      return await this.ask(method, params);
    } catch (error) {
      if (error.code === -32601 || error.code === -32011 || error.code === undefined) return null;
      throw error;
    }
  }
}

export class AgentError extends Error {
  constructor(error) {
    const hint = error.data && error.data.hint;
    super(hint ? `${error.message} - ${hint}` : error.message);
    this.code = error.code;
  }
}
