"""The mediating proxy: the HTTP APIs of OpenAI and Anthropic for runners that are not clawlite.

Imports: base.
Used by: gateway.
"""
