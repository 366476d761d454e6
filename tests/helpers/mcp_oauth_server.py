"""An authorization server on Authlib (client credentials, RFC 6749, 4.4; the device flow, RFC 8628;
refresh tokens that count once) and an MCP server on the official SDK that takes its tokens alone:
``mcp_oauth_server.py``.  The first line of stdout has the ports of both.

Lines on stdin, each answered by one: how many access tokens were given so far, and for which
resource the last.

    revoke        no access token counts any more
    agree, deny   what a person says to each code from now on; before, nothing
    forget        no refresh token counts any more
    strict        a refresh token that comes a second time ends the sign-in (RFC 9700, 4.14.2)
    hold, go      requests for tokens wait, and go on
    meta JSON     the metadata of the authorization server have these fields in place of its own
    protected JSON, or null   the metadata of the MCP server are these, or there are none
    reset         all is as at the start: no token was given, and nothing was said
"""

import json
import socket
import sys
import threading

import uvicorn
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant
from flask import Flask, request
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp_oauth_clients import CLIENT, CONFIDENTIAL, PERSONS, SCOPE, SECRET
from starlette.responses import JSONResponse
from werkzeug.serving import make_server

TOKENS, GIVEN = set(), []
CODES, REFRESH = {}, set()  # device code -> Code; refresh tokens that count
STRICT: list = []
GOES_ON = threading.Event()
GOES_ON.set()
SAYS: dict = {}  # "person": True or False, once they have said it
METADATA: dict = {}
PROTECTED: dict = {}  # "is": what is served in place of the SDK's own


class Client(ClientMixin):
    """The agent: with a secret by itself, or without one for a person."""

    def __init__(self, name: str):
        self.client_id = name

    def get_client_id(self):
        return self.client_id

    def get_allowed_scope(self, scope):
        return scope if scope == SCOPE else ""

    def check_client_secret(self, secret):
        return secret == SECRET

    def check_endpoint_auth_method(self, method, endpoint):
        return method == ("none" if self.client_id == PERSONS else "client_secret_basic")

    def check_grant_type(self, kind):
        return (kind == "client_credentials") == (self.client_id == CLIENT)


class Code:
    """What was given to a device."""

    def __init__(self, client: str, scope: str, data: dict):
        self._client, self._scope, self._data = client, scope, data

    def get_client_id(self):
        return self._client

    def get_scope(self):
        return self._scope

    def get_user_code(self):
        return self._data["user_code"]

    def is_expired(self):
        return False

    def check_client(self, client):
        return client.get_client_id() == self._client


class Device(DeviceAuthorizationEndpoint):
    INTERVAL = 1

    def get_verification_uri(self):
        return request.host_url + "activate"

    def save_device_credential(self, client_id, scope, data):
        CODES[data["device_code"]] = Code(client_id, scope, data)


class ByDevice(DeviceCodeGrant):
    def query_device_credential(self, device_code):
        return CODES.get(device_code)

    def query_user_grant(self, user_code):
        return ("ada", SAYS["person"]) if "person" in SAYS else None

    def should_slow_down(self, credential):
        return False


class ByRefresh(grants.RefreshTokenGrant):
    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS = ["none", "client_secret_basic"]

    def authenticate_refresh_token(self, refresh_token):
        if refresh_token not in REFRESH:
            if STRICT:
                REFRESH.clear()
            return None
        return Code(request.form["client_id"], SCOPE, {"refresh": refresh_token})

    def authenticate_user(self, refresh_token):
        return "ada"

    def revoke_old_credential(self, refresh_token):
        REFRESH.discard(request.form["refresh_token"])


def save(token, _):
    TOKENS.add(token["access_token"])
    if "refresh_token" in token:
        REFRESH.add(token["refresh_token"])
    GIVEN.append(request.form.get("resource"))


app = Flask("tokens")
app.config["OAUTH2_TOKEN_EXPIRES_IN"] = {"client_credentials": 3600}
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
tokens = AuthorizationServer(
    app,
    query_client=lambda id: Client(id) if id in (CLIENT, PERSONS, CONFIDENTIAL) else None,
    save_token=save,
)
tokens.register_grant(grants.ClientCredentialsGrant)
ByDevice.TOKEN_ENDPOINT_AUTH_METHODS = ["none", "client_secret_basic"]
tokens.register_grant(ByDevice)
tokens.register_grant(ByRefresh)
tokens.register_endpoint(Device)


@app.post("/token")
def token():
    GOES_ON.wait(60)
    return tokens.create_token_response()


@app.post("/device")
def device():
    return tokens.create_endpoint_response("device_authorization")


@app.get("/.well-known/oauth-authorization-server")
def metadata():
    own = request.host_url
    return {
        "issuer": own.rstrip("/"),
        "token_endpoint": own + "token",
        "device_authorization_endpoint": own + "device",
        "grant_types_supported": ["client_credentials", DeviceCodeGrant.GRANT_TYPE],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
        **METADATA,
    }


class Verifier:
    async def verify_token(self, token):
        if token in TOKENS:
            return AccessToken(token=token, client_id=CLIENT, scopes=[SCOPE])
        return None


def told(line: str):
    """Do what *line* of stdin says."""
    word, _, rest = line.strip().partition(" ")
    if word == "revoke":
        TOKENS.clear()
    elif word == "forget":
        REFRESH.clear()
    elif word == "strict":
        STRICT.append(True)
    elif word == "hold":
        GOES_ON.clear()
    elif word == "go":
        GOES_ON.set()
    elif word in ("agree", "deny"):
        SAYS["person"] = word == "agree"
    elif word == "meta":
        METADATA.update(json.loads(rest))
    elif word == "protected":
        PROTECTED["is"] = json.loads(rest)
    elif word == "reset":
        for one in (TOKENS, GIVEN, CODES, REFRESH, SAYS, METADATA, PROTECTED):
            one.clear()


def published(inner):
    """Return the app *inner*, whose metadata may be others."""

    async def outer(scope, receive, send):
        if "is" in PROTECTED and "/.well-known/" in scope.get("path", ""):
            found = PROTECTED["is"]
            answer = JSONResponse(found, 200 if found else 404)
            return await answer(scope, receive, send)
        return await inner(scope, receive, send)

    return outer


def main():
    authority = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=authority.serve_forever, daemon=True).start()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    auth = AuthSettings(
        issuer_url="http://127.0.0.1:%d" % authority.server_port,
        resource_server_url="http://127.0.0.1:%d/mcp" % port,
        required_scopes=[SCOPE],
    )
    server = MCPServer("remote", token_verifier=Verifier(), auth=auth)

    @server.tool()
    def echo(text: str) -> str:
        """Give a text back."""
        return text

    config = uvicorn.Config(published(server.streamable_http_app()), log_level="error")
    serving = uvicorn.Server(config)
    threading.Thread(target=serving.run, args=([listener],), daemon=True).start()
    print(authority.server_port, port, flush=True)
    for line in sys.stdin:
        told(line)
        print(len(GIVEN), GIVEN[-1] if GIVEN else None, flush=True)


if __name__ == "__main__":
    main()
