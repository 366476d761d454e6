"""Pins, analog values and buses of this machine, real or simulated.

Imports: files, io.
Used by: rules, runtime, tools.
"""
