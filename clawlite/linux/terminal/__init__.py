"""What a person at a terminal sees and types: the screen, the prompt and the editor of a line.

Imports: files, io.
Used by: admin, monitor, runtime.
"""
