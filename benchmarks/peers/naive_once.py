"""What everybody writes first: ``naive_once.py URL TEXT`` asks a model once and prints its answer,
with the standard library alone.
"""

import json
import sys
from urllib.request import Request, urlopen


def main(url: str, text: str) -> None:
    body = {"model": "llama3.2", "messages": [{"role": "user", "content": text}]}
    request = Request(
        url + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request) as answer:
        print(json.load(answer)["choices"][0]["message"]["content"])


main(*sys.argv[1:])
