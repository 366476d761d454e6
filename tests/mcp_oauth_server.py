"""An authorization server on Authlib (client credentials, RFC 6749, 4.4) and an MCP server on the
official SDK that takes its tokens alone: ``mcp_oauth_server.py``.  The first line of stdout has the
ports of both.

A line "revoke" on stdin: no token counts any more.  Each line there is answered by one: how many
tokens were given so far, and for which resource the last.
"""

import socket
import sys
import threading

import uvicorn
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants
from flask import Flask, request
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from werkzeug.serving import make_server

CLIENT, SECRET, SCOPE = "my agent", "secret-0123456789", "tools:call"
TOKENS, GIVEN = set(), []


class Client(ClientMixin):
    client_id = CLIENT

    def get_client_id(self):
        return CLIENT

    def get_allowed_scope(self, scope):
        return scope if scope == SCOPE else ""

    def check_client_secret(self, secret):
        return secret == SECRET

    def check_endpoint_auth_method(self, method, endpoint):
        return method == "client_secret_basic"

    def check_grant_type(self, kind):
        return kind == "client_credentials"


def save(token, _):
    TOKENS.add(token["access_token"])
    GIVEN.append(request.form.get("resource"))


app = Flask("tokens")
app.config["OAUTH2_TOKEN_EXPIRES_IN"] = {"client_credentials": 3600}
tokens = AuthorizationServer(
    app, query_client=lambda id: Client() if id == CLIENT else None, save_token=save
)
tokens.register_grant(grants.ClientCredentialsGrant)


@app.post("/token")
def token():
    return tokens.create_token_response()


class Verifier:
    async def verify_token(self, token):
        if token in TOKENS:
            return AccessToken(token=token, client_id=CLIENT, scopes=[SCOPE])
        return None


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

    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    serving = uvicorn.Server(config)
    threading.Thread(target=serving.run, args=([listener],), daemon=True).start()
    print(authority.server_port, port, flush=True)
    for line in sys.stdin:
        if line.strip() == "revoke":
            TOKENS.clear()
        print(len(GIVEN), GIVEN[-1] if GIVEN else None, flush=True)


if __name__ == "__main__":
    main()
