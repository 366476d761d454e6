"""What orders to an agent look like: words by what they do in a sentence, and the sentences.

1. A word has one letter; those of "" say nothing and are left out; what is not here is ``_``.  ``clawlite.linux.injection`` spells
   a text with these letters, and one automaton looks for all sentences at once.
2. A sentence names what is done, to what, and whose: "ignore the previous instructions" and not "follow the previous instructions".
   A ``not`` before the verb turns it around, both ways.
"""
WORDS = (
    ("V", "ignore disregard forget override bypass neglect discard dismiss circumvent abandon ignoring disregarding forgetting overriding "
          "bypassing ignoriere ignorieren vergiss missachte ignora ignorez ignorar ignorate olvida olvide oubliez oublie dimentica"),
    ("P", "previous prior above earlier preceding foregoing former original initial existing vorherigen bisherigen obigen anteriores "
          "previas anterior precedentes precedenti"),
    ("Y", "all any every your alle todas todos toutes tutte ihre deine meine vos tus sus"),
    ("I", "instruction instructions rule rules guideline guidelines direction directions directive directives command commands order "
          "orders prompt prompts constraints restrictions programming anweisung anweisungen regeln befehle instrucciones ordenes "
          "istruzioni consignes"),
    ("E", "everything anything alles todo tout tutto"),
    ("F", "follow obey heed comply respect"),
    ("N", "not never dont cannot without no"),
    ("S", "system developer hidden secret internal"),
    ("R", "reveal print show display repeat output tell leak expose dump share summarize disclose recite give whats what"),
    ("m", "me us"),
    ("A", "act pretend roleplay behave simulate respond become"),
    ("y", "you"), ("a", "are is"), ("n", "now"),
    ("X", "unrestricted uncensored unfiltered jailbroken amoral dan jailbreak"),
    ("W", "send post upload email forward exfiltrate transmit submit"),
    ("K", "password passwords credentials secrets tokens token apikey keys key history conversation"),
    ("T", "task goal objective mission purpose"),
    ("w", "new real true actual updated"),
    ("Z", "safety security content ethical moderation"),
    ("G", "protocol protocols filter filters measures checks guardrails policies"),
    ("Q", "inform mention alert notify telling informing mentioning"),
    ("u", "user human operator owner"),
    ("h", "http https attacker webhook url"),
    ("t", "to"),
    ("D", "told instructed taught"),
    ("", "the of these those that this my our please and were was been have given gave as in on a an from do am i will must los las les die "
         "den de mis ont be so then immediately completely fully just also"),
)
_NOT_NOT = "(?:^|[^N])"         # no "not" stands before it
SENTENCES = (
    _NOT_NOT + "V{1,2}y?Y*w?P+[a-z]?[YS]*I",            # ignore all (your) previous instructions
    _NOT_NOT + "VY+[SPZGw]*I", _NOT_NOT + "V[YS]*SI",   # ignore your instructions, ignore the system prompt
    _NOT_NOT + "VY*IP",                                 # ignore the instructions above
    _NOT_NOT + "VEP", _NOT_NOT + "VPI?E",               # forget everything above
    "NFY*[PS]+I", "NFY+[PS]*I",                         # do not follow your instructions
    _NOT_NOT + "RmY*[PS]{1,2}I", _NOT_NOT + "RY+SI", _NOT_NOT + "RSI",          # print your system prompt
    "yan_?_?_?X", "A_{0,3}X", "ya_?X",                  # you are now an unrestricted ...
    "Yw[TI]a",                                          # your new task is
    _NOT_NOT + "VY*ZG", _NOT_NOT + "VYG",               # bypass your safety measures
    _NOT_NOT + "WY*_?_?S?K_?t_?_?h", _NOT_NOT + "WY*_?_?S?KKt_?_?h",            # send the api keys to http
    "N[QR]_?_?Y?u", "NQY*[PS]*I",                       # do not tell the user, do not mention these instructions
    _NOT_NOT + "V[ER]yD",                               # forget everything you have been told
    "nyA", "A_{0,2}y?NY*[IGZ]",                         # from now on you will act; act without any restrictions
)
LITERALS = ("system override", "admin override", "begin system prompt", "developer mode enabled", "note to ai", "attention ai", "message to ai",
            "if you are an ai", "if you are an llm", "instructions for ai", "instructions for the ai", "ai assistant must", "ai agent must",
            "ai agents must", "<|im_start|>", "<|im_end|>", "<|system|>", "<|endoftext|>", "<|start_header_id|>", "[/inst]", "<<sys>>")
