"""Whether an image fits a board: what each feature asks of it, heap and flash.

Imports: base, boards, firmware, manifest, memory, providers.
Used by: bench, builder, sim.
"""
