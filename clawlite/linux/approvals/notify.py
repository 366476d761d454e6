"""A notice elsewhere that a call waits for approval (``[approvals.notify]`` of clawlite.toml): one
POST to ntfy, or to any other URL.

1. It names the agent, the tool, who asks and the seconds that are left: no arguments.
2. Its link leads to a page where one logs in.  Nobody approves anything by it.
3. A thread sends it, so that no call and no approval waits for a server elsewhere.
"""

import json
import time
from collections import deque

from clawlite.core.base.effect import LOG
from clawlite.core.base.errors import ClawError
from clawlite.linux.io.worker import Worker
from clawlite.linux.net.http_post import post

MOST_WAITING = 100
LEAVE_S = 2  # at the end of the agent
_PAUSES_S = (1, 5, 20)  # before it is tried again
_MAY_PASS = (408, 429)


class Notify:
    """The notices of one agent.

    agent     ``agent.Agent``
    settings  [url, body, name of the secret or None, link] of the image
              (host/channels/approvals.py)
    """

    def __init__(self, agent, settings: list):
        self._agent = agent
        self._url, self._body, self._secret, self._link = settings
        self._is_json = self._body.lstrip()[:2] in ('{"', "{\n", "{ ") or self._body[:1] == "["
        self._name = agent.image.agent.name
        self._waiting: deque = deque(maxlen=MOST_WAITING)  # texts of bodies
        self._faults: deque = deque(maxlen=MOST_WAITING)
        self._worker = Worker(self._work)
        self._is_closing = False

    def tell(self, approval):
        """Send a notice of *approval*."""
        self._waiting.append(self._text(approval).encode())
        self._worker.ring()
        self._worker.begin()

    def report(self):
        """Log what could not be sent since the last call."""
        while self._faults:
            event = {"event": "approval.notice_failed", "reason": self._faults.popleft()}
            self._agent.effects.append((LOG, event))

    def close(self):
        """Send what waits, for ``LEAVE_S`` at most."""
        self._is_closing = True
        self._worker.ring()
        self._worker.join(LEAVE_S)

    def _text(self, approval) -> str:
        words = {
            "agent": self._name,
            "tool": approval.tool.name,
            "who": approval.asker or "the console",
            "seconds": "%d" % approval.timeout_s,
            "link": self._link,
        }
        text = self._body
        guard = self._agent.setup.guard
        for name, value in words.items():
            value = guard.text(value) if guard else value
            text = text.replace("{%s}" % name, json.dumps(value)[1:-1] if self._is_json else value)
        return text

    def _headers(self) -> list:
        kind = "application/json" if self._is_json else "text/plain; charset=utf-8"
        headers = [("Content-Type", kind)]
        if self._link and not self._is_json:
            headers.append(("Click", self._link))  # what ntfy opens when the notice is touched
        return headers

    def _work(self):
        while True:
            if not self._waiting and not self._is_closing:
                self._worker.wait()
            if not self._waiting:
                if self._is_closing:
                    return
                continue
            fault = self._send(self._waiting.popleft())
            if fault:
                self._faults.append(fault)

    def _send(self, body: bytes) -> str:
        """Send *body*; return why it could not be sent, or ""."""
        fault = ""
        for pause in (*_PAUSES_S, 0):
            try:
                status = post(self._url, self._name, self._secret, body, self._headers())
                if 200 <= status < 300:
                    return ""
                fault = "HTTP %d" % status
                if status < 500 and status not in _MAY_PASS:
                    return fault
            except ClawError as e:
                fault = e.message
            until = time.monotonic() + pause
            while time.monotonic() < until and not self._is_closing:
                self._worker.wait(max(0, until - time.monotonic()))
            if self._is_closing:
                return fault
        return fault
