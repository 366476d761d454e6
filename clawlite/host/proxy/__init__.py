"""The mediating proxy: the HTTP APIs of OpenAI and Anthropic for runners that are not clawlite.

Imports: base.
Used by: a2a, gateway, page.
"""
