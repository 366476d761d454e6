"""Whether an image fits a board: its abilities, pins, stores, heap and flash.

Imports: base, boards, compiler, documents, firmware, memory, policy, providers, rules, swarm,
tools.
Used by: bench, builder, projects, sim, wiring.
"""
