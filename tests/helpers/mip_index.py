"""An index of mip on loopback, with the layout that micropython-lib's tools/build.py writes:
MicroPython's own mip installs from it (tests/host/drivers/test_real_mip.py).
"""

import hashlib
import http.server
import json
import threading


class Index:
    """files: {path: bytes or (status, headers, bytes)} as served; asked: paths, in order;
    url: of the index.
    """

    def __init__(self):
        self.files, self.asked, self._names = {}, [], {}
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.asked.append(self.path)
                found = owner.files.get(self.path)
                if found is None:
                    return self.send_error(404)
                status, headers, data = found if isinstance(found, tuple) else (200, {}, found)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()
        self.host = "http://127.0.0.1:%d" % self._server.server_port
        self.url = self.host + "/pi/v2"

    def publish(self, name, files, version="1.0.0", deps=(), **more):
        """Add a package: *files* {name: text}; *more*: other keys of its package.json."""
        hashes = []
        for file, text in files.items():
            data = text.encode()
            short = hashlib.sha256(data).hexdigest()[:8]
            self.files["/pi/v2/file/%s/%s" % (short[:2], short)] = data
            hashes.append([file, short])
        found = {"v": 1, "hashes": hashes, "deps": [list(dep) for dep in deps], "version": version}
        data = json.dumps({**found, **more}).encode()
        for one in (version, "latest"):
            self.files["/pi/v2/package/py/%s/%s.json" % (name, one)] = data
        self._names.setdefault(name, []).append(version)
        packages = [{"name": key, "version": of[-1]} for key, of in self._names.items()]
        self.files["/pi/v2/index.json"] = json.dumps({"v": 2, "packages": packages}).encode()

    def place_of(self, text: str) -> str:
        """Return the path of the file that has *text*."""
        short = hashlib.sha256(text.encode()).hexdigest()[:8]
        return "/pi/v2/file/%s/%s" % (short[:2], short)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
