// MicroPython with 32-bit words (its WebAssembly port) as a board: node words32.mjs PACKAGE TREE AGENT
// STACK PAD
//
// STACK bytes are left of the port's own stack, below calls that fill the rest.
// PAD bytes are taken first, so that all else lies elsewhere.
// TREE has a board's .mpy files and words32_board.mpy, AGENT an image and its tools.py.  It
// collects only between calls from here, so what is in use at the end of a call is the most that it
// took.
// Prints one JSON line: bytes of heap in use before ours, when READY, after the work (`turn`, which
// yields between its steps), the most held between two steps, and the most that steps took,
// the highest first.
import { readFileSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

// Without a stack in bytes, all of it is free: as much is never asked for.
const [packageFolder, tree, agent, stack = "1000000", pad = "0"] = process.argv.slice(2);
const { loadMicroPython } = await import(pathToFileURL(packageFolder + "/micropython.mjs"));
const mp = await loadMicroPython({ heapsize: 1 << 20, stdout: () => {}, linebuffer: true });

function copy(from, to) {
  try { mp.FS.mkdir(to); } catch { /* it is there */ }
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.isFile()) mp.FS.writeFile(to + "/" + entry.name, readFileSync(from + "/" + entry.name));
  }
}

function used() {
  mp.runPython("import gc; gc.collect()");
  mp.runPython("gc.collect(); _used = gc.mem_alloc()");
  return mp.globals.get("_used");
}

// Where the stack ends is found by running into it.
const SHALLOW = `
import micropython
_end = 0
def _deep():
    global _end
    _end = micropython.stack_use()
    _deep()
try:
    _deep()
except RuntimeError:
    pass
def _shallow(run):
    if micropython.stack_use() + ${stack} < _end:
        found = _shallow(run)
        return found
    return run()
`;

copy(tree, "/lib");
copy(agent, "/agent");
// There is no network here; a provider is away.
mp.FS.writeFile("/lib/socket.py", "SOCK_STREAM = 1\ndef getaddrinfo(*_):\n    raise OSError(113)\n");
try {
  mp.runPython("import binascii, hashlib, json, os, select, socket, struct, sys, time, words32_board");
  mp.runPython("words32_board.stand_ins()");
  mp.runPython(SHALLOW);
  mp.runPython(`_pad = bytearray(${pad})`);
  const start = used();
  mp.runPython("device = _shallow(lambda: words32_board.ready('/agent/claw.cbor'))");
  const ready = used() - start;
  mp.runPython("import gc; work = words32_board.turn(device, '/agent/claw.cbor')");
  const most = [];
  let held = 0;
  do {
    held = Math.max(held, used() - start);
    mp.runPython("_over = _shallow(lambda: next(work, True)); _most = gc.mem_alloc()");
    most.push(mp.globals.get("_most") - start);
  } while (!mp.globals.get("_over"));
  mp.runPython("work = None");
  most.sort((a, b) => b - a);
  console.log(JSON.stringify({ start, ready, after: used() - start, held, most: most.slice(0, 8) }));
} catch (e) {
  console.error(String(e.message));
  process.exit(1);
}
