"""Ask the tool providers of a tools.py for their lists, in a separate process: tool_providers.py
starts ``main``.

JSON on stdout: {"listed": [[namespace, definitions], ...]}, or {"error": [message, hint]}.  What
tools.py prints goes to stderr.
"""

import json
import os
import sys

from clawlite.core.base.errors import ClawError
from clawlite.host.base.regular_file import open_regular
from clawlite.protocols.mcp.tool_provider import list_tools


def main() -> None:
    """Run the file that the command line names."""
    path = sys.argv[1]
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        with open(path, "rb", opener=open_regular) as file:
            source = file.read()
        folder = os.path.dirname(os.path.abspath(path))
        sys.path[:0] = [folder]  # modules beside it; of its drivers Python's own come first
        sys.path.append(os.path.join(folder, "drivers"))
        space = {"__name__": "tools", "__file__": path}
        exec(compile(source, path, "exec"), space)
        found: dict = {"listed": list_tools(space)}
        text = json.dumps(found, ensure_ascii=False).encode()
    except ClawError as e:
        text = json.dumps({"error": [e.message, e.hint]}).encode()
    except BaseException as e:  # the file may raise anything
        said = f"{type(e).__name__}: {e}"
        text = json.dumps({"error": [said, "mend it: a build asks it for its tools"]}).encode()
    with os.fdopen(out, "wb") as file:
        file.write(text)


if __name__ == "__main__":
    main()
