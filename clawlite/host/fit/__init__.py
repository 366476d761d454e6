"""Whether an image fits a board: what each feature asks of it, heap and flash.

Imports: base, boards, firmware, image, manifest, memory, providers.
Used by: bench, builder, sim.
"""
