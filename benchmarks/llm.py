"""A server that speaks as an OpenAI-compatible one does, as little and as fast as it can: plain
sockets, one connection at a time.

    python -I -S benchmarks/llm.py          # says its port on stdout, ends when its stdin does

1. POST is answered with an event stream in one write: a text, or a call of TOOL when the
   conversation's last message is a person's with the word "bed".  Who does not ask for a stream
   gets the text as one object.  The connection closes then.
2. GET /N gives back the N-th last POST, byte for byte, 1 or 2: who sends it again asks the same and
   gets the same.
"""

import select
import socket
import sys

SAYS = "All is well."
TOOL = "read-soil"
_KEEP = 2
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n%s\r\n"
_DELTA = (
    b"data: "
    b'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"llama3.2","choices":[{"index":0,"delta":%s,'
    b'"finish_reason":%s}]}\n\n'
)
_CALL = (
    b'{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"%s","arguments":"{}"}}]}'
    % TOOL.encode()
)


def stream(*deltas: tuple) -> bytes:
    """Return an answer: *deltas* are (delta, finish_reason) as JSON, each a chunk of the
    transfer, and [DONE].
    """
    events = [_DELTA % delta for delta in deltas] + [b"data: [DONE]\n\n"]
    return (
        _HEAD % (b"text/event-stream", b"Transfer-Encoding: chunked\r\n")
        + b"".join([b"%x\r\n%s\r\n" % (len(event), event) for event in events])
        + b"0\r\n\r\n"
    )


_FIRST, _REST = SAYS.encode()[:4], SAYS.encode()[4:]
TEXT = stream(
    (b'{"role":"assistant","content":""}', b"null"),
    (b'{"content":"%s"}' % _FIRST, b"null"),
    (b'{"content":"%s"}' % _REST, b"null"),
    (b"{}", b'"stop"'),
)
WHOLE = _HEAD % (b"application/json", b"") + (
    b'{"id":"c1","object":"chat.completion","created":1,"model":"llama3.2","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}' % SAYS.encode()
)
CALL = stream(
    (b'{"role":"assistant","content":null}', b"null"), (_CALL, b"null"), (b"{}", b'"tool_calls"')
)


def receive(connection) -> bytes:
    """Return one request, whole, or b"" when the peer has closed."""
    data = connection.recv(65536)
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head = data.partition(b"\r\n\r\n")[0].lower()
    rest = head.partition(b"content-length:")[2]
    size = len(head) + 4 + (int(rest.split(b"\r\n")[0]) if rest else 0)
    is_chunked = b"transfer-encoding: chunked" in head  # its last chunk is empty
    while len(data) < size or is_chunked and not data.endswith(b"\r\n0\r\n\r\n"):
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    return data


def answer(request: bytes, kept: list) -> bytes:
    """Return what *request* is answered with; *kept* has the last ones, the newest last."""
    if request.startswith(b"GET /"):
        return _HEAD % (b"application/octet-stream", b"") + kept[-int(request[5:6])]
    kept.append(request)
    del kept[:-_KEEP]
    if b'"stream":true' not in request and b'"stream": true' not in request:
        return WHOLE
    last = request[request.rfind(b'{"role":"') :]
    return CALL if last.startswith(b'{"role":"user"') and b"bed" in last else TEXT


def serve() -> None:
    """Answer until stdin ends."""
    listener, kept, poll = socket.socket(), [], select.poll()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    print(listener.getsockname()[1], flush=True)
    poll.register(listener, select.POLLIN)
    poll.register(sys.stdin, select.POLLIN | select.POLLHUP)
    while True:
        if any(fd == sys.stdin.fileno() for fd, _ in poll.poll()):
            return
        connection = listener.accept()[0]
        try:
            request = receive(connection)
            if request:
                connection.sendall(answer(request, kept))
        except OSError:  # whoever asked has left
            pass
        connection.close()


if __name__ == "__main__":
    serve()
