"""The page's routes: who asks is known before anything else happens.

GET  /                what is here, for who is logged in; HTML, or JSON where that is asked for
GET  /login           a form that works without scripts
POST /login, /logout  a session cookie is given, or ends
GET  /static/NAME     files of the package, which say nothing of anybody
POST /setup           a job of Setup (setup.py), whose lines are the answer
     /ckp/AGENT       POST, GET, DELETE: Streamable HTTP; GET with Upgrade: WebSocket (sessions.py)
"""

import asyncio
import os
from importlib import resources
from urllib.parse import parse_qs

from clawlite.host.gateway_operators.board_names import file_name
from clawlite.host.page.agent_line import AgentGone
from clawlite.host.page.boards import find_boards, tell_absence
from clawlite.host.page.guard import HEADER, HEADERS
from clawlite.host.page.known_people import BOARD, GATEWAY
from clawlite.host.page.logins import LASTS_S
from clawlite.host.page.sessions import Sessions
from clawlite.host.page.setup import Setup
from clawlite.host.proxy.http_server import bearer_of

_MOST_FORM = 1024  # bytes of the login form
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_LOGIN = """\
<form method="post" action="/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button>
</form>
<p>Whoever runs the agent makes a token: <code>clawlite people add NAME --role user</code></p>
"""


class Site:
    """The requests of one page.

    people, logins, guard  ``KnownPeople``, ``Logins``, ``Guard``
    """

    def __init__(self, people, logins, guard):
        self._people, self._logins, self._guard = people, logins, guard
        self.sessions = Sessions(people, logins)
        self.setup = Setup({**os.environ, "CLAWLITE_STATE": people.root})
        folder = resources.files("clawlite.host.page") / "static"
        self._files = {
            file.name: file.read_bytes() for file in folder.iterdir() if "." in file.name[1:]
        }

    def routes(self) -> list:
        """Return the routes, as ``http_server.HTTPServer`` has them."""
        return [
            ("GET", "/", self._guard_route(self._home)),
            ("GET", "/login", self._guard_route(self._form)),
            ("POST", "/login", self._guard_route(self._log_in)),
            ("POST", "/logout", self._guard_route(self._log_out)),
            ("GET", "/static/{name}", self._guard_route(self._file)),
            ("POST", "/setup", self._guard_route(self._set_up)),
            ("*", "/ckp/{place}", self._guard_route(self._operate)),
        ]

    async def missing(self, request):
        return await self._guard_route(self._nothing)(request)

    def _guard_route(self, handle):
        """Return *handle* behind the guard; its answers carry ``HEADERS``."""

        async def answer(request):
            from aiohttp import web

            refusal = self._guard.refusal(request)
            if refusal:
                return _make_error(*refusal)
            try:
                response = await handle(request)
            except AgentGone as e:
                response = _make_error(503, f"{e.message} - {e.hint}")
            except web.HTTPException as e:
                response = _make_error(e.status, (e.text or e.reason).strip(), e.headers)
            if not response.prepared:
                response.headers.update(HEADERS)
            return response

        return answer

    async def _nothing(self, request):
        return _make_error(404, "there is nothing here")

    # -- who asks

    def _token(self, request) -> bytes | None:
        token = bearer_of(request)
        return None if token is None else token.encode("latin-1", "replace")

    def _login(self, request):
        """Return the ``Login`` of who asks, or None.  Raises an error of HTTP."""
        token = self._token(request)
        if token is None:
            return self._logins.find(request.cookies.get(self._guard.cookie, ""))
        return self._try(request, self._logins.bearer, token)

    def _try(self, request, log_in, token: bytes):
        from aiohttp import web

        address = self._guard.address(request)
        if not self._logins.may_try(address):
            raise web.HTTPTooManyRequests(
                text="too many wrong tokens: try again in a minute\n",
                headers={"Retry-After": "60"},
            )
        found = log_in(token)
        if not found or found == (None, ""):
            self._logins.count_failure(address)
        return found

    # -- the page

    async def _form(self, request):
        return _page("Log in", _LOGIN)

    async def _log_in(self, request):
        if not self._guard.is_same_origin(request):
            return _make_error(403, "Origin: expected that of this page")
        token = await _token_of_form(request)
        login, id = self._try(request, self._logins.begin, token)
        if login is None:
            return _page("Log in", "<p role=alert>That token opens nothing here.</p>" + _LOGIN, 401)
        self._logins.end(request.cookies.get(self._guard.cookie, ""))
        response = _redirect("/")
        response.set_cookie(
            self._guard.cookie,
            id,
            path="/",
            max_age=LASTS_S,
            httponly=True,
            samesite="Strict",
            secure=self._guard.is_secure,
        )
        return response

    async def _log_out(self, request):
        if not self._guard.is_same_origin(request):
            return _make_error(403, "Origin: expected that of this page")
        id = request.cookies.get(self._guard.cookie, "")
        login = self._logins.find(id)
        self._logins.end(id)
        if login is not None:
            await self.sessions.end_login(login)
        response = _redirect("/login")
        response.del_cookie(
            self._guard.cookie, path="/", secure=self._guard.is_secure, samesite="Strict"
        )
        return response

    async def _home(self, request):
        from aiohttp import web

        login, is_json = self._login(request), "json" in request.headers.get("Accept", "")
        if login is None:
            return _make_error(401, "expected a login") if is_json else _redirect("/login")
        rows = [
            {
                "agent": place,
                "role": person.role,
                "online": self._people.is_online(place),
                "seen": self._people.find_last_sign(place),
                "ckp": f"/ckp/{place}",
            }
            for place, person in sorted(login.places.items())
            if place != GATEWAY
        ]
        boards = find_boards(self._people.root) if GATEWAY in login.places else []
        for board in boards:
            rows.append(self._add_link(login, board))
        if is_json:
            return web.json_response({"person": login.name, "agents": rows, "boards": boards})
        return web.Response(body=self._files["index.html"], content_type="text/html")

    def _add_link(self, login, board: dict) -> dict:
        """Say in *board* how it is reached; return its row, as that of an agent."""
        name, file = board["board"], file_name(board["board"])
        board["ckp"] = "/ckp/" + BOARD + file
        is_online = self._people.is_online(BOARD + file)
        return {
            "agent": BOARD + name if name in login.places else name,
            "role": login.places[GATEWAY].role,
            "online": is_online,
            "ckp": board["ckp"],
            "board": name,
            "seen": None if is_online else board["seen"],
            "why": "" if is_online else tell_absence(board),
        }

    async def _file(self, request):
        from aiohttp import web

        name = request.match_info["name"]
        if name not in self._files:
            return await self._nothing(request)
        kind = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        return web.Response(body=self._files[name], content_type=kind)

    # -- operators

    async def _set_up(self, request):
        login = self._login(request)
        if login is None:
            return _ask_for_token()
        if login.is_cookie and HEADER not in request.headers:
            return _make_error(403, f"expected the header {HEADER}: 1, which no form can send")
        return await self.setup.answer(request, login)

    async def _operate(self, request):
        from aiohttp import web

        login = self._login(request)
        if login is None:
            return _ask_for_token()
        place = request.match_info["place"]
        if login.person(place) is None:
            return _make_error(404, "no agent of this name is here for you")
        handle = {
            "POST": self.sessions.post,
            "DELETE": self.sessions.delete,
            "GET": self.sessions.get,
        }.get(request.method)
        if handle is None:
            raise web.HTTPMethodNotAllowed(request.method, ("GET", "POST", "DELETE"))
        if request.headers.get("Upgrade", "").lower() == "websocket":
            handle = self.sessions.websocket
            if login.is_cookie and not self._guard.is_same_origin(request):
                return _make_error(403, "Origin: expected that of this page")
        elif login.is_cookie and request.method != "GET" and HEADER not in request.headers:
            return _make_error(403, f"expected the header {HEADER}: 1, which no form can send")
        return await handle(request, login, place)


