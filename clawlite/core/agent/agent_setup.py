"""What an agent is given: its image, which is data and stays as it was loaded, and what the process
around it adds.
"""


class Setup:
    """The setup of one agent, and of a pipeline that runs without an agent.

    It alone sets its fields; everybody else reads them.  A shell's own class may extend this one
    (linux/runtime/agent_parts.py); a board's has fields of the same names
    (firmware-host/micropython/runtime/device.py).  None, or the value in brackets, says that there
    is no such thing here.  For the pipeline:

    image       ``image.Image``
    guard       ``guard.Guard`` (clawlite/scan), where the image has the section GUARD
    worlds      linux/tools/world_model.py, ``WorldModels``; boards have none
    workspace   the folder behind /workspace
    stop        function(tool), a generator of effects that raises while the swarm is stopped
    is_recorded  bool, a tool with side effects waits until its begin is on record (RECORD) [False]
    confirm     ``confirm.Confirms``, where the image says what must follow a call
    teach       linux/rules/lessons.py, ``Lessons``, or boardteach.py: rules that people teach
    ways        {name of a tool: its gates} of the tools that were called (``gates.find_way``); None
                on a board, which finds them for each call

    For the loop, when the agent is made:

    emit        function(effect) for LOG, SEND and the KEEP of an end: carries them out at once,
                while no effect waits; else they are added to ``Agent.effects``
    run_tool    function(task, tool, arguments, due_ms) -> (outcome or None, now_ms), likewise for
                RUN
    later       list, of a shell with little stack: (task, value, error) of tasks that
                ``Agent.drive`` carries on from the shell's loop.  An error of RECEIVE says that
                the value is of a connection: it is dropped when the task waits for none any more.

    For the work of turns, calls and sessions, from the agent's start on:

    on_start    function(): the work of STARTING; when it raises, the state is ERROR
    on_failure  function(error, pause_ms), called for each ERROR; pause_ms is None when no attempt
                follows
    prepare     function(), called before the first turn: what providers need is there afterwards
    codecs      (loads, dumps) of JSON, for remote providers
    meter       ``meter.Meter`` or ``ledger.Ledger``
    keep_bytes  int, of a conversation, and of one answer in it: what remote providers see again [0]
    dialects    what keeps which requests model servers want (``Provider.known``)
    repetition  ``repetition.Repetition``, where there is memory to look for it
    make_local  function(row) -> the provider builtin:local (linux/local/provider.py)
    is_behind   bool, a gateway asks the remote providers for this device [False]
    memories    function() -> the methods of the stores
    lasting     function(work, history, once) -> the work of a turn that goes on with what was said
                in earlier sessions
    kept        function() and function(key): what is on record (core/idempotency)
    adopt       function(manifest, is_free) -> bool, checks what claw.initialize brings; True: the
                manifest's agent takes over, which it may only where *is_free* is true
    channels    linux/channels/channels.py, or firmware-host/micropython/line/relayed.py
    remembered  int, how many calls with ids are remembered, as *kept* says it, too [64]
    conditions  tuple of functions, each returns a line of /status [()]
    first_question  int, the number of the first approval that this process asks for [1]
    hears_done  function(task, outcome), called before a task gets an outcome of the shell's
    """

    worlds = workspace = stop = confirm = teach = None
    emit = run_tool = later = on_start = on_failure = prepare = codecs = meter = None
    dialects = repetition = memories = lasting = kept = adopt = channels = hears_done = None
    make_local = None
    keep_bytes = 0
    remembered = 64
    first_question = 1
    is_behind = is_recorded = False
    conditions = ()

    def __init__(self, image, guard=None):
        self.image = image
        self.guard = guard
        self.ways = {}
