"""A mosquitto that was set up as ``clawlite swarm acl mqtt`` says."""

import re
import shlex
import subprocess

from engines import BROKERS

from clawlite.linux.swarm_commands.acl import acl


def guarded(swarm, users=None):
    """Return the class of a server with the logins of *swarm*, a ``swarm.Swarm``, and *users*, as
    ``acl`` has them; each has the password that is printed.
    """

    class Mosquitto(BROKERS["mosquitto"]):
        def start(self):
            text, etc = acl("mqtt", swarm, users), str(self.folder)
            said = re.sub("^#", "", text, flags=re.M).replace("/etc/mosquitto", etc)
            (self.folder / (swarm.name + ".acl")).write_text(text + "\n")
            (self.folder / (swarm.name + ".passwd")).touch()
            for line in re.findall("mosquitto_passwd .*", said):
                words = [self._program.replace("sbin/mosquitto", "bin/mosquitto_passwd")]
                words += shlex.split(line)[1:]
                subprocess.run(words, env=self._environment, check=True, capture_output=True)
            settings = re.findall("^   ([a-z_]+ [^ ]+)$", said, flags=re.M)
            self.more = "\n".join(one for one in settings if not one.startswith("persistence "))
            super().start()

    return Mosquitto
