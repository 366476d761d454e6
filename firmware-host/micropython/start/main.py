"""main.py of a board, started after boot.py: the agent beside it, with what lies in /lib.

There is a module ``main`` in /lib too: that folder comes first, or this file would find itself.
"""
import sys

sys.path.insert(0, "/lib")
from main import main

main([])
