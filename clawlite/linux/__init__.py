"""The shell for a Pi or any Linux: the loop, consoles, pins and state around the core."""
