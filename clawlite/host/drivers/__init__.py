"""Drivers for sensors and other devices: fetched from mip's index, a URL or a file, pinned in
clawlite.lock, and what the kernel of a Pi has in their place.

Imports: base, documents, firmware.
Used by: builder, manifest, tools.
"""
