"""What is wired to a board for a project, as a picture and as a table: `clawlite wiring`.

Imports: base, boards, hardware, manifest, models.
Used by: cli.
"""
