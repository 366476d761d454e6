"""``clawlite page``; clawlite/verbs.py declares it."""


def serve(address, agents, certificate, key, proxied, names, is_child):
    from clawlite.host.page.page import Place
    from clawlite.host.page.page import serve as run

    return run(Place(address, certificate, key, proxied, tuple(names)), agents, is_child)
