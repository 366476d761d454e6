"""The device verbs: ``run``, ``ask`` and ``serve``, with the standard library alone.

An image is run here; a manifest is compiled first, by the host part in this process, which then becomes the runtime
(exec), so that a device never carries the compiler in its memory.
"""
import os
import sys

from clawlite.core.errors import ClawError, Denied

USAGE = {
    "run": "usage: clawlite run [MANIFEST | IMAGE]",
    "ask": "usage: clawlite ask TEXT [MANIFEST | IMAGE] [--approve]",
    "serve": "usage: clawlite serve [MANIFEST | IMAGE] --stdio",
}
HELP = {
    "run": "Talk to an agent on this terminal. /help there lists its commands.",
    "ask": "One turn, then exit: 5 when a tool or policy refused. --approve answers yes to what asks first.",
    "serve": "CKP JSON-RPC on stdin and stdout, one JSON document a line.",
}


def main(verb: str, args: list) -> int:
    """Run one device verb; return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE[verb] + "\n\n" + HELP[verb])
        return 0
    flags = [arg for arg in args if arg.startswith("--")]
    names = [arg for arg in args if not arg.startswith("--")]
    known = {"run": [], "ask": ["--approve"], "serve": ["--stdio"]}[verb]
    wrong = [flag for flag in flags if flag not in known]
    text = names.pop(0) if verb == "ask" and names else None
    if wrong or len(names) > 1 or verb == "ask" and not text or verb == "serve" and not flags:
        what = "unknown option %s" % wrong[0] if wrong else "expected --stdio" if verb == "serve" and not flags else \
            "expected a text" if verb == "ask" and not text else "too many names: %s" % " ".join(names)
        return _fail(2, "%s\n%s" % (what, USAGE[verb]))
    try:
        return _run(verb, text, names[0] if names else ".", flags)
    except ClawError as e:
        return _fail(2, e.message + (" - " + e.hint if e.hint else ""))


def _run(verb: str, text, name: str, flags: list) -> int:
    from clawlite.linux import files
    if not files.is_image(name):
        if not name.endswith(".cbor"):
            return _compile(verb, text, name, flags)
    from clawlite.linux.shell import Shell
    image = files.open_image(name)
    shell = Shell(image, os.path.dirname(os.path.abspath(name)), verb == "serve")
    if verb == "ask":
        return _ask(shell, text, "--approve" in flags)
    return shell.run()


def _compile(verb: str, text, name: str, flags: list) -> int:
    try:
        from clawlite.host.build import build_beside
    except ImportError as e:
        return _fail(2, "%s is no image, and compiling a manifest needs the host packages (%s is missing) - "
                        "pip install 'clawlite[host]', or copy an image here" % (name, e.name))
    image = build_beside(name)
    main = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
    args = [sys.executable, main, verb] + ([text] if text else []) + [image] + flags
    os.execv(sys.executable, args)


def _ask(shell, text: str, approve: bool) -> int:
    """One turn.  Exit code: 0, 1 when the provider failed, 5 when something was refused, 130 after Ctrl-C."""
    from clawlite.linux.asking import ask
    return ask(shell, text, approve)


def _fail(code: int, message: str) -> int:
    sys.stderr.write("clawlite: %s\n" % message)
    return code
