"""Pins, analog values and buses of this machine, real or simulated.

Imports: io.
Used by: rules, runtime, tools.
"""