async def _token_of_form(request) -> bytes:
    """Return the token in a form.  Raises an error of HTTP."""
    from aiohttp import web

    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType(text="expected a form\n")
    if (request.content_length or 0) > _MOST_FORM:
        raise web.HTTPRequestEntityTooLarge(_MOST_FORM, text="expected a token\n")
    try:
        async with asyncio.timeout(10):
            body = await request.content.read(_MOST_FORM + 1)
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the form came too slowly\n") from None
    fields = parse_qs(body[:_MOST_FORM].decode("latin-1"), max_num_fields=4)
    return fields.get("token", [""])[0].strip().encode("latin-1", "replace")


def _page(title: str, inside: str, status: int = 200):
    """Return an answer in HTML; *title* and *inside* are HTML already."""
    from aiohttp import web

    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title} - clawlite</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="/static/icon.svg">\n'
        '<link rel="stylesheet" href="/static/page.css">\n</head>\n'
        f"<body>\n<main>\n<h1>{title}</h1>\n{inside}</main>\n</body>\n</html>\n"
    )
    return web.Response(text=text, content_type="text/html", charset="utf-8", status=status)


def _redirect(place: str):
    from aiohttp import web

    return web.Response(status=303, headers={"Location": place})


def _ask_for_token():
    response = _make_error(401, "expected the header Authorization: Bearer NAME:TOKEN, or a login")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _make_error(status: int, sentence: str, headers=None):
    """Return an error as JSON."""
    from aiohttp import web

    response = web.json_response({"error": sentence}, status=status)
    for name in ("Retry-After", "Allow"):
        if headers and name in headers:
            response.headers[name] = headers[name]
    response.headers.update(HEADERS)
    return response
