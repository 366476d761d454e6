"""web-search: the endpoint of the settings, what it is asked, and results out of what services
answer.
"""

import json

import pytest
from fetching import loop, page, rules, site  # noqa: F401
from net_servers import nothing_left, serving, tls  # noqa: F401
from own_network import PUBLIC, inside, names  # noqa: F401

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.linux.tools.fetch_page import redirect_url
from clawlite.linux.tools.fetch_search import MAX_ANSWER, Search

HITS = [
    {"title": "One\n two", "url": "https://a.example/", "content": "first"},
    {"title": "", "url": "", "content": "no place"},
    {"url": "https://b.example/"},
    "junk",
    {"title": "Three", "url": "https://c.example/", "content": "x" * 1000},
]


def answer(data, **more):
    return page(
        data if isinstance(data, bytes) else json.dumps(data).encode(), "application/json", **more
    )


def search(
    loop,
    port,
    query="tomatoes",
    profile=None,
    path="/search?format=json&q={query}",
    host="127.0.0.1",
    scheme="http",
    key=None,
    **more,
):
    loop.it._search = Search(
        "%s://%s:%d%s" % (scheme, host, port, path),
        "X-Key" if key else "",
        (lambda: key) if key else None,
    )
    return (
        loop.it.start(1, profile or rules(), "web-search", {"query": query, **more}) or loop.wait()
    )


def test_results(loop):
    seen = []
    with serving(site(answer({"results": HITS}), seen)) as port:
        done, found = search(loop, port)
        assert done and found == {
            "results": [
                {"title": "One two", "url": "https://a.example/", "snippet": "first"},
                {"title": "", "url": "https://b.example/", "snippet": ""},
                {"title": "Three", "url": "https://c.example/", "snippet": "x" * 600},
            ]
        }
        assert len(search(loop, port, num_results=2)[1]["results"]) == 2
        many = {"results": [{"url": "https://a.example/%d" % i} for i in range(50)]}
    assert (
        seen[0].startswith("GET /search?format=json&q=tomatoes HTTP/1.1\r\n")
        and "Accept: application/json" in seen[0]
    )
    with serving(site(answer(many))) as port:
        assert [
            len(search(loop, port, **more)[1]["results"])
            for more in ({}, {"num_results": 20}, {"num_results": 50})
        ] == [5, 20, 20]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda hits: {"web": {"results": hits}},
        lambda hits: {"items": hits},
        lambda hits: {"organic": hits},
        lambda hits: {"organic_results": hits},
        lambda hits: {"webPages": {"value": hits}},
    ],
)
def test_other_services(loop, wrap):
    with serving(
        site(answer(wrap([{"name": "N", "link": "https://a.example/", "description": "d"}])))
    ) as port:
        assert search(loop, port)[1] == {
            "results": [{"title": "N", "url": "https://a.example/", "snippet": "d"}]
        }


def test_a_query_stays_in_its_place(loop):
    seen = []
    with serving(site(answer({"results": []}), seen)) as port:
        for query in (
            "a b&c=d#e/..",
            "x\r\nHost: evil",
            "{query}",
            "caf\u00e9 \U0001f331",
            "\ud800",
        ):
            assert search(loop, port, query)[0]
    assert [request.split(" ")[1].partition("q=")[2] for request in seen] == [
        "a%20b%26c%3Dd%23e%2F..",
        "x%0D%0AHost%3A%20evil",
        "%7Bquery%7D",
        "caf%C3%A9%20%F0%9F%8C%B1",
        "%3F",
    ]
    for query in ("", "  ", "x" * 1025):
        assert type(search(loop, port, query)[1]) is ClawError


def test_what_endpoints_get_wrong(loop):
    for data, words in (
        (answer({"results": HITS}, status=403), "status 403"),
        (answer(b"<html>"), "does not answer with JSON"),
        (answer({"hits": []}), "no list of results"),
        (answer([]), "no list of results"),
        (answer({"results": "x"}), "no list of results"),
        (answer(b" " * (MAX_ANSWER + 1)), "longer than"),
        (page(status=302, Location="/b"), "it redirects"),
    ):
        with serving(site(data)) as port:
            done, error = search(loop, port)
            assert not done and type(error) is ClawError and words in error.message, error


def test_without_an_endpoint(loop):
    done, error = loop.it.start(1, rules(), "web-search", {"query": "x"})
    assert not done and "[search] endpoint" in error.hint
    for path in ("/search", "/#{query}"):
        assert "no {query}" in search(loop, 1, path=path)[1].message
    assert search(loop, 1, host="{query}.example.com")[1].code == -32010


def test_the_rules_hold_for_the_endpoint(loop, names):
    protected = rules(block_private=True)
    with serving(site(answer({"results": []}))) as port:
        # an address that the maker wrote himself
        assert search(loop, port, profile=protected)[0]
        assert search(loop, port, profile=rules(1, ["127.0.0.1"], True))[0]
        names.of = {"searx.example.com": [["127.0.0.1"]]}
        for profile, host in (
            (rules(0), "127.0.0.1"),
            (rules(1, ["a.example"], True), "127.0.0.1"),
            (protected, "searx.example.com"),
        ):
            assert type(search(loop, port, profile=profile, host=host)[1]) is SandboxDenied
        assert search(loop, port, profile=rules(), host="searx.example.com")[0]


def test_the_credential(loop, tls, names):
    def body():
        names.of = {"search.example.com": [[PUBLIC]]}
        seen = []
        with (
            tls.serving(
                site(answer({"results": []}), seen), "search.example.com", place=(PUBLIC, 443)
            ),
            serving(site(answer({"results": []}), seen), place=(PUBLIC, 80)),
        ):
            assert search(loop, 443, host="search.example.com", scheme="https", key="s3cret")[0]
            assert search(loop, 80, host="search.example.com", key="s3cret")[0]
        assert "X-Key: s3cret" in seen[0] and "s3cret" not in seen[1]

    inside(body)


def test_where_redirects_lead():
    base = ("https", "h.example", 8443, "/a/b/c?q=1")
    for location, wanted in (
        ("https://o.example/x", "https://o.example/x"),
        ("mailto:x", "mailto:x"),
        ("//o.example/x", "https://o.example/x"),
        ("/x?y", "/x?y"),
        ("d", "/a/b/d"),
        ("./d", "/a/b/d"),
        ("../d?e=../f", "/a/d?e=../f"),
        ("../../../../d", "/d"),
        (".", "/a/b/"),
        ("..", "/a/"),
        ("?r=2", "/a/b/c?r=2"),
        ("#x", "/a/b/c?q=1"),
        ("d#x?y", "/a/b/d"),
        ("a:b", "a:b"),
        ("./a:b", "/a/b/a:b"),
        ("d/../e", "/a/b/e"),
        ("8080/x", "/a/b/8080/x"),
    ):
        assert redirect_url(base, location) == (
            wanted
            if ":" in location.split("/")[0] or "//" in location
            else "https://h.example:8443" + wanted
        ), location
