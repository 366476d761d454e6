"""Readings of a reflex file, and its rules that begin by themselves, with the time zone that they
need.

Imports: base, channels, hardware, models, providers, tools.
Used by: builder, manifest.
"""
