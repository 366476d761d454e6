# clawlite's own, written by "clawlite flash": it starts the agent when the board boots.  A file of
# yours here stays as it is.
import bootwindow


def ready():
    import sys
    import slots

    del sys.modules["slots"]
    try:
        slots.ready()
    except OSError as e:
        sys.stderr.write("clawlite: this boot counts as a failed one: %s\n" % e)


agent = bootwindow.start()
del bootwindow
if agent:
    agent[0](agent[1], ready)
