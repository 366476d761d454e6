"""What ``clawlite --help`` says: it needs no package, so a device with the wheel alone says it
too.
"""

TEXT = """\
Usage: clawlite COMMAND [ARGUMENTS]...
       clawlite COMMAND --help

  clawlite: Claw Kernel Protocol agents for small boards.

Talk to an agent:
  run [MANIFEST|IMAGE]              on this terminal
  run [MANIFEST|IMAGE] --port P     build, flash a board, console
  ask TEXT [MANIFEST|IMAGE]         one turn, then exit
  ask TEXT --port P                 one turn of the agent on a board
  serve [MANIFEST|IMAGE] --stdio    CKP JSON-RPC for an operator
  mcp serve [MANIFEST|IMAGE]        its tools for MCP clients; --port P: a board's; --http PORT
  trace [CALL] [MANIFEST|IMAGE]     why policy decided so; --port P: on a board
  secrets set|login|remove NAME | list      what an agent keeps for itself
  audit [verify | take] [MANIFEST|IMAGE]    what is on record; --port P: on a board
  channels dead [retry|drop NUMBER]         messages that an agent has given up
  swarm up|run|status|stop|resume           agents that give each other tasks
  service install|remove|status|talk        an agent that systemd starts
  doctor [--port P]                 what is wrong here, and what mends it

Look at what there is:
  inspect      Show what an image holds.
  tools        Show every tool that an agent has.
  conformance  Show what this runtime declares.
  bench        Measure this machine, or a board.

Make an agent and bring it to a board (these need the host packages):
  boards       Show the boards that are known.
  build        Compile a manifest to an image.
  check        Validate a manifest.
  console      Talk to a board over its serial port.
  discover     Ask MCP servers for the tools of services.
  firmware     Write what every MicroPython board gets.
  flash        Write an agent to a board, and see it boot.
  gateway      Keys and network for devices without them.
  logs         Show a saved log of a board.
  new          Make a project in the folder NAME.
  ports        Show what is attached.
  sim          Start a virtual board.
  wifi         Let a board join the network SSID.

Options:
  --version    Show the version and exit.
  -h, --help   Show this message and exit.

MANIFEST is claw.yaml in the current folder unless named."""


def commands() -> list:
    """Return the names of all commands, as ``TEXT`` lists them."""
    firsts = [line[2:].split(" ")[0] for line in TEXT.splitlines() if line.startswith("  ")]
    return sorted({word for word in firsts if word.isalpha()})
