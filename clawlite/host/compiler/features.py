"""Every feature of a manifest, each declared by the ``feature.py`` of its room
(host/models/feature.py).  The order is that in which an image is compiled.
"""

from clawlite.host.channels import feature as channels

FEATURES = (channels.FEATURE,)
