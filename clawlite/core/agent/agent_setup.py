"""What an agent is given: its image, which is data and stays as it was loaded, and what the process
around it adds.
"""


class Setup:
    """The setup of one agent; also the whole setup of a pipeline that runs without an agent.

    image      ``image.Image``
    guard      ``guard.Guard`` (clawlite/scan), where the image has the section GUARD, or None
    worlds     linux/tools/world_model.py, ``WorldModels``, or None; boards have none
    workspace  the folder behind /workspace, or None
    stop       function(tool), a generator of effects that raises while the swarm is stopped, or
               None
    """

    def __init__(self, image, guard=None, worlds=None, workspace=None, stop=None):
        self.image = image
        self.guard = guard
        self.worlds = worlds
        self.workspace = workspace
        self.stop = stop
