"""Who is known to the authorization server of mcp_oauth_server.py.

Apart from it, because tests need these names and not what that server is made of.
"""

CLIENT, SECRET, SCOPE = "my agent", "secret-0123456789", "tools:call"
PERSONS = "a person's agent"
CONFIDENTIAL = "a person's agent with a secret"
